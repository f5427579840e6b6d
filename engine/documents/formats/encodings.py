"""Encodings of text files that state none and are not UTF-8, judged by the letters of languages."""

from ...errors import DocumentError

# The legacy encodings of browsers (https://encoding.spec.whatwg.org/#names-and-labels). With all encodings of
# Python, short texts would be mistaken for UTF-16 without a mark, or for Johab.
LEGACY = (
    "cp1252", "cp1250", "cp1251", "cp1253", "cp1254", "cp1255", "cp1256", "cp1257", "cp1258", "cp874",
    "iso8859_2", "iso8859_5", "iso8859_7", "iso8859_15", "koi8_r", "koi8_u", "cp866", "mac_roman",
    "cp932", "shift_jis", "euc_jp", "iso2022_jp", "gb18030", "big5", "cp949",
)  # fmt: skip
# The letters beyond ASCII of languages in Latin script, by their usual encodings, the most common first.
# Frequencies of letters, as charset-normalizer takes them, do not tell Polish in Windows-1250 ("leży") from
# Windows-1257 ("leæy") in a few sentences.
ALPHABETS = (
    (
        ("cp1252", "iso8859_15", "mac_roman"),
        ("äöüßé", "àâæçéèêëîïôœùûü", "áéíóúüñ¿¡ªº", "áâãàçéêíóôõúüªº", "àèéìíîòóùú", "åäöé", "æøåéòó",
         "ëïéèöüóá", "áðéíóúýþæö"),
    ),
    (
        ("cp1250", "iso8859_2"),
        ("ąćęłńóśźż", "áčďéěíňóřšťúůýž", "áäčďéíĺľňóôŕšťúýž", "áéíóöőúüű", "čćđšž", "ăâîşţ"),
    ),
    (("cp1254",), ("çğıİöşüâîû",)),
    (("cp1257",), ("ąčęėįšųūž", "āčēģīķļņšūž", "äõöüšž")),
)  # fmt: skip
PUNCTUATION = frozenset("“”„‚‘’«»‹›–—…€§°·•\u00a0©®™²³½¼×")
MOST_FOREIGN, LEAST_FITTING = 0.4, 0.98  # of the letters beyond ASCII, and of those a language has
LEAST_KANA = 0.3
NOT_ASCII = bytes(range(128, 256))
SAMPLE = 100_000  # bytes


def guessed(name: str, content: bytes) -> str:
    """Return the text in the most plausible legacy encoding."""
    from charset_normalizer import from_bytes

    text = in_latin_letters(content) or in_kana(content)
    if text is not None:
        return text
    matches = list(from_bytes(content, cp_isolation=list(LEGACY), enable_fallback=False))
    if not matches:
        raise DocumentError(f"{name} is not text in UTF-8 or another known encoding: save it as UTF-8 text")
    best = matches[0]
    # Many fit a short text equally well, and differences below a percent do not count in the order of the
    # matches: Windows-1252 is by far the most common of them.
    equal = (one for one in matches if one.chaos <= best.chaos and one.coherence >= best.coherence)
    return str(next((one for one in equal if one.encoding == LEGACY[0]), best))


def decoded(content: bytes, encoding: str) -> str | None:
    """Return the text in an encoding, None if it is invalid or the encoding unknown."""
    try:
        return content.decode(encoding)
    except (UnicodeError, LookupError):
        return None


def in_latin_letters(content: bytes) -> str | None:
    """Return the text in the encoding in which all letters are those of one language, None without one."""
    high = content[:SAMPLE].translate(None, bytes(range(128)))
    if len(high) > MOST_FOREIGN * len(content[:SAMPLE]):
        return None
    best, found = LEAST_FITTING, None
    for encodings, alphabets in ALPHABETS:
        for encoding in encodings:
            signs = decoded(high, encoding)
            letters = [sign for sign in signs or "" if sign not in PUNCTUATION]
            for alphabet in alphabets if letters else ():
                known = set(alphabet + alphabet.upper())
                share = sum(sign in known for sign in letters) / len(letters)
                if share > best:
                    best, found = share, encoding
    return decoded(content, found) if found else None


def in_kana(content: bytes) -> str | None:
    """Return a text in EUC-JP, which fits the encodings of Chinese and Korean, too, but for its syllables."""
    text = decoded(content, "euc_jp") or ""
    n_kana = sum("ぁ" <= sign <= "ヿ" for sign in text[:SAMPLE])
    return text if n_kana > LEAST_KANA * sum(sign > "\x7f" for sign in text[:SAMPLE]) else None
