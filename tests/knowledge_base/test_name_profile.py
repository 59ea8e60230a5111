"""``about``: everything said of a name, in the order of time, with its other names and companions."""

import json
from dataclasses import replace

import pytest

import clew
from clew.core.errors import NotFound, UsageError
from clew.core.types import Table
from clew.store.store import Store
from command_line import run
from retrieve_documents import add
from serve_app import SAMPLES

LEASE = """# Lease of Mill House

Made on 4 May 1921 between Pell & Daughter, Inc., of 3 Quay Street (the "Landlord"), and Ines Calder (the "Tenant").

## 1. Rent

The Tenant shall pay 950 dollars in 1922. The Landlord keeps the roof. Nothing else is due.

## 2. Signatures, 9 June 1921

Signed by Pell & Daughter.
"""
DIARY = """# Diary of Ada Pell

Ines Calder came in March 1919 with Bo Lund. In 1917 Bo Lund and Ines Calder had built the weir.

The tenant of the hut is a heron. Pellworm is an island.

The net operating loss (NOL) of 1920 was small. It had no NOL before.
"""
OTHER = """# Lease of Lock House

The Tenant of Lock House is Bo Lund.
"""
GRAPH = "Ines Calder\tbuilt\tWeir\nBo Lund\tbuilt\tWeir\nInes Calder\tborn in\tCorran\n"


@pytest.fixture(scope="module")
def base(tmp_path_factory, without_encoder):
    folder = tmp_path_factory.mktemp("about")
    for name, text in {"lease.md": LEASE, "diary.md": DIARY, "other.md": OTHER, "people.tsv": GRAPH}.items():
        (folder / name).write_text(text)
    with clew.open(folder / "kb", create=True) as opened:
        opened.add([folder / "lease.md", folder / "diary.md", folder / "other.md"], workers=1)
        opened.graphs.add(folder / "people.tsv")
        yield opened


def statements(profile):
    return [(item["date"], item["text"]) for item in profile.to_dict()["statements"]]


@pytest.mark.slow
def test_everything_said_of_a_person_is_quoted_in_the_order_of_time(base):
    profile = base.about("Ines Calder")
    assert statements(profile) == [
        ("1917", "In 1917 Bo Lund and Ines Calder had built the weir."),
        ("1919-03", "Ines Calder came in March 1919 with Bo Lund."),
        (
            "1921-05-04",
            'Made on 4 May 1921 between Pell & Daughter, Inc., of 3 Quay Street (the "Landlord"), '
            'and Ines Calder (the "Tenant").',
        ),
        ("1922", "The Tenant shall pay 950 dollars in 1922."),  # by the lease alone she is the Tenant
    ]
    for statement in profile.statements:
        assert statement.node.text[slice(*statement.span)] == statement.text
        assert statement.text in base.node(statement.node.id).text
    assert [(alias.name, alias.source) for alias in profile.aliases] == [("Tenant", "lease.md")]
    companions = {item.name: (item.passages, item.documents) for item in profile.companions}
    assert companions["Bo Lund"] == (1, 1) and companions["Landlord"] == (2, 1)
    assert not companions.keys() & {"Ines", "Calder", "Tenant", "March"}
    [entry] = profile.entries
    assert {item.relation: [end.name for end in item.ends] for item in entry.triples} == {
        "built": ["Weir"],
        "born in": ["Corran"],
    }


@pytest.mark.parametrize(
    ("name", "options", "dates"),
    [
        (
            "Pell & Daughter",
            {},
            ["1921-05-04", "1921-06-09", ""],
        ),  # the heading's date; the Landlord's roof
        ("Tenant", {}, ["1917", "1919-03", "1921-05-04", "1922", ""]),  # Ines Calder; and Lock House's
        ("tenant", {}, ["1917", "1919-03", "1921-05-04", "1922", "", ""]),  # a term in any writing: the hut's
        ("tenant", {"documents": ["diary.md"]}, [""]),  # who is the Tenant is said elsewhere
        ("Ines Calder's", {"where": "name = lease.md"}, ["1921-05-04", "1922"]),
        ("NOL", {}, ["1920", ""]),
        ("net operating loss", {}, ["1920", ""]),
        ("Pell", {"documents": ["diary.md"]}, []),  # neither "Pellworm", nor the title of the diary
    ],
)
def test_short_names_hold_in_their_document_and_terms_in_any_writing(base, name, options, dates):
    assert [date for date, _ in statements(base.about(name, **options))] == dates


@pytest.mark.slow
def test_a_misspelt_name_is_offered_and_never_taken(base):
    for wrong, right in {
        "Ines Caldar": "Ines Calder",
        "Ine Calder": "Ines Calder",
        "bo lundd": "Bo Lund",
    }.items():
        profile = base.about(wrong)
        assert not profile and [item.name for item in profile.suggestions] == [right]
    assert base.about("Landlrod").suggestions[0].passages == 2
    assert not base.about("Xi").suggestions and not base.about("Mongolia").suggestions
    with pytest.raises(UsageError, match="the name is empty"):
        base.about(" ")
    with pytest.raises(NotFound):
        base.about("Ines Calder", documents=["absent.md"])


def test_what_is_longer_may_be_somebody_else(base):
    assert [item.name for item in base.about("Pell").longer] == ["Pell & Daughter"]
    assert not base.about("Daughter").aliases  # the Landlord is Pell & Daughter, as a whole
    assert not base.about("Pell", graphs=["people"]).entries


def test_the_command_prints_quotes_with_places_and_json(base):
    printed = run("about", "Ines Calder", "--kb", base.path, "--limit", 2).stdout
    assert printed.startswith("Ines Calder: 4 statements in 2 documents\nalso called Tenant (lease.md)")
    assert (
        "March 1919\n  “Ines Calder came in March 1919 with Bo Lund.”\n    diary.md, Diary of Ada Pell"
        in printed
    )
    assert "(2 more: --limit 0)" in printed and "born in: Corran" in printed
    shape = json.loads(run("about", "Ines Calder", "--kb", base.path, "--json").stdout)
    assert shape == base.about("Ines Calder").to_dict()
    unknown = run("about", "Ines Caldar", "--kb", base.path).stdout
    assert unknown == "Nothing here is called 'Ines Caldar'.\nDid you mean: Ines Calder (2)?\n"


def test_the_caption_of_a_table_is_quoted_once_and_a_table_about_the_name_by_its_rows(base):
    table = Table(("Year", "Ada Strake", "Wages"), (("1920", "here", "3"), ("1921", "away", "4")))
    with Store.open(base.path.parent / "tables", create=True) as store:
        for caption in ("Crew of the Otter", "Otter", "Wages"):
            add(store, f"{caption}.txt", "Tables", replace(table, caption=caption), "The Otter sank.")
        store.catch_up()
        profile = clew.KnowledgeBase(store).about("Otter")
    texts = [(item.node.document_name, item.text) for item in profile.statements if item.node.kind == "row"]
    assert texts == [
        ("Otter.txt", "Otter. 1920: Ada Strake: here; Wages: 3"),
        ("Otter.txt", "Otter. 1921: Ada Strake: away; Wages: 4"),
        ("Crew of the Otter.txt", "Crew of the Otter"),
    ]
    assert "Crew of the Otter" not in {item.name for item in profile.companions}


@pytest.mark.slow
def test_a_profile_of_the_samples_leaves_out_no_sentence_with_the_name(tmp_path):
    with clew.open(tmp_path / "kb", create=True) as opened:
        opened.encoding.set(None)
        opened.add([SAMPLES])
        texts = [node for item in opened.documents() for node in opened.tree(item.key)]
        for name in (
            "Bittern",
            "Hesper Marrable",
            "Fenner Mouth",
            "Garrow",
            "Corran Institute",
            "Lady Annis",
        ):
            having = {node.id for node in texts if node.kind in {"passage", "row"} and name in node.text}
            profile = opened.about(name)
            assert [alias.name for alias in profile.aliases] == []
            assert having and {item.node.id for item in profile.statements} == having
            dates = [item.to_dict()["date"] or "9999" for item in profile.statements]
            assert dates == sorted(dates)
