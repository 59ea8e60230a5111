"""How blocks become passages, whatever the format."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clew.core.errors import UnreadableFile
from clew.core.types import Table, count_left_out
from clew.parse.documents.blocks import (
    ITEM_LENGTH,
    LIST_LENGTH,
    PASSAGE_LENGTH,
    Block,
    Caption,
    Heading,
    Item,
    LeftOut,
    ListBlock,
    Note,
    Paragraph,
    SourceFile,
    Title,
    build_document,
)
from clew.parse.documents.limits import Limits
from parse_trees import check, outline


def build(*blocks: Block, **limits: int) -> list[str]:
    source = SourceFile(
        b"bytes", "folder.name/some file.tar.txt", "text/plain", "test/1", limits=Limits(**limits)
    )
    document = build_document(blocks, source)
    check(document)
    return outline(document)


TABLE = Table(("a", "b"), (("1", "2"),))


def test_a_long_list_of_short_items_is_several_passages_with_the_lead_in_at_the_first() -> None:
    items = tuple(Item(f"item {number} " + "x" * 40) for number in range(60))
    passages = build(Paragraph("These are:"), ListBlock(items))
    assert passages[0].startswith("These are:\n- item 0 ")
    assert all(len(text) <= LIST_LENGTH for text in passages)
    assert min(map(len, passages[:-1])) > LIST_LENGTH - 60
    lines = "\n".join(passages).split("\n")
    assert lines[1:] == [item.to_line() for item in items]


def test_a_lead_in_stays_with_a_long_first_item() -> None:
    long = "word " * (ITEM_LENGTH // 4)
    passages = build(Paragraph("Note:"), ListBlock((Item(long), Item("short"))))
    assert passages == [f"Note:\n- {long.strip()}", "- short"]


def test_only_the_paragraph_right_before_a_list_leads_into_it() -> None:
    listed = ListBlock((Item("x"),))
    assert build(Paragraph("So:"), Heading(1, "H"), listed) == ["So:", "# H", "- x"]
    assert build(Paragraph("So:"), TABLE, listed) == ["So:", "| So. 1: b: 2", "- x"]
    assert build(Paragraph("Not so."), listed) == ["Not so.", "- x"]
    assert build(listed, listed) == ["- x", "- x"]


def test_a_caption_goes_to_one_table_only() -> None:
    captioned = Table(("a", "b"), (("1", "2"),), "Own")
    assert build(Caption("C"), TABLE, Paragraph("x")) == ["| C. 1: b: 2", "x"]
    assert build(TABLE, Caption("C"), TABLE) == ["| 1: b: 2", "| C. 1: b: 2"]
    assert build(TABLE, Caption("C"), Caption("D")) == ["| C. 1: b: 2", "D"]
    assert build(Caption("C"), captioned) == ["C", "| Own. 1: b: 2"]
    assert build(captioned, Caption("C")) == ["| Own. 1: b: 2", "C"]
    assert build(Caption("C"), Heading(1, "H"), TABLE) == ["C", "# H", "| 1: b: 2"]
    assert build(TABLE, Heading(1, "H"), Caption("C")) == ["| 1: b: 2", "# H", "C"]


def test_a_long_paragraph_is_divided_after_sentences_lines_or_words() -> None:
    sentence = "This sentence has exactly some words. "
    for text, end in ((sentence * 400, "."), (("line of words\n") * 1_000, "s"), ("word " * 3_000, "d")):
        passages = build(Paragraph(text))
        assert all(PASSAGE_LENGTH / 2 < len(part) <= PASSAGE_LENGTH for part in passages[:-1])
        assert all(part.endswith(end) for part in passages)
        assert "".join(passages).replace(" ", "").replace("\n", "") == text.replace(" ", "").replace("\n", "")
    assert list(map(len, build(Paragraph("x" * 10_000)))) == [4_000, 4_000, 2_000]


def test_titles_in_order_of_trust() -> None:
    def title(*blocks: Block) -> str:
        return build_document(blocks, SourceFile(b"", "dir/name.v2.txt", "text/plain", "test/1")).title

    text = Paragraph("x")
    assert title(Title(" Own "), Title("Later"), Heading(1, "H"), text) == "Own"
    assert title(Heading(2, "Low"), Heading(1, "H"), Heading(1, "I"), text) == "H"
    assert title(Heading(2, "Low"), Title(""), text) == "name.v2"
    assert title(Heading(1, " "), text) == "name.v2"


def test_limits_are_on_the_whole_document() -> None:
    blocks_of_each_kind = (Heading(1, "H"), Paragraph("12345"), Table(("a", "b"), (("1", "2"),) * 3))
    build(*blocks_of_each_kind, nodes=6, characters=12)
    with pytest.raises(UnreadableFile, match="too many passages"):
        build(*blocks_of_each_kind, nodes=4)
    with pytest.raises(UnreadableFile, match="too much text"):
        build(*blocks_of_each_kind, characters=11)


def test_blocks_without_text_are_refused_as_a_document() -> None:
    for blocks in (
        (),
        (Title("T"),),
        (Paragraph(" \n"),),
        (Heading(1, " "),),
        (Table((), ()),),
        (Note("n"),),
    ):
        with pytest.raises(UnreadableFile, match="holds no text"):
            build(*blocks)


words = st.text(st.sampled_from("ab .:\n"), max_size=30)
blocks = st.one_of(
    st.builds(Heading, st.integers(1, 6), words),
    st.builds(Paragraph, words),
    st.builds(Caption, words),
    st.builds(ListBlock, st.lists(st.builds(Item, words, st.integers(0, 3)), max_size=4).map(tuple)),
    st.just(TABLE),
    st.builds(Title, words),
)


@pytest.mark.slow
@settings(max_examples=150, deadline=None)
@given(st.lists(blocks, max_size=8))
def test_no_word_is_lost_whatever_comes_together(given_blocks: list[Block]) -> None:
    try:
        passages = build(*given_blocks)
    except UnreadableFile as refused:
        assert "no text" in refused.problem
        passages = []
    letters = "".join(passages)
    expected = 0
    for block in given_blocks:
        match block:
            case Heading(_, text) | Paragraph(text) | Caption(text):
                expected += text.count("a")
            case ListBlock(items):
                expected += sum(item.text.count("a") for item in items)
    # A caption stands before each of its table's rows: here there is one. So does a line that introduces the table.
    introducing = [str(block).count("a") for block in given_blocks if ":" in str(block)]
    repeated = sum(introducing) if TABLE in given_blocks else 0
    assert expected <= letters.count("a") <= expected + repeated


@pytest.mark.parametrize(
    ("above", "title"),
    [
        ((Paragraph("We sell ropes. Sales were as follows:"),), "Sales were as follows. "),
        ((Paragraph("(In thousands)"),), "(In thousands). "),
        ((Heading(2, "Sales, in $ millions"),), "Sales, in $ millions. "),
        ((Paragraph("We sell ropes and sails in two countries."),), ""),
        ((Paragraph("Sales were as follows:"), Heading(2, "Costs")), ""),
    ],
)
def test_a_table_has_the_sentence_or_the_scale_above_it(above, title) -> None:
    source = SourceFile(b"", "a.txt", "text/plain", "test/1")
    table = Table(("", "2022"), (("Ropes", "$ 12"),))
    document = build_document([*above, table], source)
    (shown,) = [node for node in document.nodes if node.table is not None]
    assert document.nodes[-1].text == f"{title}Ropes: 2022: $ 12"
    assert shown.name == "" and shown.table.columns[1].scale == {"(In": 1e3, "Sales,": 1e6}.get(
        title.split(" ")[0], 1.0
    )
    # The paragraph itself is read, too.
    assert [node.text for node in document.nodes if node.kind in {"passage", "section"}] == [
        item.text for item in above
    ]


def test_paragraphs_that_are_numbered_below_a_lead_in_are_its_list() -> None:
    lead = Paragraph("The keeper shall:")
    marked = [
        Paragraph(f"{mark} {text}")
        for mark, text in (("(a)", "wind the clock;"), ("(b)", "sweep the stair."))
    ]
    passage = "The keeper shall:\n(a) wind the clock;\n(b) sweep the stair."
    assert build(lead, *marked, Paragraph("He is paid monthly.")) == [passage, "He is paid monthly."]
    # Roman and plain numbers go on, too; what does not go on in order is no item.
    assert build(lead, Paragraph("i) one"), Paragraph("ii) two"), Paragraph("iii) three"))[0].count("\n") == 3
    assert build(lead, *marked, Paragraph("(d) four"))[1:] == ["(d) four"]
    assert build(Paragraph("The keeper is paid."), *marked)[1:] == [
        "(a) wind the clock;",
        "(b) sweep the stair.",
    ]


def test_what_a_colon_introduces_stays_with_it() -> None:
    command = Paragraph("systemctl stop lamp.service")
    assert build(Paragraph("Stop the lamp with:"), command) == [
        "Stop the lamp with:\nsystemctl stop lamp.service"
    ]
    assert len(build(Paragraph("Stop the lamp with:"), Heading(2, "Oil"), command)) == 3
    assert len(build(Paragraph("Stop the lamp with:"), Paragraph("x" * LIST_LENGTH))) == 2


def test_the_last_sentence_of_a_long_paragraph_leads_into_a_list() -> None:
    story = "The lamp was lit in 1871 and has burned each night since then. " * 9
    first, second = build(Paragraph(f"{story}The keeper has:"), ListBlock((Item("a clock"), Item("a boat"))))
    assert first == story.strip() and second == "The keeper has:\n- a clock\n- a boat"


def test_words_that_are_left_out_are_counted_by_reason():
    blocks = [
        Paragraph("The rent is 120 crowns."),
        LeftOut("struck out", "90 crowns"),
        LeftOut("hidden", "ask us"),
    ]
    document = build_document(
        [*blocks, LeftOut("struck out", "a year")], SourceFile(b"bytes", "lease.txt", "text/plain", "test/1")
    )
    assert document.text == "The rent is 120 crowns."
    assert count_left_out(document.left_out) == {"struck out": 4, "hidden": 2} and not document.notes
    assert document.left_out == (
        ("struck out", "90 crowns", 1),
        ("hidden", "ask us", 1),
        ("struck out", "a year", 1),
    )
