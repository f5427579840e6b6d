"""The language of a text: by the script of its letters, and by the commonest words of those that share it.

Words of search are split, stemmed and left out by it, so the tables are those of the stop words that BM25
leaves out: bm25s has them of 12 languages, from NLTK and Snowball, and the commonest words of others stand
here. What no common word tells, such as a table of names, has no language of its own.
"""

import unicodedata
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache

import regex

from engine.documents.document import Document

SAMPLE = 2_000  # characters from the middle of a text, which tell its language
CLEARLY = 0.25  # of the words: a share that common words of English have in no other language
FEWEST = 2  # different words that tell a language
KANA_SHARE = 0.1  # of the characters of Japanese, at least; Chinese has none
ENGLISH, OTHER, LATIN = "english", "other", "LATIN"
LETTERS = regex.compile(r"\p{L}[\p{L}\p{M}]*")


@dataclass(frozen=True)
class Language:
    """A language: its name, its script as Unicode names letters, and how BM25 reads its words.

    Attributes
    ----------
    stems
        Whether Snowball has a stemmer of its name.
    common
        Its commonest words, of which those of questions suffice where bm25s has a list.
    accents
        Its letters that English lacks.
    """

    label: str
    script: str = LATIN
    stems: bool = True
    common: str = ""
    accents: str = ""


# Of several languages of a script that fit alike, the first counts.
LANGUAGES = {
    ENGLISH: Language("English"),
    "german": Language(
        "German",
        common="wann wer wen wem wo warum welche welcher welches wurde wurden gibt",
        accents="äöüß",
    ),
    "french": Language(
        "French",
        common="où quand quel quelle quels quelles comment pourquoi combien",
        accents="àâæçéèêëîïôœùûü",
    ),
    "spanish": Language(
        "Spanish",
        common="cuándo dónde quién quiénes cómo cuánto cuánta cuántos cuál cuáles qué",
        accents="áéíñóúü",
    ),
    "portuguese": Language(
        "Portuguese",
        common="quando onde quem como quanto quantos qual quais",
        accents="áâãàçéêíóôõú",
    ),
    "italian": Language(
        "Italian",
        common="quando dove chi come quanto quanti quale quali perché",
        accents="àèéìíòóù",
    ),
    "dutch": Language(
        "Dutch",
        common="wanneer waar wie hoe hoeveel waarom welke wat",
        accents="ëïéèö",
    ),
    "danish": Language(
        "Danish",
        common="hvornår hvor hvem hvad hvordan hvorfor hvilken",
        accents="æøåé",
    ),
    "norwegian": Language(
        "Norwegian",
        common="når hvor hvem hva hvordan hvorfor hvilken",
        accents="æøåéòô",
    ),
    "swedish": Language(
        "Swedish",
        common="när var vem vad hur varför vilken vilka",
        accents="åäöé",
    ),
    "turkish": Language(
        "Turkish",
        common="kaç kimin hangi",
        accents="çğıöşüâîû",
    ),
    "finnish": Language(
        "Finnish",
        common="ja on ei se että oli hän mutta ovat kun niin myös tai mitä mikä missä milloin kuka kuin joka "
        "jossa sekä vain ole olla tämä nämä ne he me te minä jos kuinka miksi voi sen sitä jotka jonka",
        accents="äöå",
    ),
    "polish": Language(
        "Polish",
        common="i w na z się nie do to że jest o jak po co tak za od ale czy przez dla są był była było ma "
        "oraz który która które gdzie kiedy kto ile dlaczego ze we pod tylko już może jego jej ich tym tego "
        "być lub",
        accents="ąćęłńóśźż",
    ),
    "czech": Language(
        "Czech",
        common="a v se na je že z s do o k i to jako za by pro ale jsou byl byla bylo nebo kde kdy kdo co "
        "jak po od ve při které který která jeho její jen také už může být tak proč kolik ze",
        accents="áčďéěíňóřšťúůýž",
    ),
    "slovak": Language(
        "Slovak",
        stems=False,
        common="a v sa na je že z s do o k aj to ako za by pre ale sú bol bola bolo alebo kde kedy kto čo po "
        "od pri ktoré ktorý ktorá jeho jej len tiež už môže byť tak prečo koľko zo vo",
        accents="áäčďéíĺľňóôŕšťúýž",
    ),
    "hungarian": Language(
        "Hungarian",
        common="a az és hogy nem is egy ez volt de csak meg van mint ha már még vagy ki mi hol mikor hogyan "
        "miért melyik kell lehet azt ezt pedig után által között amely amelyet el fel",
        accents="áéíóöőúüű",
    ),
    "romanian": Language(
        "Romanian",
        common="și în de la a cu pe nu se din este o un să care mai ce sunt ca dar sau pentru prin fi fost "
        "era când unde cine cum cât lui ei după între până dintre această acest",
        accents="ăâîșțşţ",
    ),
    "catalan": Language(
        "Catalan",
        common="el la els les de i a en un una que és per amb no es del al dels als com més o però si on "
        "quan qui què ha han va ser són aquest aquesta també fins des seu seva",
        accents="àçèéíïòóúü",
    ),
    "serbian": Language(
        "Serbian, Croatian or Bosnian",
        common="i u je na se da su za od s sa ne kao ili a ali koji koja koje gdje gde kada tko ko što šta "
        "bi bio bila bilo iz do po kako zašto nije o samo već biti mogu može",
        accents="čćđšž",
    ),
    "slovenian": Language(
        "Slovenian",
        stems=False,
        common="in je v na se da so za s z ne kot ali pa ki kje kdaj kdo kaj bi bil bila bilo iz do po kako "
        "zakaj ni o samo že lahko",
        accents="čšž",
    ),
    "estonian": Language(
        "Estonian",
        common="ja on ei see et oli ta aga kui ka või mis kus millal kes mida miks kuidas nii siis ning oma "
        "selle seda mille pole ainult kuni ole olla tema need",
        accents="äöõüšž",
    ),
    "lithuanian": Language(
        "Lithuanian",
        common="ir yra ne kad į iš su kaip bet buvo tai o ar kas kur kada kodėl kuris kuri nuo iki už apie "
        "per jo jos jų taip pat arba gali būti prie po tik",
        accents="ąčęėįšųūž",
    ),
    "indonesian": Language(
        "Indonesian or Malay",
        common="yang dan di dari untuk dengan pada ini itu tidak ke adalah dalam akan oleh juga atau ada "
        "kapan siapa apa mana berapa bagaimana mengapa sebagai para bisa dapat telah sudah karena setiap",
    ),
    "vietnamese": Language(
        "Vietnamese",
        stems=False,
        common="là của và các có được cho trong không những một với người này khi ở từ đã đến về để tại theo "
        "như cũng thì sẽ ai gì đâu bao nhiêu nào phải bị vào ra hay hoặc",
        accents="ăâđêôơưàáảãạằắẳẵặầấẩẫậèéẻẽẹềếểễệìíỉĩịòóỏõọồốổỗộờớởỡợùúủũụừứửữựỳýỷỹỵ",
    ),
    "basque": Language(
        "Basque",
        common="eta da ez bat dira du zen baina ere edo noiz non nor zer nola zein hau hori dute izan den "
        "dela dituen bere",
    ),
    "irish": Language(
        "Irish",
        common="agus an na is ar i tá ní sé sí le go bhí do de a nach cá cathain conas cad iad mar ó ach nó "
        "ag",
        accents="áéíóú",
    ),
    "russian": Language(
        "Russian", "CYRILLIC", common="когда где кто что как почему сколько какой какая какие"
    ),
    "ukrainian": Language(
        "Ukrainian",
        "CYRILLIC",
        stems=False,
        common="а бо і в у на що не з за до як та це є був була було або але який яка яке де коли хто чому "
        "від для по при його її їх також може бути вже ж би й зі",
    ),
    "bulgarian": Language(
        "Bulgarian",
        "CYRILLIC",
        stems=False,
        common="а във със при и в на е за се да от с не че по са като до но или кой коя кои къде кога "
        "какво защо това този тази беше може му й ще който която които",
    ),
    "serbian_cyrillic": Language(
        "Serbian",
        "CYRILLIC",
        stems=False,
        common="а и у је на се да су за од с са не као или а али који која које где када ко шта би био била "
        "било из до по како зашто није о само већ бити",
    ),
    "arabic": Language(
        "Arabic",
        "ARABIC",
        common="في من على إلى أن عن ما هذا هذه التي الذي كان كانت لا مع هو هي أو و ثم قد كل متى أين كيف كم "
        "هل لم لن بعد قبل بين عند غير حتى ذلك",
    ),
    "persian": Language(
        "Persian",
        "ARABIC",
        common="و در به از که این را با است برای آن یک خود تا کرد بر هم نیز می شد شده بود اما یا هر کجا چه "
        "کی چند چگونه چرا باید شود دارد نیست",
    ),
    "urdu": Language(
        "Urdu",
        "ARABIC",
        stems=False,
        common="اور کے کی میں ہے کا سے کو نے پر ہیں یہ کہ وہ تھا تھی کیا نہیں کب کہاں کون ہو بھی ایک اس ان "
        "گئی گیا لیے تک",
    ),
    "hindi": Language(
        "Hindi",
        "DEVANAGARI",
        common="के का की में है और से को पर यह कि ने हैं एक नहीं तो भी ही हो था थी थे कहाँ कहां कब कौन क्या कैसे "
        "क्यों कितना कितने कितनी वह इस उस या लिए कर तक अपने जो होता होती",
    ),
    "nepali": Language(
        "Nepali",
        "DEVANAGARI",
        common="छ र को मा लाई ले पनि यो हो भने गर्न तथा छन् थियो कहाँ कहिले के कसरी किन बाट सँग गरेको भएको",
    ),
    "marathi": Language(
        "Marathi",
        "DEVANAGARI",
        stems=False,
        common="आहे आणि च्या मध्ये ते या ही हे होते होता होती कुठे केव्हा कोण काय कसे का नाही तर साठी पण एक त्या आहेत",
    ),
    "greek": Language(
        "Greek",
        "GREEK",
        common="και το η ο οι τα του της των στο στη στην στον με για από που είναι να δεν θα σε ένα μια τον "
        "την τις τους πού πότε ποιος τι πώς πόσο ή",
    ),
    "hebrew": Language(
        "Hebrew",
        "HEBREW",
        stems=False,
        common="של את על לא הוא היא זה זאת עם כי אם או גם יש אין כל מה מי איפה מתי איך כמה למה היה היתה הם "
        "אני אל בין רק עד אבל",
    ),
    "armenian": Language("Armenian", "ARMENIAN", common="և է են որ ու մեջ այս որտեղ երբ ով ինչ"),
    "tamil": Language("Tamil", "TAMIL"),
    "chinese": Language("Chinese", "CJK", stems=False),
    "japanese": Language("Japanese", "KANA", stems=False),
    "korean": Language("Korean", "HANGUL", stems=False),
    "thai": Language("Thai", "THAI", stems=False),
    "lao": Language("Lao", "LAO", stems=False),
    "khmer": Language("Khmer", "KHMER", stems=False),
    "burmese": Language("Burmese", "MYANMAR", stems=False),
    "bengali": Language("Bengali", "BENGALI", stems=False),
    "georgian": Language("Georgian", "GEORGIAN", stems=False),
    "gujarati": Language("Gujarati", "GUJARATI", stems=False),
    "punjabi": Language("Punjabi", "GURMUKHI", stems=False),
    "telugu": Language("Telugu", "TELUGU", stems=False),
    "kannada": Language("Kannada", "KANNADA", stems=False),
    "malayalam": Language("Malayalam", "MALAYALAM", stems=False),
    "sinhala": Language("Sinhala", "SINHALA", stems=False),
    "amharic": Language("Amharic", "ETHIOPIC", stems=False),
    OTHER: Language("another language", "", stems=False),
}


@cache
def stop_words(language: str) -> frozenset[str]:
    """Return the commonest words of one of `LANGUAGES`, in lower case and composed."""
    from bm25s import stopwords  # slow to load

    name = "EN_PLUS" if language == ENGLISH else language.upper()
    listed = getattr(stopwords, f"STOPWORDS_{name}", ())
    return frozenset((*listed, *LANGUAGES[language].common.split()))


@cache
def all_stop_words() -> frozenset[str]:
    """Return the commonest words of all languages."""
    return frozenset().union(*map(stop_words, LANGUAGES))


def script_of(text: str) -> str:
    """Return the script of most letters of a text, as Unicode names it; `LATIN` without letters."""
    if text.isascii():
        return LATIN
    found: Counter[str] = Counter()
    for letter, n in Counter(text).items():
        if letter.isalpha():
            found[unicodedata.name(letter, "").partition(" ")[0]] += n
    kana = found.pop("HIRAGANA", 0) + found.pop("KATAKANA", 0)
    found["KANA" if kana > KANA_SHARE * (kana + found["CJK"]) else "CJK"] += kana
    if found["KANA"]:
        found["KANA"] += found.pop("CJK", 0)
    return max(found, key=lambda script: found[script]) if found.total() else LATIN


def detected(text: str) -> str:
    """Return the language of a text, one of `LANGUAGES`; empty where nothing tells it.

    English is preferred to another language of which there are as many words, since names and quotations of
    others stand in English texts.
    """
    middle = max(0, (len(text) - SAMPLE) // 2)
    sample = unicodedata.normalize("NFKC", text[middle : middle + SAMPLE]).replace("İ", "i").lower()
    script, words = script_of(sample), LETTERS.findall(sample)
    if script == LATIN and sum(word in stop_words(ENGLISH) for word in words) > CLEARLY * len(words):
        return ENGLISH
    own = [name for name, language in LANGUAGES.items() if language.script == script]
    if len(own) < 2:
        return own[0] if own else OTHER
    found = counts_by_language(words, own)
    best = max(own, key=lambda name: sum(found[name]))
    return best if len(found[best]) >= FEWEST else "" if script == LATIN else own[0]


def counts_by_language(words: Iterable[str], languages: Iterable[str]) -> dict[str, list[int]]:
    """Return how often each of the words occurs that is common in a language, or has letters of it.

    Letters tell the language of words that are common in none. Single letters of English are no words: they
    are symbols and numbers of lists, too.
    """
    counts = Counter(word for word in words if len(word) > 1 or not word.isascii())
    rare = counts.keys() - all_stop_words()
    accented = {word: {each for each in word if not each.isascii()} for word in rare if not word.isascii()}
    found = {}
    for name in languages:
        letters = set(LANGUAGES[name].accents)
        own = counts.keys() & stop_words(name) | {word for word, each in accented.items() if each <= letters}
        found[name] = [counts[word] for word in own]
    return found


def language_of(text: str) -> str:
    """Return the language of a text, English where nothing tells it."""
    return detected(text) or ENGLISH


def is_english(text: str) -> bool:
    """Whether a text is English; names and tables, which nothing tells, pass as English."""
    return language_of(text) == ENGLISH


def document_languages(documents: Iterable[Document]) -> dict[str, str]:
    """Return the language of each document, by its name: the one chosen for it, or else detected.

    A text whose language nothing tells has that of most others in Latin letters, or else is English.
    """
    found = {document.name: document.language or detected(document.text) for document in documents}
    latin = Counter(each for each in found.values() if each and LANGUAGES[each].script == LATIN)
    [(most, _)] = latin.most_common(1) or [(ENGLISH, 0)]
    return {name: language or most for name, language in found.items()}
