"""Questions whose answers are computed directly from the raw data in plain Python, for :mod:`exact_answers`.

33 questions over Debian's packages and the Brick ontology, exactly spelled names over MetaQA and Debian, and why
packages are no answers. Answers are ids of nodes, without the name of the graph.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from real_graphs import Packages

Ids = set[str]
BRICK = "https://brickschema.org/schema/Brick#"
OWL_CLASS = "http://www.w3.org/2002/07/owl#Class"


@dataclass(frozen=True)
class DirectQuestion:
    """A question, and the ids of its answers; None where it has to be refused."""

    text: str
    ids: Ids | None


def follow(edges: dict[str, Ids], start: Iterable[str]) -> Ids:
    """Return what one or more edges lead to."""
    reached: Ids = set()
    waiting = list(start)
    while waiting:
        new = edges.get(waiting.pop(), set()) - reached
        reached |= new
        waiting += new
    return reached


def reverse(edges: dict[str, Ids]) -> dict[str, Ids]:
    """Return edges the other way round."""
    backwards: dict[str, Ids] = {}
    for head, tails in edges.items():
        for tail in tails:
            backwards.setdefault(tail, set()).add(head)
    return backwards


def highest(values: dict[str, int], count: int) -> Ids:
    """Return the keys of the highest values, with equals of the last."""
    least = sorted(values.values())[-count:][0]
    return {key for key, value in values.items() if value >= least}


def list_debian_questions(packages: Packages) -> list[DirectQuestion]:
    """Return 20 questions over Debian's packages."""
    properties = packages.properties
    depends, section = packages.targets("depends_on"), packages.targets("in_section")
    suggests, recommends = packages.targets("suggests"), packages.targets("recommends")
    tags, maintainers = packages.targets("has_tag"), reverse(packages.targets("maintained_by"))
    needed_by, in_section = reverse(depends), reverse(section)
    on_libc = follow(needed_by, ["libc6"])
    mail = in_section["mail"]

    def select(test: Callable[[str], Any], among: Iterable[str] = properties) -> Ids:
        return {f"package/{name}" for name in among if test(name)}

    def sizes(name: str) -> dict[str, int]:
        return {f"package/{p}": properties[p]["installed_size"] for p in in_section[name]}

    numbers = {f"package/{name}": len(names) for name, names in depends.items()}
    rows: list[tuple[str, Ids | None]] = [
        (
            "#1 >> in_section >> ruby; not #1 >> depends_on >> ruby",
            select(lambda p: "ruby" not in depends[p], in_section["ruby"]),
        ),
        (
            "at least 500 #1 << maintained_by << #2",
            {f"maintainer/{name}" for name, owned in maintainers.items() if len(owned) >= 500},
        ),
        (
            "#1 : package; #1 >> in_section >> libs; not #1 << depends_on << #2",
            select(lambda p: p not in needed_by, in_section["libs"]),
        ),
        (
            "#1 >> depends_on >>+ libc6; #1 >> in_section >> games",
            select(on_libc.__contains__, in_section["games"]),
        ),
        (
            "#1 >> depends_on >> perl or ruby; #1 >> in_section >> web",
            select(lambda p: depends[p] & {"perl", "ruby"}, in_section["web"]),
        ),
        ("#1 >> in_section >> games; 3 highest #1.installed_size", highest(sizes("games"), 3)),
        ("#1 : package; most #1 >> depends_on >> #2", highest(numbers, 1)),
        ("#1 >> depends_on >> no such package", None),
        (
            "#1.size > 100000000; #1.architecture = all",
            select(lambda p: properties[p]["size"] > 100_000_000 and properties[p]["architecture"] == "all"),
        ),
        (
            "#1 >> depends_on >> #2; #2 >> depends_on >> #1; #1 >> in_section >> libdevel",
            select(lambda p: any(p in depends.get(q, ()) for q in depends[p]), in_section["libdevel"]),
        ),
        ("#1 >> depends_on >> #1", select(lambda p: p in depends[p])),
        (
            "exactly 2 #1 >> depends_on >> #2; #1 >> suggests >> #3; #1 >> in_section >> python",
            select(lambda p: len(depends[p]) == 2 and suggests[p], in_section["python"]),
        ),
        (
            "#1 >> in_section >> games; #1 >> depends_on >> 0ad-data; #1.size < 10",
            select(lambda p: "0ad-data" in depends[p] and properties[p]["size"] < 10, in_section["games"]),
        ),
        (
            "#2 >> depends_on >> #1; #2 >> in_section >> editors; #1 : virtual package",
            {
                f"package/{name}"
                for p in in_section["editors"]
                for name in depends[p]
                if name not in properties
            },
        ),
        (
            "at least 3 #1 >> has_tag >> #2; #1.priority = important",
            select(lambda p: len(tags[p]) >= 3 and properties[p].get("priority") == "important"),
        ),
        (
            "only #1 >> depends_on >> libc6; #1 >> in_section >> utils",
            select(lambda p: depends[p] == {"libc6"}, in_section["utils"]),
        ),
        (
            "#1 : section; at most 100 #1 << in_section << #2",
            {f"section/{name}" for name, members in in_section.items() if len(members) <= 100},
        ),
        (
            "#1 >> suggests >> #2; not #1 >> recommends >> #2; #1 >> in_section >> mail; #2 >> in_section >> mail",
            select(lambda p: (suggests[p] - recommends[p]) & mail, mail),
        ),
        (
            "#1 : package; #1.installed_size between 1000 and 1010",
            select(lambda p: 1000 <= properties[p]["installed_size"] <= 1010),
        ),
        (
            "at least 2 #1 >> depends_on >> #2; #2 >> in_section >> fonts; #1 >> in_section >> games",
            select(lambda p: len(depends[p] & in_section["fonts"]) >= 2, in_section["games"]),
        ),
    ]
    return [DirectQuestion(f"{text}; final answer: #1", ids) for text, ids in rows]


class Ontology:
    """The triples of a Turtle file, as pyoxigraph parses them: what is related, by relation and node."""

    def __init__(self, path: Path) -> None:
        import pyoxigraph

        self.edges: dict[str, dict[str, Ids]] = {}
        self.literals: dict[str, dict[str, Ids]] = {}
        for triple in pyoxigraph.parse(path=str(path), format=pyoxigraph.RdfFormat.TURTLE):
            subject: Any = triple.subject
            other: Any = triple.object
            is_literal = isinstance(other, pyoxigraph.Literal)
            known = self.literals if is_literal else self.edges
            known.setdefault(triple.predicate.value, {}).setdefault(subject.value, set()).add(other.value)

    def related(self, local: str) -> dict[str, Ids]:
        """Return what is related by the relation with that last part of its IRI."""
        (relation,) = [iri for iri in self.edges if iri.endswith((f"#{local}", f"/{local}"))]
        return self.edges[relation]

    def values(self, local: str) -> dict[str, Ids]:
        """Return the literals of a property."""
        (name,) = [iri for iri in self.literals if iri.endswith((f"#{local}", f"/{local}"))]
        return self.literals[name]


def list_brick_questions(ontology: Ontology) -> list[DirectQuestion]:
    """Return 13 questions over the Brick ontology."""
    classes, types = (
        ontology.related("subClassOf"),
        ontology.edges["http://www.w3.org/1999/02/22-rdf-syntax-ns#type"],
    )
    quantity, substance = ontology.related("hasQuantity"), ontology.related("hasSubstance")
    tags, replaced = ontology.related("hasAssociatedTag"), ontology.related("isReplacedBy")
    below = reverse(classes)
    tag_point = "https://brickschema.org/schema/BrickTag#Point"

    def under(name: str) -> Ids:
        return follow(below, [BRICK + name])

    numbers = {tag: len(members) for tag, members in reverse(tags).items()}
    is_tag = {node for node, kinds in types.items() if any(kind.endswith("#Tag") for kind in kinds)}
    rows: list[tuple[str, Ids]] = [
        ("#1 >> subClassOf >> Temperature Sensor", below[BRICK + "Temperature_Sensor"]),
        (
            "#1 >> subClassOf >>+ Sensor; #1 >> Has Quantity >> #2; #1 >> Has Substance >> #3",
            {node for node in under("Sensor") if quantity.get(node) and substance.get(node)},
        ),
        (
            f'#1 << subClassOf <<+ Temperature Sensor; #1 : "{OWL_CLASS}"',
            {n for n in follow(classes, [BRICK + "Temperature_Sensor"]) if OWL_CLASS in types.get(n, ())},
        ),
        (
            "#1 >> subClassOf >>+ Equipment; not #1 << subClassOf << #2",
            {node for node in under("Equipment") if node not in below},
        ),
        (
            "#1 : NodeShape; at least 6 #1 << subClassOf << #2",
            {
                node
                for node, members in below.items()
                if len(members) >= 6 and "http://www.w3.org/ns/shacl#NodeShape" in types.get(node, ())
            },
        ),
        (
            "#1 >> Has associated tag >> Point; not #1 >> subClassOf >>+ Point",
            {node for node, names in tags.items() if tag_point in names} - under("Point"),
        ),
        (
            "#1 >> subClassOf >> Sensor or Alarm",
            below[BRICK + "Sensor"] | below[BRICK + "Alarm"],
        ),
        ("#1 : Tag; most #1 << Has associated tag << #2", highest({t: numbers.get(t, 0) for t in is_tag}, 1)),
        (
            "#1 >> Is replaced by >> #2; #2 >> Is replaced by >> #3",
            {node for node, others in replaced.items() if any(other in replaced for other in others)},
        ),
        (
            "#1 >> subClassOf >> Equipment; #1 >> subClassOf >> Point",
            below[BRICK + "Equipment"] & below[BRICK + "Point"],
        ),
        (
            "#1 >> subClassOf >> Sensor; #1 >> Has Quantity >> #2; not #1 >> Has Substance >> #3",
            {node for node in below[BRICK + "Sensor"] if quantity.get(node) and not substance.get(node)},
        ),
        (
            '#1.deprecatedInVersion = "1.4.0"',
            {node for node, values in ontology.values("deprecatedInVersion").items() if "1.4.0" in values},
        ),
        (
            "#1 >> subClassOf >>+ Setpoint; exactly 3 #1 >> Has associated tag >> #2",
            {node for node in under("Setpoint") if len(tags.get(node, ())) == 3},
        ),
    ]
    return [DirectQuestion(f"{text}; final answer: #1", ids) for text, ids in rows]


# Exactly spelled names


def list_film_names(path: Path, seed: int) -> list[DirectQuestion]:
    """Return questions with one triple over MetaQA: 200 tags without capitals, and 130 other names."""
    heads: dict[tuple[str, str], Ids] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        head, relation, tail = line.split("\t")
        heads.setdefault((relation, tail), set()).add(head)
    chance = random.Random(seed)
    tags = sorted(key for key in heads if key[0] == "has tags" and key[1] == key[1].lower())
    others = sorted(key for key in heads if key[0] != "has tags")
    chosen = [*chance.sample(tags, 200), *chance.sample(others, 130)]
    return [
        DirectQuestion(f"#1 >> {key[0]} >> {_quote(key[1])}; final answer: #1", heads[key]) for key in chosen
    ]


def list_package_names(packages: Packages, seed: int) -> list[DirectQuestion]:
    """Return questions with one triple over Debian: 150 names without a digit, and 130 with digits."""
    needed_by = reverse(packages.targets("depends_on"))
    chance = random.Random(seed)
    plain = sorted(name for name in needed_by if not any(map(str.isdigit, name)))
    others = sorted(set(needed_by) - set(plain))
    return [
        DirectQuestion(
            f"#1 >> depends_on >> {_quote(name)}; final answer: #1", {f"package/{p}" for p in needed_by[name]}
        )
        for name in [*chance.sample(plain, 150), *chance.sample(others, 130)]
    ]


def _quote(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


# Why not


@dataclass(frozen=True)
class Conjunction:
    """A question of independent constraints on one unknown, each with the packages that meet it; a package that was
    drawn."""

    constraints: tuple[tuple[str, Ids], ...]
    drawn: str

    @property
    def text(self) -> str:
        """The question."""
        return "; ".join([*(text for text, _ in self.constraints), "final answer: #1"])

    def missed(self) -> Ids:
        """Return the constraints that the drawn package does not meet."""
        return {text for text, ids in self.constraints if self.drawn not in ids}

    def funnel(self) -> list[tuple[str, int, int]]:
        """Return each constraint with what is left after it, and what there would be without it."""
        every = [ids for _, ids in self.constraints]
        return [
            (
                text,
                len(set.intersection(*every[: place + 1])),
                len(set.intersection(*every[:place], *every[place + 1 :])),
            )
            for place, (text, _) in enumerate(self.constraints)
        ]


def draw_conjunctions(packages: Packages, number: int, seed: int) -> list[Conjunction]:
    """Return questions drawn along the edges of packages, each with a package of which it is asked why not."""
    chance = random.Random(seed)
    depends, section = packages.targets("depends_on"), packages.targets("in_section")
    needed_by, in_section = reverse(depends), reverse(section)
    names = sorted(name for name in packages.properties if depends[name] and section[name])
    conjunctions: list[Conjunction] = []
    while len(conjunctions) < number:
        start = chance.choice(names)
        place, other = sorted(section[start])[0], chance.choice(sorted(depends[start]))
        denied = chance.choice(sorted(needed_by))
        size, least = packages.properties[start]["installed_size"], chance.randint(2, 6)
        large = {p for p, own in packages.properties.items() if own["installed_size"] >= size}
        constraints = (
            (f"#1 >> in_section >> {place}", in_section[place]),
            (f"#1 >> depends_on >> {other}", needed_by[other]),
            (f"#1.installed_size >= {size}", large),
            (
                f"at least {least} #1 >> depends_on >> #2",
                {p for p, others in depends.items() if len(others) >= least},
            ),
            (f"not #1 >> depends_on >> {denied}", set(packages.properties) - needed_by[denied]),
        )
        drawn = chance.choice(sorted(in_section[place] | needed_by[other]))
        conjunctions.append(Conjunction(constraints, drawn))
    return conjunctions
