"""Pages of reports, invoices, papers and leaflets, whose tables and columns are not drawn alike."""

import pytest

from engine.documents.formats.running_lines import with_whole_sentences, without_running_lines
from tests.one_document import parse_document
from tests.pdf_file import drawn_pdf, grid, placed, shown

LINE = "The survey of the year went to all farms of the valley, and most of them"
PROSE = [f"{LINE} sent it back before {day} May," for day in range(1, 25)]
ROWS = [("Town", "2024", "2025"), ("Oslo", "12", "14"), ("Rome", "900", "905"), ("Bern", "41", "39")]
TABLE = "\n".join(map(" | ".join, ROWS))


def text_of(*pages):
    return parse_document("a.pdf", drawn_pdf(*pages)).text


def box(left, bottom, right, top, color="0.9"):
    """The operators that fill a box with a grey between 0 and 1."""
    return f"{color} g {left} {bottom} {right - left} {top - bottom} re f 0 g\n".encode()


@pytest.mark.parametrize(
    "lines",
    [
        # lines between the cells of the first row, or of every other one
        [(60, y, 360, y) for y in (712, 698, 684, 670, 656)]
        + [(x, 698, x, 712) for x in (60, 160, 260, 360)],
        [(60, y, 360, y) for y in (712, 698, 684, 670, 656)]
        + [(x, y, x, y + 14) for x in (60, 160, 260, 360) for y in (698, 670)],
        # none before the names, and none between rows
        [(60, 698, 360, 698), (60, 656, 360, 656)] + [(x, 656, x, 712) for x in (160, 260, 360)],
    ],
)
def test_cells_are_parted_where_only_other_rows_have_a_line(lines):
    assert text_of(grid(*lines) + shown(*placed(ROWS, (62, 162, 262), 702))) == TABLE


def test_rows_between_two_lines_are_parted_below_heads_of_two_rows():
    heads = [(62, 730, "Town"), (162, 737, "Visitors"), (162, 726, "in 1,000"), (262, 730, "Change")]
    body = placed(
        [
            ("Oslo", "12", "1"),
            ("Rome", "900", "5"),
            ("Bern", "41", "2"),
            ("Vik", "3", "1"),
            ("Ulm", "8", "0"),
        ],
        (62, 162, 262),
    )
    lines = [(60, y, 360, y) for y in (762, 748, 714, 636)] + [(x, 636, x, 762) for x in (60, 160, 260, 360)]
    years = placed([("Place", "2024", "2025")], (62, 162, 262), 751)
    assert text_of(grid(*lines) + shown(*years, *heads, *body)).splitlines()[1:] == [
        "Town | Visitors in 1,000 | Change", "Oslo | 12 | 1", "Rome | 900 | 5", "Bern | 41 | 2",
        "Vik | 3 | 1", "Ulm | 8 | 0",
    ]  # fmt: skip


def test_rows_within_one_box_are_parted_where_all_stands_level_with_numbers():
    lines = [(60, y, 460, y) for y in (712, 698, 600)] + [(x, 600, x, 712) for x in (60, 160, 260, 360, 460)]
    rows = [("Item", "Number", "Price", "Sum"), ("Bread", "", "", "4"), ("Milk", "2", "1", "2")]
    rows += [("Cake", "1", "7", "7"), ("", "", "Tax:", "1"), ("", "", "Total:", "14")]
    text = text_of(grid(*lines) + shown(*placed(rows, (62, 162, 262, 362), 702)))
    assert text == "\n".join(map(" | ".join, rows))


def test_rows_of_a_form_are_read_cell_by_cell_though_another_cell_holds_a_table():
    lines = [(60, y, 460, y) for y in (712, 670, 650, 590)] + [(x, 590, x, 712) for x in (60, 200, 460)]
    lines += [(220, y, 400, y) for y in (640, 620, 600)] + [(x, 600, x, 640) for x in (220, 300, 400)]
    inner = placed([("Age", "Rent"), ("over 75", "400")], (222, 302), 626, 20)
    rows = [("Other help", "None, but for those who"), ("of the town", "live alone.")]
    cells = *placed(rows, (62, 202), 695), *placed([("Pets", "None")], (62, 202), 656), (62, 620, "Rent")
    text = text_of(grid(*lines) + shown(*cells, *inner))
    assert text.startswith("Other help of the town | None, but for those who live alone.\nPets | None\n")
    assert text.endswith("Age | Rent\nover 75 | 400")


def test_fields_of_a_form_are_read_box_by_box_with_the_values_below_their_labels():
    fields = ["Name Vik", "State 1,200.50", "Wages 24,410.00", "Street 12", "Town Oslo"]
    tops, splits = range(700, 550, -30), range(160, 360, 40)
    sides = [(60, y, 500, y) for y in (*tops, 550)] + [(x, 550, x, 700) for x in (60, 500)]
    sides += [(x, top - 30, x, top) for x, top in zip(splits, tops, strict=True)]
    texts = [
        (x, top - 10 - 12 * place, word)
        for field, split, top in zip(fields, splits, tops, strict=True)
        for place, words in enumerate(field.split())
        for x, word in ((62, words), (split + 2, words[::-1]))
    ]
    rows = [f"{field} | {' '.join(word[::-1] for word in field.split())}" for field in fields]
    assert text_of(grid(*sides) + shown(*texts)) == "\n".join(rows)


def test_the_text_of_a_numbered_item_goes_on_below_it_up_to_its_value():
    first = [(40, 704, "5"), (65, 704, "Credits of the year"), (460, 704, "5"), (40, 680, "6")]
    texts = [(65, 680 - 18 * number, line) for number, line in enumerate([LINE, LINE, LINE, "say why"])]
    rows = f"5 | Credits of the year | 5\n6 | {LINE} {LINE} {LINE} say why | 6"
    assert text_of(shown(*first, *texts, (460, 626, "6"))) == rows


def test_boxes_that_nobody_sees_are_no_lines_of_a_table():
    cells = placed(ROWS, (62, 162, 262), 702)
    seen = b"".join(box(x, y, x + 98, y + 13) for x in (60, 160, 260) for y in (698, 684, 670, 656))
    behind = b"".join(box(x + 2, y + 2, x + 45, y + 11) for x, y, _ in ((x, y - 4, t) for x, y, t in cells))
    assert text_of(seen + behind + shown(*cells)) == TABLE
    lines = [
        (60, 700 - 14 * n, line) for n, line in enumerate(("The gate closes at nine,", "or at ten in May."))
    ]
    white = b"".join(box(60 + 20 * n, y - 3, 200 - 30 * n, y + 11, "1") for n, (_, y, _) in enumerate(lines))
    assert text_of(white + shown(*lines)) == "The gate closes at nine,\nor at ten in May."


def test_a_note_in_a_merged_cell_stands_once():
    lines = [(60, y, 360, y) for y in (712, 698, 684, 670, 656, 642)]
    lines += [(x, 656, x, 712) for x in (60, 160, 260, 360)] + [(60, 642, 60, 656), (360, 642, 360, 656)]
    note = (64, 646, "Figures of 2025 are not final.")
    assert text_of(grid(*lines) + shown(*placed(ROWS, (62, 162, 262), 702), note)).endswith(
        "Bern | 41 | 39\nFigures of 2025 are not final."
    )


def test_a_ruled_table_on_a_turned_page_is_read_row_by_row():
    lines = [(60, y, 360, y) for y in (712, 698, 684, 670, 656)] + [
        (x, 656, x, 712) for x in (60, 160, 260, 360)
    ]
    flat = grid(*lines) + shown(*placed(ROWS, (62, 162, 262), 702))
    assert text_of(b"q 0 1 -1 0 800 0 cm " + flat + b" Q") == TABLE


def test_a_head_over_two_columns_does_not_join_their_cells():
    head = [(60, 714, "Item"), (160, 714, "Rate and price"), (330, 714, "Sum")]
    body = placed([("Bolt", "2", "0.50", "1.00"), ("Screw", "4", "0.25", "1.00")], (60, 160, 220, 330))
    assert text_of(shown(*head, *body)).splitlines()[1:] == [
        "Bolt | 2 | 0.50 | 1.00",
        "Screw | 4 | 0.25 | 1.00",
    ]


def test_names_of_groups_of_columns_stand_above_their_heads():
    rows = [("", "2024", "2025", "2024", "2025"), ("Oslo", "12", "14", "9", "8")]
    groups = (170, 714, "Hotels in town"), (370, 714, "Inns of the valley")
    lines = grid(*((60, y, 500, y) for y in (726, 696, 668)))
    text = text_of(lines + shown(*groups, *placed(rows, (60, 160, 230, 360, 430))))
    assert text.splitlines()[1] == " | 2024 | 2025 | 2024 | 2025"


def test_a_table_below_a_heading_has_columns_of_its_own():
    first = placed([("Start", "End", "Shows"), ("1 May", "9 May", "48")], (50, 120, 190), 700, 12)
    second = placed(
        [("Month", "Shows", "Sum"), ("May", "48", "900"), ("June", "50", "950")], (50, 150, 230), 660, 12
    )
    text = text_of(shown(*first, (50, 674, "Totals"), *second))
    assert "1 May | 9 May | 48" in text
    assert "May | 48 | 900\nJune | 50 | 950" in text


def test_a_row_of_many_cells_by_itself_keeps_them():
    row = placed([("3", "SCR-1", "12/26", "4DX", "9:30", "Daily", "$300")], (50, 90, 150, 200, 250, 300, 350))
    assert text_of(shown((50, 720, "Shows"), *row, (50, 680, "(116 minutes)"))).splitlines()[1] == (
        "3 | SCR-1 | 12/26 | 4DX | 9:30 | Daily | $300"
    )


def test_text_beside_lines_at_other_heights_is_a_column():
    left = [
        (50, 700 - 31 * n, text) for n, text in enumerate(("Under 15", "15 to 24", "25 to 44", "45 to 64"))
    ]
    right = [(320, 706 - 12 * n, line[40:]) for n, line in enumerate(PROSE[:10])]
    text = text_of(shown(*left, *right))
    assert "\n".join(line[40:].strip() for line in PROSE[:10]) in text
    assert "|" not in text


def test_prose_around_a_ruled_table_goes_on_without_it():
    wide = [(50, 700 - 12 * n, line) for n, line in enumerate(PROSE[:2])]
    beside = [(50, 676 - 12 * n, line[:45]) for n, line in enumerate(PROSE[2:8])]
    below = [(50, 604 - 12 * n, line) for n, line in enumerate(PROSE[8:11])]
    lines = [(400, y, 580, y) for y in (684, 670, 656, 642, 628)] + [
        (x, 628, x, 684) for x in (400, 460, 520, 580)
    ]
    text = text_of(shown(*wide, *beside, *below) + grid(*lines) + shown(*placed(ROWS, (402, 462, 522), 674)))
    assert "\n".join([*(line[:45] for line in PROSE[2:8]), *PROSE[8:11]]) in text
    assert TABLE in text


def test_prose_runs_around_a_box_that_is_drawn_last_and_around_an_icon():
    beside = [(50, 700 - 12 * n, line[:40]) for n, line in enumerate(PROSE[:8])]
    below = [(50, 604 - 12 * n, line) for n, line in enumerate(PROSE[8:11])]
    fact = [(330, 694 - 13 * n, line[41:70]) for n, line in enumerate(PROSE[:5])]
    text = text_of(shown(*beside, *below, *fact))
    assert "\n".join([*(line[:40] for line in PROSE[:8]), *PROSE[8:11]]) in text
    assert "\n".join(line[41:70] for line in PROSE[:5]) in text
    lines = [(90 if n < 3 else 50, 700 - 12 * n, line[:59]) for n, line in enumerate(PROSE[:6])]
    icon = shown((60, 682, "!"), size=18) + shown((52, 676, "CAUTION"), size=7)
    assert text_of(icon + shown(*lines)) == "! CAUTION " + "\n".join(line[:59] for line in PROSE[:6])


def test_a_word_may_be_parted_between_lines_of_a_title():
    title = shown((50, 720, "Financial Literacy and Stock Mar-"), (50, 690, "ket Participation"), size=16)
    body = [(50, 640 - 12 * n, line) for n, line in enumerate(PROSE)]
    assert text_of(title + shown(*body)).startswith("Financial Literacy and Stock Market\nParticipation\n\n")


def test_a_masthead_above_a_line_is_read_before_the_columns_below_it():
    columns = [(x, 690 - 12 * n, line[:40]) for x in (50, 310) for n, line in enumerate(PROSE)]
    head = [
        (50, 740, "Proposed Rules"),
        (310, 744, "Register"),
        (310, 730, "Vol. 85"),
        (310, 716, "Thursday"),
    ]
    text = text_of(grid((50, 706, 560, 706)) + shown(*head, *columns))
    assert text.index("Thursday") < text.index(PROSE[0][:40])


def test_what_is_cut_off_or_tilted_or_drawn_twice_is_no_part_of_a_line():
    assert text_of(shown((50, 700, "The gate is shut."), (640, 700, "The other page"))) == "The gate is shut."
    twice = shown((50, 700, "Saddle shop")) + shown((51, 699, "Saddle shop"))
    assert text_of(twice) == "Saddle shop"
    assert text_of(shown((50, 700, "paper"), (50, 688, "- A4"), size=16)) == "paper\n- A4"
    for word, step, size in (("houses", 9, 16), ("lilli", 3, 11)):
        places = [(50 + step * n + move, 700 - move, each) for n, each in enumerate(word) for move in (0, 1)]
        assert text_of(shown(*places, size=size)) == word
    draft = b"BT /F1 40 Tf 0.87 0.5 -0.5 0.87 60 560 Tm (Draft of May) Tj ET\n"
    assert text_of(shown((50, 700, "The gate is shut."), (50, 686, "It opens at nine.")) + draft) == (
        "The gate is shut.\nIt opens at nine.\n\nDraft of May"
    )


def test_a_stroke_between_letters_is_an_underscore():
    stroke = grid((72, 699, 76, 699))
    assert text_of(shown((50, 700, "ruoc"), (76, 700, "zhang@brown.edu")) + stroke).startswith("ruoc_zhang@")


def test_numbers_of_pages_are_known_by_their_word_or_as_roman_numerals():
    body = ["The first of the parts.", "The second of the parts.", "The third of the parts."]
    for feet in (
        ("Campus Attacks Page 5", "Campus Attacks Page 6", "Campus Attacks Page 7"),
        ("xiii", "xiv", "xv"),
        ("", "21", "22"),
    ):
        pages = [f"{text}\n\n{foot}".strip() for text, foot in zip(body, feet, strict=True)]
        assert [page.split("\n")[0] for page in without_running_lines(pages)] == body
        assert not any(map(str.isdigit, "".join(without_running_lines(pages))))


@pytest.mark.parametrize("between", ["arXiv:2103.15348v2 [cs.CV] 21 Jun 2021", "2\tZ. Shen et al.", "xiv"])
@pytest.mark.parametrize(
    ("end", "start"), [("a wide range of", "documents and tables."), ("as in [11,", "37], of tables.")]
)
def test_a_sentence_goes_on_behind_stamps_and_heads(between, end, start):
    opened = f"{LINE} {end}"
    whole = "\n\n".join(with_whole_sentences([f"{opened}\n\n{between}", start]))
    assert f"{opened}\n\n{start}" in whole


@pytest.mark.parametrize("is_new_page", [False, True])
def test_a_sentence_goes_on_behind_a_figure_with_a_caption_but_not_behind_prose(is_new_page):
    opened, goes_on = f"{LINE} a wide range", "of documents and tables."
    between = ["2023\t2024\n12\t14", "Figure 2. The flow of a year. It grew."]
    for parts in (between, [*between, "All was well. Then came May."]):
        pages = (
            [opened, "\n\n".join([*parts, goes_on])]
            if is_new_page
            else ["\n\n".join([opened, *parts, goes_on])]
        )
        assert (f"{opened}\n\n{goes_on}" in "\n\n".join(with_whole_sentences(pages))) is (parts is between)


def test_the_first_cell_of_a_row_may_end_with_a_colon():
    rows = [("Servers in:", "2024", "2025", "2026"), ("Closets", "12", "14", "15"), ("Rooms", "9", "8", "7")]
    assert text_of(shown(*placed(rows, (60, 160, 220, 280)))) == "\n".join(map(" | ".join, rows))


def test_two_pages_of_a_spread_are_read_one_after_the_other():
    sides = [
        [(x, 740 - 12 * n - y, f"{name} {n}") for n in range(25)]
        for x, y, name in ((50, 0, "Rent"), (350, 5, "Heat"))
    ]
    assert text_of(shown(*(text for pair in zip(*sides, strict=True) for text in pair))).split("\n\n") == [
        "\n".join(f"{name} {n}" for n in range(25)) for name in ("Rent", "Heat")
    ]


def test_dots_that_lead_to_a_number_are_no_cells():
    rows = [(50, 700 - 12 * n, f"Add lines {n} and {n + 1}") for n in range(1, 5)]
    dots = [(x, y, ".") for _, y, _ in rows for x in range(200, 480, 14)]
    numbers = [(500, y, f"{n}") for n, (_, y, _) in enumerate(rows, 3)]
    assert text_of(shown(*rows, *dots, *numbers)).split("\n") == [
        f"Add lines {n} and {n + 1} | {n + 2}" for n in range(1, 5)
    ]


def test_numbers_of_lines_in_the_margin_are_left_out():
    numbers = [(50 - 6 * (n > 9), 740 - 24 * n, f"{n}") for n in range(1, 26)]
    lines = [(100, 740 - 24 * n, f"{LINE} {n} and") for n in range(4, 24)]
    read = text_of(shown(*numbers, *lines))
    assert read.split("\n") == [line for _, _, line in lines]


def test_names_of_columns_in_several_lines_are_one_row():
    heads = [(150, 706, "People"), (250, 706, "Cases"), (50, 700, "Region"), (350, 700, "Change")]
    heads += [(147, 694, "in 2021"), (244, 694, "of a week")]
    rows = [
        ("Liguria", "1524826", "154", "40.66"),
        ("Marche", "151267", "81", "19.17"),
        ("Lazio", "1", "2", "3.4"),
    ]
    cells = placed(rows, (50, 150, 255, 355), top=674)
    assert text_of(shown(*heads, *cells, size=9)).split("\n") == [
        "Region | People in 2021 | Cases of a week | Change", *map(" | ".join, rows)
    ]  # fmt: skip


def test_columns_between_lines_with_cells_of_their_own_are_read_one_after_the_other():
    lines = [(40, y, 560, y) for y in (380, 740, 760)] + [(x, 380, x, 760) for x in (40, 300, 560)]
    rows = [[(f"{name} {n}", f"{n}0") for n in range(24)] for name in ("Rent", "Heat")]
    cells = [*placed(rows[0], (45, 200), 725), *placed(rows[1], (305, 460), 725)]
    read = text_of(grid(*lines) + shown((45, 745, "Costs"), *sorted(cells, key=lambda each: -each[1])))
    assert read.endswith("\n\n".join("\n".join(map(" | ".join, each)) for each in rows))


def test_words_of_tilted_text_keep_their_blanks():
    drawn = b"BT /F1 11 Tf .87 .5 -.5 .87 100 100 Tm [(Our) -300 (teams) -300 (meet) -300 (here)] TJ ET"
    assert text_of(drawn) == "Our teams meet here"


def test_columns_drawn_before_a_table_above_them_keep_their_order():
    texts = ["the tenant bleeds each heater in", "autumn and keeps a list of them,"] * 9
    columns = [
        [(x, 500 - 12 * n, f"{text} {place}") for n, text in enumerate(texts)]
        for place, x in enumerate((40, 225, 410))
    ]
    read = text_of(shown(*columns[0], *columns[1], *columns[2][:6], *placed(ROWS, (50, 250, 450)), size=9))
    assert read.split("\n\n")[0] == TABLE
    assert [read.index(f"in {place}") for place in range(3)] == sorted(
        read.index(f"in {place}") for place in range(3)
    )
    assert " | " not in read[len(TABLE) :]
