import textwrap
from itertools import accumulate, pairwise
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from engine.documents.sentences import sentence_spans, unwrapped
from engine.generation.sentences import sentences_of, token_texts

ALPHABET = st.sampled_from(
    [
        *"aB1 .!?\n\"')”…。．」と»é東🙂।|؟;:ωկ་།",
        "Dr. ",
        "3.5",
        ". A",
        "U.S. ",
        "e.g. ",
        "1. ",
        "am 3. M",
        "Jan. ",
    ]
)
LANGUAGES = dict(
    part.split("\n", 1)
    for part in Path(__file__).with_name("sentences.txt").read_text(encoding="utf-8").split("\n# ")[1:]
)
TEXTS = st.lists(ALPHABET, max_size=40).map("".join)


@pytest.mark.parametrize(
    "sentences",
    [
        ["Mme. Durand, 3 ul. Nowa."],
        ["Zgodnie z art. 5 ust. 2 ustawy."],
        ["L'art. 5 del D.Lgs. 196 dice no."],
        ["Kb. 5 euró, pl. Anna."],
        ["Esim. Anna tuli."],
        ["Το άρθρ. 5 παρ. 2 λέει."],
        ["Ir. Visser kwam op 3 dec. 2027, MUDr. Jana Malá i ks. Piotr też."],
        ["Dl. Pop, ifj. Kovács, вул. Довга, буд. 12, 3 січ. 2027 і Rp. 3,5 juta."],
        ["Tutar 3,5 mn. TL, bkz. mad. 5, son 31 Ara. 2027."],
        ["It is.", " So it was.", " And?"],
        ["Weź gwoździe itd.", " Potem idź, atd.", " Pak jdi."],
        ["Dr. A. Smith met J. R. R. Tolkien in St. Paul.", " Yes."],
        ["It costs $3.50 a month, or 0.7% of it.", " No."],
        ["E.g. the U.S. Senate, cf. Fig. 2 in a.py.", " So."],
        ["He asked “Why?” and left.", " “Go!”", " She went."],
        ["Sie rief: „Komm.“", " Er kam.", " »Ja.«", " Gut."],
        ["Built in 1891.[3]", " Rebuilt twice.[12][13]", " See [2].", " Sold.[^a]", " Gone."],
        [
            "Sensor | Range of use | Recalibrate every",
            "\nThermometer | -40 to +60 °C | 24 months",
            "\nHygrometer | 0 to 100 % of humidity | 12 months",
        ],
        ["It ended… then it went on.", " Really."],
        ["1. Knead it.", "\n2. Bake it."],
        ["# Heading", "\n\n- one", "\n- two"],
        ["The tower (built in 1891).", " Its clock."],
        ["東京は首都です。", "大阪は？", "はい。"],
        ["  Lead and trail. \n"],
        ["cut off in the mid"],
        ["..."],
        [],
        [
            "There is also an optional weight attribute for each pattern.",
            " The default is\n50, and the maximum is 100.",
            " Where two patterns match, the heavier one is\ntaken.",
        ],
        ["How the tides of the northern Atlantic Ocean work", "\nThe moon pulls the water."],
        ["- an item long enough to go on in the line that follows it,\n  as far as here", "\n- the next"],
        [
            "Contents",
            "\nThe beginning . . . . . . . . . . . . . . 1",
            "\nThe end . . . . . . . . . . . . . . . 9",
        ],
        [
            "2024-11-05 10:00:01 the server has started and listens",
            "\n2024-11-05 10:00:07 a first request came from outside",
            "\n2024-11-05 10:00:09 the server was told to stop again",
        ],
    ],
)
def test_sentences_end_where_a_reader_ends_them(sentences):
    text = "".join(sentences)
    assert [text[start:end] for start, end in sentence_spans(text)] == sentences


@pytest.mark.parametrize("language", LANGUAGES)
def test_sentences_of_languages_are_found(language):
    sentences = LANGUAGES[language].splitlines()
    gap = "" if language in {"zh", "ja"} else " "
    text = gap.join(sentences)
    ends = {end - len(gap) for end in accumulate(len(each + gap) for each in sentences[:-1])}
    found = {end for _, end in sentence_spans(text)[:-1]}
    f1 = 2 * len(found & ends) / (len(found) + len(ends))
    assert f1 >= (0.92 if language == "lower" else 0.97)


@pytest.mark.parametrize(
    "marked",
    [
        "It is on Sat. May 4 in the park.| Open Jan. – Mar. only.| No.| I think not.",
        "The answer is no.| He left the U.S.| It was no. 5.| W. E. B. Du Bois met E. Le Roy.",
        "I lived in the U.S. for years.| “Why?” – she asked.",
        "Take 500 g.| Mix well.| Bake 20 min.| Let it cool.| I am 5.| My name is Kim.",
        "MR. LEE: I can't.| Take vitamin C.| It helps.| SEPT. 5 was hot.| Nails, etc.| The rest is here.",
        "Im 3. Quartal stieg er um 2 Mio.| Die Kosten fielen.| Am Mo. 3. April war sie 12.| Kim ist 9.",
        "« Viens ! »| Il part.| M. Le Pen parle.| EE. UU. ganó en 50 a. C.| La ciudad ardió.| ¿Sí?| ¡No!",
        "anna: hi there.| how are you?|\nben: met dr. lee, e.g. on jan. 4.| when?|\nanna: well... soon",
        "今天好!|明天见?|“走。”他说。|3月5日。|「え？」と言った。|３．５です．|次",
    ],
)
def test_sentences_end_at_the_bars_alone(marked):
    text = marked.replace("|", "")
    assert "|".join(text[start:end] for start, end in sentence_spans(text)) == marked


@given(TEXTS)
def test_spans_cover_any_text_exactly(text):
    spans = sentence_spans(text)
    assert "".join(text[start:end] for start, end in spans) == text
    assert [start for start, _ in spans[1:]] == [end for _, end in spans[:-1]]
    if len(spans) > 1:
        assert all(text[start:end].strip() for start, end in spans)


WORDS = st.lists(st.from_regex(r"[a-zA-Z]{2,9}", fullmatch=True), min_size=60, max_size=120)


@given(WORDS, st.integers(50, 120), st.sampled_from(["", "    "]))
def test_wrapped_prose_has_the_sentences_of_the_same_prose_on_one_line(words, width, first_indent):
    sentences = [" ".join([*words[at : at + 12], "end."]).capitalize() for at in range(0, len(words), 12)]
    prose = " ".join(sentences)
    wrapped = textwrap.fill(prose, width, initial_indent=first_indent)
    first_words = [line.split()[0] for line in wrapped.split("\n")]
    alike = sum(word == following for word, following in pairwise(first_words))
    assume(2 * alike < len(first_words))  # otherwise lines are taken for records
    found = [" ".join(wrapped[start:end].split()) for start, end in sentence_spans(wrapped)]
    assert found == sentences
    assert unwrapped(wrapped, 0, len(wrapped)) == first_indent + prose


@pytest.mark.parametrize(
    ("lines", "n_sentences"),
    [
        (["The heating system must", "be bled each autumn by", "the caretaker. Windows", "stay locked."], 2),
        (["red apples in a box", "blue plums in a bag", "green pears in a sack"], 3),
        (["Whose woods these are", "I think I know. His house", "Is in the village though;"], 4),
        (["are you coming?", "yes, in five minutes. bring it", "ok", "the key is here"], 5),
        (["---", "title: Garden handbook", "date: 2026-03-01 08:30", "tags: plants", "Water it."], 5),
    ],
)
def test_a_narrow_column_is_prose_and_a_list_poem_or_chat_is_none(lines, n_sentences):
    assert len(sentence_spans("\n".join(lines))) == n_sentences


@given(st.integers(0, 3_000), st.integers(1, 300))
def test_an_excerpt_is_unwrapped_as_the_whole_text(start, length):
    lines = (
        f"2026-10-{n % 28 + 1:02} 04:12:{n % 60:02} INFO worker-{n} replica of a shard" for n in range(40)
    )
    prose = textwrap.fill("A sentence of a few words that goes on for a while and ends. " * 30, 70)
    text = "\n".join([*lines, "", prose])
    end = min(start + length, len(text))
    assert unwrapped(text, min(start, end), end) == unwrapped(text, 0, len(text))[min(start, end) : end]


@given(TEXTS)
def test_sentences_cover_any_answer_exactly_in_characters_and_tokens(decoder, text):
    ids = decoder.tokenizer.encode(text).ids
    sentences = sentences_of(ids, decoder.tokenizer)
    assert "".join(sentence.text for sentence in sentences) == text
    assert [place for s in sentences for place in range(s.first_token, s.last_token)] == [*range(len(ids))]
    assert all(text[s.start : s.end] == s.text and s.n_tokens > 0 for s in sentences)


@given(st.lists(st.integers(0, 49_000), max_size=30))
def test_sentences_of_any_tokens_cover_them(decoder, ids):
    sentences = sentences_of(ids, decoder.tokenizer)
    assert "".join(s.text for s in sentences) == "".join(token_texts(ids, decoder.tokenizer))
    assert sum(s.n_tokens for s in sentences) == len(ids)
