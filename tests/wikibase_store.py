"""A store in the RDF form of a Wikibase, of the gold triples of 2WikiMultihopQA's comparison questions.

Dates are full values with their precision, people and films have a label without the part in brackets, countries have
the numbers that the data set gives them, and a table of titles leads from an article to its item, as for Wikidata.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path

from clew.core.text import title_names
from sparql_servers import store_turtle

PREFIXES = """
@prefix wd: <http://www.wikidata.org/entity/> . @prefix wdt: <http://www.wikidata.org/prop/direct/> .
@prefix p: <http://www.wikidata.org/prop/> . @prefix ps: <http://www.wikidata.org/prop/statement/> .
@prefix psv: <http://www.wikidata.org/prop/statement/value/> . @prefix v: <http://www.wikidata.org/value/> .
@prefix s: <http://www.wikidata.org/entity/statement/> . @prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
@prefix wikibase: <http://wikiba.se/ontology#> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
"""
#: The properties of the gold triples, and an area to have a quantity.
PROPERTIES = {
    "country": "P17",
    "place of birth": "P19",
    "country of citizenship": "P27",
    "director": "P57",
    "country of origin": "P495",
    "date of birth": "P569",
    "date of death": "P570",
    "publication date": "P577",
    "area": "P2046",
}
_DAY, _MONTH, _YEAR = 11, 10, 9
_FORMS = (
    ("%d %B %Y", _DAY),
    ("%B %d, %Y", _DAY),
    ("%B %d %Y", _DAY),
    ("%d %b %Y", _DAY),
    ("%B %Y", _MONTH),
    ("%Y", _YEAR),
)


def read_date(text: str) -> tuple[str, int] | None:
    """Return a date of the gold triples as a Wikibase has it, with its precision; None for one in another form."""
    for form, precision in _FORMS:
        try:
            date = datetime.strptime(text.strip(), form)
        except ValueError:
            continue
        return f"{date.year:04}-{date.month:02}-{date.day:02}T00:00:00Z", precision
    return None


def describe_properties() -> str:
    """Return the properties as a Wikibase lists them."""
    lines = [
        f"wd:{id} a wikibase:Property ; wikibase:directClaim wdt:{id} ; wikibase:claim p:{id} ; "
        f'wikibase:statementProperty ps:{id} ; wikibase:statementValue psv:{id} ; rdfs:label "{label}"@en .'
        for label, id in {**PROPERTIES, "instance of": "P31"}.items()
    ]
    return PREFIXES + "\n".join(lines) + "\n"


def describe_time(item: str, property: str, time: str, precision: int, number: int) -> str:
    """Return a date of an item: its direct claim, and the statement with the full value."""
    return (
        f'wd:{item} wdt:{property} "{time}"^^xsd:dateTime ; p:{property} s:{item}-{number} .\n'
        f's:{item}-{number} ps:{property} "{time}"^^xsd:dateTime ; psv:{property} v:{item}-{number} .\n'
        f'v:{item}-{number} wikibase:timeValue "{time}"^^xsd:dateTime ; '
        f'wikibase:timePrecision "{precision}"^^xsd:integer .\n'
    )


def describe_quantity(item: str, property: str, amount: str, unit: str, number: int) -> str:
    """Return a quantity of an item: its direct claim, and the statement with the unit."""
    return (
        f'wd:{item} wdt:{property} "{amount}"^^xsd:decimal ; p:{property} s:{item}-{number} .\n'
        f"s:{item}-{number} psv:{property} v:{item}-{number} .\n"
        f'v:{item}-{number} wikibase:quantityAmount "{amount}"^^xsd:decimal ; wikibase:quantityUnit wd:{unit} .\n'
    )


def is_covered(chain: Sequence[Sequence[str]]) -> bool:
    """Return whether a Wikibase can hold a question's gold triples: every relation has a property, every date can be
    read."""
    return all(
        relation in PROPERTIES and ("date" not in relation or read_date(tail) is not None)
        for _, relation, tail in chain
    )


def build_wikibase(
    chains: Iterable[Sequence[Sequence[str]]], known_ids: dict[str, str], folder: Path
) -> tuple[Path, Path]:
    """Make a store of gold triples; return its folder and the table of titles.

    ``known_ids`` has the id of each name that the data set gives one; its most frequent name is the label. Without an
    id, "Ada Strake" and "Ada Strake (engineer)" of one chain are one item.
    """
    ids: dict[str, str] = dict(known_ids)

    def id_of(name: str) -> str:
        return ids.setdefault(name, f"Q{900_000_000 + len(ids)}")

    turtle = [describe_properties()]
    statements: dict[tuple[str, str, str], None] = {}
    names: Counter[str] = Counter()
    for chain in chains:
        ends = {
            name: tail for _, relation, tail in chain if "date" not in relation for name in title_names(tail)
        }
        for head, relation, tail in chain:
            same = next((ends[name] for name in title_names(head) if name in ends), head)
            ids.setdefault(head, id_of(same))
            statements[head, relation, tail] = None
            names.update([head] if "date" in relation else [head, tail])
    for number, (head, relation, tail) in enumerate(statements):
        item, property = id_of(head), PROPERTIES[relation]
        if "date" in relation:
            date = read_date(tail)
            assert date is not None
            turtle.append(describe_time(item, property, *date, number))
        else:
            turtle.append(f"wd:{item} wdt:{property} wd:{id_of(tail)} .\n")
    labels: dict[str, list[str]] = defaultdict(list)
    for name, _ in names.most_common():
        labels[id_of(name)].append(name)
    for item, (name, *_) in labels.items():
        label = re.sub(r" \([^()]*\)$", "", name).replace("\\", "\\\\").replace('"', '\\"')
        turtle.append(f'wd:{item} rdfs:label "{label}"@en .\n')
    titles = folder / "titles.tsv"
    titles.write_text("".join(f"{name}\t{ids[name]}\n" for name in sorted(names)), encoding="utf-8")
    return store_turtle(folder / "store", "".join(turtle)), titles
