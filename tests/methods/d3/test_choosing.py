"""What a model is shown of sections, how an outline is divided, and what its replies choose."""

import re

import pytest

from clew.core.prompts.templates import load_prompt
from clew.methods.d3.chooser import Chooser, Entry
from clew.methods.d3.context_window import ContextWindow
from clew.models import create_language_model
from clew.models.costs import count_prompt_tokens, count_tokens
from scripted import ScriptedServer

QUESTION = "Who owned the lighters?"
ENTRIES = [
    Entry("d:1", ("History",), "The first lighter was built in 1871."),
    Entry("d:2", ("History", "Owners"), "The Tolland Coal Company.", "page 2", "Its director was Maria"),
    Entry("d:3", ("History", "Crews"), "Three men each."),
    Entry("d:4", ("End", "Owners"), "Sold to Brandt in 1931."),
]


def chooser(server, prompt="drill-sections", context=4096, **more):
    form = "paper" if prompt == "drill-paper" else "numbered"
    window = ContextWindow(count_tokens, count_prompt_tokens, context)
    return Chooser(create_language_model(server.llm), load_prompt(prompt), window, form=form, **more)


def test_the_papers_prompt_is_the_papers(snapshot_of):
    with ScriptedServer(["History > Owners, End > Owners"]) as server:
        choice = chooser(server, "drill-paper", condense=False).choose(QUESTION, ENTRIES)
        (request,) = server.requests
    assert choice.indexes == (1, 3)
    assert request.system == ""
    assert request.user == (
        "Document section structure:\n"
        "* Section: History\nThe first lighter was built in 1871.\n"
        "* Section: History > Owners\nThe Tolland Coal Company.\n"
        "* Section: History > Crews\nThree men each.\n"
        "* Section: End > Owners\nSold to Brandt in 1931.\n"
        "Question:\nWho owned the lighters?\n"
        "List all section names that may be relevant for answering the question. Respond with "
        "comma-separated section name list. Provide an empty response if none of the sections are relevant."
    )


def test_our_outline_numbers_entries_and_writes_what_leads_to_them_once():
    with ScriptedServer(["2, 4"]) as server:
        choice = chooser(server).choose(QUESTION, ENTRIES)
        shown = server.requests[0].user
    assert choice.indexes == (1, 3)
    assert shown.startswith(
        "[1] History\nThe first lighter was built in 1871.\n"
        "[2] Owners (page 2)\nThe Tolland Coal Company.\nmatch: Its director was Maria\n"
        "[3] Crews\nThree men each.\n"
        "# End\n[4] Owners\nSold to Brandt in 1931.\n"
    ) or shown.startswith(
        "[1] History\nThe first lighter was built in 1871.\n# History\n[2] Owners (page 2)\n"
    )
    assert choice.calls == 1 and choice.summaries == 4 and choice.unmatched == ()


def test_unknown_names_are_told_and_an_empty_reply_chooses_nothing():
    with ScriptedServer(["12, Owners of Osterby, 3", ""]) as server:
        asked = chooser(server)
        choice = asked.choose(QUESTION, ENTRIES)
        assert choice.indexes == (2,)
        assert choice.unmatched == ("12", "Owners of Osterby")
        assert asked.choose(QUESTION, ENTRIES).indexes == ()
        assert asked.choose(QUESTION, []).calls == 0


MANY = [
    Entry(f"d:{n}", ("Part", f"Section on matter {n}"), f"It tells of matter {n} at some length, " * 3)
    for n in range(60)
]


@pytest.mark.parametrize("prompt", ["drill-paper", "drill-sections"])
def test_an_outline_beyond_the_context_is_divided_between_whole_entries(prompt):
    def reply(request):
        result = re.findall(r"Section on matter (\d+)$", request.user, re.MULTILINE)
        # The last entry of each call, by name.
        return f"Section on matter {result[-1]}"

    with ScriptedServer(reply) as server:
        choice = chooser(server, prompt, context=1000, condense=False).choose(QUESTION, MANY)
        requests = server.requests
    assert choice.calls == len(requests) >= 3
    shown = [
        [int(n) for n in re.findall(r"Section on matter (\d+)$", item.user, re.MULTILINE)]
        for item in requests
    ]
    assert sorted(n for item in shown for n in item) == list(range(60))
    assert choice.indexes == tuple(sorted(item[-1] for item in shown))
    for request in requests:
        assert count_tokens(request.user) + count_tokens(request.system) + 256 <= 1000
        assert request.user.count("It tells of") % 3 == 0  # no summary is cut


def test_condensed_outlines_show_every_name_and_the_summaries_that_are_worth_most():
    worth = [Entry(item.id, item.path, item.summary, priority=float(n)) for n, item in enumerate(MANY)]
    with ScriptedServer(lambda request: "60") as server:
        choice = chooser(server, context=1600).choose(QUESTION, worth)
        (request,) = server.requests
    assert choice.calls == 1 and choice.indexes == (59,)
    assert all(f"Section on matter {n}" in request.user for n in range(60))
    messages = [int(n) for n in re.findall(r"matter (\d+)\nIt tells", request.user)]
    assert messages == list(range(60 - len(messages), 60)) and 0 < len(messages) < 60
    assert choice.summaries == len(messages)


def test_a_condensed_outline_is_no_more_than_a_share_of_what_it_stands_for():
    with ScriptedServer(lambda request: "1") as server:
        chooser(server, share=0.5).choose(QUESTION, MANY, total_tokens=2500)
        assert count_tokens(server.requests[0].user) < 0.5 * 2500 + 100


def test_a_chooser_with_random_names_hides_the_names_of_sections():
    with ScriptedServer(lambda request: re.findall(r"\[2\] (\S+)", request.user)[0]) as server:
        choice = chooser(server, names="uuid").choose(QUESTION, ENTRIES)
        shown = server.requests[0].user
    assert choice.indexes == (1,)
    assert "Owners" not in shown and "History" not in shown and "Tolland Coal" in shown


def test_with_so_many_calls_the_worthiest_entries_are_shown_and_the_rest_is_told():
    worth = [Entry(item.id, item.path, item.summary, priority=float(n)) for n, item in enumerate(MANY)]
    with ScriptedServer(lambda request: "60, 1") as server:
        choice = chooser(server, context=700, calls=1).choose(QUESTION, worth)
        (request,) = server.requests
    shown = [int(n) for n in re.findall(r"Section on matter (\d+)$", request.user, re.MULTILINE)]
    assert shown == list(range(60 - len(shown), 60)) and 0 < len(shown) < 60
    assert choice.left_out == 60 - len(shown) and choice.calls == 1
    assert choice.indexes == (59,) and choice.unmatched == ("1",)
    assert count_tokens(request.user) + count_tokens(request.system) + 256 <= 700
