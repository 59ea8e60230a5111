import random

import pytest

from clew.core.document_filter import compare_values, document_fields, parse_condition, select_documents
from clew.core.errors import UsageError
from clew.core.types import Document

AUTHORS = ("Ada Strake", "Élodie Brun", "Jo Wu")
TAGS = ("lease", "Offer", "draft", "2021")
DATES = ("2019", "2020-02", "2020-12-31", "2021-01-01", "2021-07", "2022-03-05")


def random_documents(rng, count=40):
    documents = []
    for number in range(count):
        fields = [("tag", tag) for tag in TAGS if rng.random() < 0.4]
        fields += [("author", author) for author in AUTHORS if rng.random() < 0.3]
        fields += [("date", rng.choice(DATES))] if rng.random() < 0.8 else []
        folder = rng.choice(["", "contracts", "contracts/2020", "mail"])
        documents.append(
            Document(
                f"{number:032x}",
                f"f{number}.pdf",
                f"Title {number % 7}",
                rng.choice(["application/pdf", "text/plain", "message/rfc822"]),
                "pdf/2",
                rng.randrange(30),
                5,
                (f"/docs/{folder}/f{number}.pdf",),
                rng.choice(["en", "de", ""]),
                tuple(fields),
                (folder,) if folder else (),
            )
        )
    return documents


def days(date):
    """Return every day of a date, each month taken to have 31."""
    year, month, day = (*date.split("-"), "", "")[:3]
    months = [month] if month else [f"{n:02}" for n in range(1, 13)]
    return [f"{year}-{m}-{d}" for m in months for d in ([day] if day else [f"{n:02}" for n in range(1, 32)])]


def brute(document, field, operator, value):
    """Compare without the code under test: dates day by day, numbers as integers, names by hand."""
    stored = dict.fromkeys(v for name, v in document.fields if name == field)
    parts = [part for folder in document.folders for part in folder.split("/")]
    others = {
        "tag": parts,
        "kind": [{"application/pdf": "pdf", "text/plain": "text"}.get(document.media_type, "mail")],
        "pages": [str(document.pages)],
        "language": [document.language] if document.language else [],
        "folder": ["/".join(parts[: n + 1]) for n in range(len(parts))],
    }
    plain = str.maketrans("éÉ", "ee")
    for each in [*stored, *others.get(field, ())]:
        if field == "date":
            left, right = days(each), days(value)
            holds = {
                "=": set(left) <= set(right),
                "<": max(left) < min(right),
                "<=": max(left) <= max(right),
                ">": min(left) > max(right),
                ">=": min(left) >= min(right),
            }
        elif field == "pages":
            left, right = int(each), int(value)
            holds = {"=": left == right, "<": left < right, "<=": left <= right, ">": left > right}
            holds[">="] = left >= right
        else:
            left, right = (text.lower().translate(plain) for text in (each, value))
            left, right = left.replace("/", " "), right.replace("/", " ")
            holds = {"=": left == right, "~": right in left, "<": left < right, "<=": left <= right}
            holds |= {">": left > right, ">=": left >= right}
        if holds[operator]:
            return True
    return False


def random_predicate(rng, depth=0):
    """Return a condition as text, and its value for a document worked out by :func:`brute`."""
    if depth < 3 and rng.random() < 0.6:
        left, right = random_predicate(rng, depth + 1), random_predicate(rng, depth + 1)
        kind = rng.choice(["and", "or", "not"])
        if kind == "not":
            return f"not ({left[0]})", lambda document: not left[1](document)
        if kind == "and":
            return f"({left[0]}) AND {right[0]}" if " or " not in right[
                0
            ] else f"({left[0]}) and ({right[0]})", (
                lambda document: left[1](document) and right[1](document)
            )
        return f"({left[0]} or {right[0]})", lambda document: left[1](document) or right[1](document)
    field, values, operators = rng.choice(
        [
            ("date", [*DATES, "2020", "2021"], ["=", "<", "<=", ">", ">="]),
            ("pages", ["0", "7", "15", "29"], ["=", "<", "<=", ">", ">="]),
            ("tag", ["Lease", "offer", "2020", "contracts"], ["="]),
            ("tag", ["eas", "ra"], ["~"]),
            ("author", ["elodie brun", "JO WU"], ["="]),
            ("kind", ["pdf", "mail"], ["="]),
            ("language", ["de"], ["="]),
            ("folder", ["contracts/2020", "mail"], ["="]),
        ]
    )
    value, operator = rng.choice(values), rng.choice(operators)
    quoted = f'"{value}"' if " " in value or rng.random() < 0.3 else value
    if operator == "=" and rng.random() < 0.2:
        other = {"date": "1999", "pages": "99"}.get(field, "nothing")
        return f"{field} in ({quoted}, {other})", lambda document: brute(document, field, "=", value)
    if operator == "=" and rng.random() < 0.2:
        return f"{field} != {quoted}", lambda document: not brute(document, field, "=", value)
    return f"{field}{operator}{quoted}", lambda document: brute(document, field, operator, value)


def test_fifty_random_conditions_select_what_a_filter_by_hand_does():
    rng = random.Random(0)
    documents = random_documents(rng)
    sizes = set()
    for _ in range(50):
        text, holds = random_predicate(rng)
        expected = {document.key for document in documents if holds(document)}
        assert select_documents(documents, text) == expected, text
        sizes.add(len(expected))
    assert len(sizes) > 15  # conditions that select everything or nothing would show little


@pytest.mark.parametrize(
    ("text", "position", "problem"),
    [
        ("", 1, "a field is expected"),
        ("date", 5, "one of = != < <= > >= ~ or in is expected"),
        ("date >=", 8, "a value after >= is expected"),
        ("date >= 2021 tag = lease", 14, "'tag' is not expected"),
        ("date >= 2021 and", 17, "a field is expected"),
        ("(date >= 2021", 1, "a bracket is not closed"),
        ("date >= 2021)", 13, "')' is not expected"),
        ("date => 2021", 7, "a value after = is expected, not '>'"),
        ("tag = 'lease", 7, "a quotation mark is not closed"),
        ("tag in lease", 8, "( is expected after in"),
        ("tag in (lease", 8, "a bracket is not closed"),
        ("= lease", 1, "a field is expected, not '='"),
        ("not " * 60 + "tag = a", 205, "nested too deeply"),
        ("tag = q1 plan", 10, "'plan' is not expected"),
        ("date >= yesterday", 9, "'yesterday' is no date"),
        ("date > 2021-13", 8, "'2021-13' is no date"),
        ("date in (2021, 05/03/2021)", 16, "'05/03/2021' is no date"),
        ("pages > ten", 9, "'ten' is no number"),
        ("tga = lease", 1, "no document has a field 'tga'"),
    ],
)
def test_a_mistake_is_named_with_its_position(text, position, problem):
    with pytest.raises(UsageError) as raised:
        select_documents(random_documents(random.Random(1), 3), text)
    assert problem in raised.value.problem
    assert f"at character {position} of" in raised.value.problem
    if problem.startswith("no document"):
        assert raised.value.hint == "did you mean 'tag'?"


def test_dates_in_several_writings_and_fields_that_are_missing():
    day, month = {"date": ["2021-03-05"]}, {"date": ["2021-03"]}
    for text in (
        "date = 2021-3-5",
        "date == '5 March 2021'",
        'date = "March 5th, 2021"',
        "date = 05.03.2021",
        "date=20210305",
    ):
        assert parse_condition(text).matches(day) and not parse_condition(text).matches(month), text
    assert parse_condition("date = 'March 2021'").matches(day)
    assert parse_condition("date in (2020, 'March 2021')").matches(day)
    for text in ("author = ''", 'not author != ""', "author in ('', Wu)"):
        assert parse_condition(text).matches({"date": ["2021"]}), text
        assert not parse_condition(text).matches({"author": ["Ada"]}), text
    assert parse_condition("tag = UEBERGABE").matches({"tag": ["uebergabe"]})
    assert parse_condition("tag = 'ubergabe nord'").matches({"tag": ["Übergabe  Nord"]})


def test_dates_are_spans():
    assert compare_values("2021-12-31", "<=", "2021") and not compare_values("2022", "<=", "2021")
    assert not compare_values("2021", "=", "2021-03") and compare_values("2021-03", "=", "2021")
    assert not compare_values("2021", ">", "2021-03") and not compare_values("2021", "<", "2021-03")


def test_fields_that_every_document_has():
    document = random_documents(random.Random(3), 1)[0]
    assert {"name", "title", "kind", "pages"} <= document_fields(document).keys()
    assert not parse_condition("author = x").matches({}) and parse_condition("author != x").matches({})
