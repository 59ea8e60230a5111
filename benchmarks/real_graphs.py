"""Five real graphs for :mod:`exact_answers`, each as a file that clew reads, made anew from public data.

``metaqa`` and ``2wiki`` and ``tables`` come from the shared data, ``debian`` from ``apt-cache dumpavail``, ``brick`` from
the PyPI package brickschema (BSD-3), of which a wheel or the file Brick.ttl is given. A graph whose data is absent is
None.
"""  # noqa: E501

from __future__ import annotations

import csv
import json
import re
import shutil
import subprocess
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

NAMES = ("metaqa", "2wiki", "debian", "brick", "tables")
#: The ontology of this version, in the wheel.
BRICK = "brickschema/ontologies/1.5/Brick.ttl"
#: Fields of a package that become edges, and their relations.
PACKAGE_EDGES = {
    "Depends": "depends_on",
    "Pre-Depends": "pre_depends",
    "Suggests": "suggests",
    "Recommends": "recommends",
    "Provides": "provides",
}


@dataclass(slots=True)
class Packages:
    """Debian's packages as plain dictionaries: names by relation by package, properties by package."""

    properties: dict[str, dict[str, Any]] = field(default_factory=dict)
    edges: dict[str, dict[str, set[str]]] = field(default_factory=dict)

    def targets(self, relation: str) -> dict[str, set[str]]:
        """Return for each package where a relation leads."""
        return self.edges[relation]


def read_packages() -> Packages | None:
    """Return the packages that apt knows; None where it knows none. Of several versions the first counts."""
    if shutil.which("apt-cache") is None:
        return None
    listing = subprocess.run(["apt-cache", "dumpavail"], capture_output=True, text=True, check=False).stdout
    relations = (*PACKAGE_EDGES.values(), "in_section", "maintained_by", "has_tag")
    packages = Packages(edges={relation: {} for relation in relations})
    for block in listing.split("\n\n"):
        fields = _read_fields(block)
        name = fields.get("Package", "")
        if not name or name in packages.properties:
            continue
        properties: dict[str, Any] = {
            "installed_size": int(fields.get("Installed-Size", "0")),
            "size": int(fields.get("Size", "0")),
            "version": fields.get("Version", ""),
            "priority": fields.get("Priority", ""),
            "architecture": fields.get("Architecture", ""),
        }
        packages.properties[name] = {key: value for key, value in properties.items() if value != ""}
        for key, relation in PACKAGE_EDGES.items():
            names = {
                re.sub(r"[\s(:\[<].*", "", part.strip())
                for part in re.split(r"[,|]", fields.get(key, ""))
                if part.strip()
            }
            packages.edges[relation][name] = names
        packages.edges["in_section"][name] = {fields["Section"]} if "Section" in fields else set()
        packages.edges["maintained_by"][name] = {fields["Maintainer"]} if "Maintainer" in fields else set()
        tags = fields.get("Tag", "").replace("\n", " ")
        packages.edges["has_tag"][name] = {tag.strip() for tag in tags.split(",") if tag.strip()}
    return packages if packages.properties else None


def _read_fields(block: str) -> dict[str, str]:
    fields: dict[str, str] = {}
    key = ""
    for line in block.split("\n"):
        if line[:1] in (" ", "\t") and key:
            fields[key] += "\n" + line
        elif ":" in line:
            key, _, value = line.partition(":")
            fields[key] = value.strip()
    return fields


def write_packages(packages: Packages, path: Path) -> Path:
    """Write packages as JSON lines. Sections, tags and maintainers are nodes with types of their own, whose names
    are those of packages too (``ruby``, ``python``)."""
    kinds = {"in_section": "section", "maintained_by": "maintainer", "has_tag": "tag"}
    nodes: dict[str, dict[str, Any]] = {}
    edges = []
    for name, properties in packages.properties.items():
        nodes[f"package/{name}"] = {"name": name, "types": ["package"], **properties}
    for relation, targets in packages.edges.items():
        kind = kinds.get(relation, "package")
        for name, others in targets.items():
            for other in sorted(others):
                id = f"{kind}/{other}"
                if id not in nodes:
                    type = "virtual package" if kind == "package" else kind
                    nodes[id] = {"name": other.split(" <")[0] or other, "types": [type]}
                edges.append([f"package/{name}", relation, id])
    lines: Iterator[object] = iter([*({"id": id, **node} for id, node in nodes.items()), *edges])
    return _write_lines(path, lines)


def write_gold_triples(source: Path, path: Path) -> Path:
    """Write the gold triples of 2WikiMultihopQA as JSON lines."""
    nodes: dict[str, dict[str, None]] = {}
    edges: list[list[str]] = []
    for line in source.read_text(encoding="utf-8").splitlines():
        question = json.loads(line)
        evidences = question["evidences"]
        ids = question["evidences_id"] or [
            [f"2wiki {head}", "", f"2wiki {tail}"] for head, _, tail in evidences
        ]
        for (head, relation, tail), (head_id, _, tail_id) in zip(evidences, ids, strict=True):
            # "date_information" is the id of every date: a value without an entity's id is a node of its own.
            ends = [
                id if re.search(r"\bQ\d+$", id) else f"2wiki {name}"
                for id, name in ((head_id, head), (tail_id, tail))
            ]
            nodes.setdefault(ends[0], {})[head] = None
            nodes.setdefault(ends[1], {})[tail] = None
            edges.append([ends[0], relation, ends[1]])
    written: list[object] = []
    for id, names in nodes.items():
        first, *aliases = names
        written.append({"id": id, "name": first, "aliases": aliases})
    return _write_lines(path, iter([*written, *edges]))


def write_tables(source: Path, path: Path) -> Path:
    """Write the rows of OTT-QA's tables as nodes: a property for each column, and edges to the table and to the pages
    that its cells link to."""
    lines: list[object] = []
    pages: dict[str, None] = {}
    for line in source.read_text(encoding="utf-8").splitlines():
        table = json.loads(line)
        lines.append(
            {
                "id": f"table/{table['table_id']}",
                "name": table["title"],
                "types": ["table"],
                "url": table["url"],
            }
        )
        header = [cell[0].strip() or "column" for cell in table["header"]]
        for number, cells in enumerate(table["data"]):
            id = f"row/{table['table_id']}/{number}"
            properties: dict[str, Any] = {}
            for column, (text, links) in zip(header, cells, strict=False):
                value = text.strip()
                if value and f"cell {column}" not in properties:
                    properties[f"cell {column}"] = _read_cell(value)
                for link in links:
                    pages[link] = None
                    lines.append([id, "links_to", f"page{link}"])
            name = next((text.strip() for text, _ in cells if text.strip()), id)
            lines.append({"id": id, "name": name, "types": ["row"], "place": number + 1, **properties})
            lines.append([id, "in_table", f"table/{table['table_id']}"])
    for page in pages:
        name = page.removeprefix("/wiki/").replace("_", " ")
        lines.append({"id": f"page{page}", "name": name, "types": ["page"]})
    return _write_lines(path, iter(lines))


def _read_cell(text: str) -> str | int | float:
    """Return a cell as a number if it is one."""
    plain = text.replace(" ", "").replace(",", "")
    if re.fullmatch(r"-?[1-9]\d{0,11}|0", plain):
        return int(plain)
    return float(plain) if re.fullmatch(r"-?\d{1,9}\.\d{1,6}", plain) else text


def write_graph(
    name: str, data: Path, brick: Path | None, folder: Path, packages: Packages | None
) -> Path | None:
    """Write the graph of one of :data:`NAMES` where it is not one file already; None if its data is absent."""
    if name == "metaqa":
        return _existing(data / "metaqa/graph.tsv")
    if name == "2wiki":
        source = _existing(data / "2wikimultihopqa/train500.jsonl")
        return source and write_gold_triples(source, folder / "2wiki.jsonl")
    if name == "tables":
        source = _existing(data / "ottqa/tables.jsonl")
        return source and write_tables(source, folder / "tables.jsonl")
    if name == "debian":
        return None if packages is None else write_packages(packages, folder / "debian.jsonl")
    if brick is None or not brick.is_file():
        return None
    if brick.suffix == ".whl":
        with zipfile.ZipFile(brick) as archive:
            (folder / "Brick.ttl").write_bytes(archive.read(BRICK))
        return folder / "Brick.ttl"
    return brick


def _existing(path: Path) -> Path | None:
    return path if path.is_file() else None


def _write_lines(path: Path, values: Iterator[object]) -> Path:
    with path.open("w", encoding="utf-8") as file:
        file.writelines(json.dumps(value, ensure_ascii=False) + "\n" for value in values)
    return path


#: Languages that fewer than this share of a country's people speak are left out, in percent.
MIN_SPEAKERS = 1.0


def write_countries(folder: Path) -> tuple[Path, Path]:
    """Write the nodes and edges of a graph of countries, languages, currencies, time zones and subdivisions as CSV.

    From Babel's copy of Unicode's CLDR and from pycountry's copy of ISO 3166 (``pip install babel pycountry``;
    neither is a dependency of clew). Languages spoken by under one percent are left out; a currency without an end
    of tender is the present one. Raises ImportError where the packages are absent.
    """
    import pycountry
    from babel import Locale
    from babel.core import get_global

    english = Locale("en")
    nodes: dict[str, dict[str, Any]] = {}
    edges: list[tuple[str, str, str]] = []
    languages, currencies = get_global("territory_languages"), get_global("territory_currencies")
    fractions = get_global("currency_fractions")
    for country in sorted(pycountry.countries, key=lambda each: each.alpha_2):
        code = country.alpha_2
        own = {"type": "country", "name": english.territories.get(code, country.name)}
        own |= {"alpha_2": code, "alpha_3": country.alpha_3, "aliases": country.name}
        nodes[code] = own
        for language, facts in languages.get(code, {}).items():
            name = english.languages.get(language)
            if name is None:
                continue
            is_official = str(facts["official_status"] or "").endswith("official")
            if is_official:
                edges.append((code, "official_language", f"language {language}"))
            if is_official or facts["population_percent"] >= MIN_SPEAKERS:
                edges.append((code, "spoken_language", f"language {language}"))
                nodes[f"language {language}"] = {"type": "language", "name": name}
        for currency, start, end, is_tender in currencies.get(code, ()):
            name = english.currencies.get(currency)
            if name is None or not is_tender:
                continue
            decimals = fractions.get(currency, fractions["DEFAULT"])[0]
            nodes[f"currency {currency}"] = {"type": "currency", "name": name, "decimals": decimals}
            edges.append((code, "former_currency" if end else "currency", f"currency {currency}"))
            if end is None and start is not None:
                own["currency_since"] = start[0]
        for zone in get_global("territory_zones").get(code, ()):
            nodes[f"zone {zone}"] = {"type": "time zone", "name": zone}
            edges.append((code, "time_zone", f"zone {zone}"))
    for part in sorted(pycountry.subdivisions, key=lambda each: each.code):
        nodes[part.code] = {"type": "subdivision", "name": part.name, "kind": part.type}
        edges.append((part.code, "part_of", part.country_code))
    files = folder / "nodes.csv", folder / "edges.csv"
    columns = ("type", "name", "aliases", "alpha_2", "alpha_3", "currency_since", "decimals", "kind")
    with files[0].open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("id", *columns))
        writer.writerows([key, *(own.get(column, "") for column in columns)] for key, own in nodes.items())
    with files[1].open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("head", "relation", "tail"))
        writer.writerows(edges)
    return files
