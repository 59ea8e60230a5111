"""A plain question as typed triples over a graph, without a language model.

The names in the question are looked up in the graph (:mod:`clew.triples.questions.names`); from each, the paths of
one to three hops are scored against the question's other words (:mod:`clew.triples.questions.paths`,
:mod:`clew.triples.questions.scoring`); conditions, further names and superlatives are added to the best
(:mod:`clew.triples.questions.conditions`). What comes out is what a person could have written, and is executed
as such.
"""

from __future__ import annotations

import re
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import TYPE_CHECKING

import numpy as np

from clew.core.errors import UsageError
from clew.core.values import EITHER, POLAR, asks_for_equality, is_order_word
from clew.triples.language.chain import Chain, Condition, Term, Triple, TypedChain
from clew.triples.language.wordings import OWN_VALUE
from clew.triples.query import compile_question, solve_question
from clew.triples.questions.comparisons import find_comparison, find_count_comparison
from clew.triples.questions.conditions import Additions, asks_measure, find_additions, is_denied
from clew.triples.questions.names import HOPELESS, NameMatch, find_names
from clew.triples.questions.paths import (
    CERTAIN_NAME,
    MAX_RELATIONS,
    NAMES_RELATION,
    PathSpace,
    QuestionWords,
    count_mentions,
    measure_paths,
)
from clew.triples.questions.scoring import PathScorer, load_scorer
from clew.triples.questions.verdicts import find_verdict
from clew.triples.questions.words import (
    GENERIC,
    Word,
    label_affinity,
    names_inverse,
    split_words,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from clew.core.arrays import Floats
    from clew.core.protocols import Encoder, PropertyGraph
    from clew.triples.engine.candidates import RowSet

#: Readings that are executed to see whether they have answers, and that are shown.
MAX_TRIED, SHOWN_READINGS = 6, 3
#: So many of the likeliest paths of one hop are tried in any case.
MAX_SHORT = 4
#: A reading with at least this probability, all of whose words are accounted for, is answered.
SURE = 0.6
#: A reading whose relation no word names has to be at least this likely.
OBVIOUS = 0.9
#: What a condition that a reading expresses adds to its score, and one that it does not express takes from it.
PER_CONDITION = 2.0
#: What it takes from the score of a reading that it leads to nodes of another type than is asked for.
PER_MISTYPED = 4.0
#: After a reading with at least this probability no other is looked at.
SETTLED = 0.95
#: Names less plausible than this do not make a question one about a graph.
MIN_PLAUSIBILITY = 0.35
#: The least affinity of a word to a type whose nodes are read without a name.
NAMES_TYPE = 0.8
#: A word with at least this affinity to a relation is its own, not one that means the same.
OWN_WORD = 0.95
#: How the doubt begins that names the words a reading leaves out.
UNEXPLAINED = "nothing stands for: "
_IN_BRACKETS = re.compile(r"[\s?!.]*\([^()]*\)")
#: Graphs whose paths are remembered in a process.
_REMEMBERED = 8


@dataclass(frozen=True, slots=True, eq=False)
class Reading:
    """One meaning of a question in one graph.

    ``triples`` are typed triples or, where ``is_chain``, a chain whose last hop reads a property. ``probability`` is
    among all readings of the question. ``left_out`` are the words that nothing in it stands for, ``notes`` say what
    it could not express. ``count`` is the number of answers, None for a chain. ``repair`` says what the graph settled
    and not the words: a likelier reading that has no answers, relations that no word tells apart; "" for nothing.
    ``is_certain_name``: ``name`` is written in the question as in the graph, or hardly anything else.
    ``ends_plainly``: what is asked for has a type, a general word ("films") or a condition to say it. ``is_only``:
    nothing else leads from the name to it. ``is_joined``: several relations are read as one. ``is_type``: ``name`` is
    not a node but the type of the answers. ``settled`` is what follows from what it leads to: one of two names that
    are compared, yes or no.
    """

    graph: str
    triples: str
    probability: float
    name: str
    hops: tuple[str, ...]
    is_chain: bool = False
    asks_count: bool = False
    left_out: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    explained: float = 0.0
    plausibility: float = 0.0
    is_certain_name: bool = False
    names_end: bool = False
    ends_plainly: bool = False
    is_only: bool = False
    is_joined: bool = False
    count: int | None = None
    answers: bytes = b""
    repair: str = ""
    is_type: bool = False
    settled: str = ""

    @property
    def is_sure(self) -> bool:
        """Whether it may be answered: likely enough, every hop and every word accounted for, and not empty."""
        return (
            self.probability >= SURE
            and self.is_explained
            and self.plausibility >= MIN_PLAUSIBILITY
            and not self.left_out
            and not self.notes
            and self.count != 0
        )

    @property
    def is_explained(self) -> bool:
        """Whether the question names every hop. Where it does not name the one at the name ("films of Ada Pell", "who
        acted in the films of Ada Pell"), the relation that leads on has to leave hardly another, or to be the only
        one there is."""
        if self.explained >= NAMES_RELATION:
            return True
        if self.names_end and self.is_only and self.ends_plainly and self.is_certain_name:
            return True
        return self.names_end and not self.is_joined and self.probability >= OBVIOUS

    @property
    def doubts(self) -> tuple[str, ...]:
        """What speaks against it, in words; nothing where it is sure."""
        doubts = []
        if self.probability < SURE:
            doubts.append(f"another reading is about as likely ({self.probability:.0%})")
        if not self.is_explained:
            doubts.append("no word of the question names one of its relations")
        if self.plausibility < MIN_PLAUSIBILITY:
            doubts.append(f"'{self.name}' may not be meant as a name")
        if self.left_out:
            doubts.append(f"{UNEXPLAINED}{', '.join(self.left_out)}")
        if self.count == 0:
            doubts.append("it has no answers")
        return (*doubts, *self.notes)


@dataclass(frozen=True, slots=True)
class PlainParser:
    """Reads plain questions. ``encoder`` compares words that neither stems nor the lexicon know; None: they stay
    open. Spaces of graphs are remembered in the process.
    """

    encoder: Encoder | None = None
    scorer: PathScorer = field(default_factory=load_scorer)

    def read(self, question: str, graphs: Sequence[PropertyGraph]) -> list[Reading]:
        """Return the readings of a question in all graphs, the likeliest first, at most :data:`SHOWN_READINGS`.

        A reading without answers comes after those that have some. Mounted graphs are not read: each look-up would be
        a query over a network.
        """
        drafts: list[_Draft] = []
        settled: list[Reading] = []
        for graph in graphs:
            if not graph.is_mounted and graph.size:
                drafts += self._draft(question, graph)
                settled += [*self._compare(question, graph), *self._judge(question, graph)]
        settled.sort(key=lambda reading: (not reading.is_sure, len(reading.left_out)))
        if settled and settled[0].is_sure:
            return settled[:1]
        readings = self._read_drafts(drafts) if drafts else []
        if POLAR.search(question) and not EITHER.search(question):
            readings = [_say_yes(reading) for reading in readings]
        return [*settled[:1], *readings][:SHOWN_READINGS]

    def _judge(self, question: str, graph: PropertyGraph) -> list[Reading]:
        """Return the yes or no to a question about one edge, if it asks for that."""
        if not POLAR.search(question):
            return []
        words = split_words(question)
        names, space = _without_other_writings(find_names(graph, question, words)), open_space(graph)
        asked = QuestionWords.read(words, space, self.encoder, names)
        verdict = find_verdict(question, asked, names, space)
        if verdict is None:
            return []
        return [
            Reading(
                graph.name,
                str(verdict.triples),
                1.0,
                verdict.name,
                (verdict.relation,),
                left_out=verdict.left_out,
                explained=1.0,
                plausibility=1.0,
                count=1,
                settled="yes" if verdict.is_yes else "no",
            )
        ]

    def _compare(self, question: str, graph: PropertyGraph) -> list[Reading]:
        """Return the comparison of two names that a question asks of a graph, if it does."""
        words = split_words(question)
        if not any(is_order_word(word.text) for word in words) and asks_for_equality(question) is None:
            return []
        names, space = find_names(graph, question, words), open_space(graph)
        if len(names) < 2:
            return []
        asked = QuestionWords.read(words, space, self.encoder, names)
        comparison = find_comparison(question, asked, names, space)
        if comparison is None or not comparison.settled or comparison.left_out:
            counted = find_count_comparison(question, asked, names, space)
            if counted is not None:
                return [
                    Reading(
                        graph.name,
                        str(counted.triples),
                        1.0,
                        counted.first.name,
                        (space.relations[counted.directed // 2],),
                        left_out=counted.left_out,
                        notes=() if counted.settled else (f"neither has more: {counted.counts}",),
                        explained=1.0,
                        plausibility=1.0,
                        count=1,
                        repair=counted.counts,
                        settled=counted.settled,
                    )
                ]
        if comparison is None:
            return []
        return [
            Reading(
                graph.name,
                comparison.chain,
                1.0,
                comparison.first.name,
                tuple(space.relations[hop // 2] for hop in comparison.hops),
                is_chain=True,
                left_out=comparison.left_out,
                notes=comparison.notes,
                explained=comparison.explained,
                plausibility=1.0,
                count=1 if comparison.settled else 0,
                settled=comparison.settled,
            )
        ]

    def _read_drafts(self, drafts: Sequence[_Draft]) -> list[Reading]:
        """Return the readings of the likeliest drafts, the likeliest first."""
        base = _softmax(np.array([draft.score for draft in drafts]))
        order = np.argsort(-base, kind="stable")
        tried: dict[int, Reading] = {}
        scores = np.array([draft.score for draft in drafts])
        for place in [*order[:MAX_TRIED].tolist(), *_short_paths(drafts, order)]:
            reading, gain = drafts[place].finish(abs(self.scorer.weight("words unexplained")))
            tried[place] = reading
            scores[place] += gain
            if base[place] >= SETTLED and reading.count != 0 and not gain:
                break
        _join_open_relations(drafts, tried, scores)
        empty = [place for place in tried if tried[place].count == 0]
        # What the graph rules out leaves its share to the others.
        if any(reading.count != 0 for reading in tried.values()):
            scores[[place for place, reading in tried.items() if reading.count == 0]] = -np.inf
        merged = _merge_readings(tried, _softmax(scores))[:SHOWN_READINGS]
        likeliest = int(order[0])
        if merged and likeliest in empty and merged[0].count != 0:
            repair = f"the likelier reading has no answers: {tried[likeliest].triples}"
            merged[0] = replace(merged[0], repair="; ".join(filter(None, (merged[0].repair, repair))))
        return merged

    def _draft(self, question: str, graph: PropertyGraph) -> list[_Draft]:
        """Return the paths from the names of a question in one graph, each with its score."""
        words = split_words(question)
        names = find_names(graph, question, words)
        space = open_space(graph)
        names = _without_other_writings(_without_type_words(names, words, space))
        if not any(name.plausibility >= MIN_PLAUSIBILITY for name in names):
            of_types = self._draft_types(question, words, space)
            if of_types or not names:
                return of_types
        asked = QuestionWords.read(words, space, self.encoder, names)
        allowed = _allowed_relations(asked, space)
        drafts: list[_Draft] = []
        measured = asks_measure(question, asked)
        denied = [name for name in names if is_denied(asked, name, names)]
        for name in names:
            if name in denied and len(denied) < len(names):
                continue  # "not directed by Ada" is a condition on what another name leads to
            paths = space.paths(space.at_rows(name.rows), allowed)
            if not len(paths):
                continue
            if measured:
                last = paths[np.arange(len(paths)), (paths >= 0).sum(axis=1) - 1]
                paths = paths[(last // 2 < space.edge_relations) & ~space.leads_to_numbers[last]]
                if not len(paths):
                    continue
            features = measure_paths(asked, name, paths, space)
            scores = self.scorer.scores(features)
            order = np.argsort(-scores, kind="stable")
            # What the words beside a path of one hop leave open may be conditions.
            short = order[paths[order, 1] < 0][:MAX_SHORT]
            best = np.unique(np.concatenate([order[: 2 * MAX_TRIED], short]))
            rest = np.delete(scores, best)
            drafts += [
                _Draft(question, space, asked, name, names, paths[place], float(scores[place]))
                for place in best
            ]
            if len(rest):  # the others count for the probability, not one by one
                together = float(rest.max() + np.log(np.exp(rest - rest.max()).sum()))
                drafts[-1] = replace(drafts[-1], score=float(np.logaddexp(drafts[-1].score, together)))
        return drafts

    def _draft_types(self, question: str, words: Sequence[Word], space: PathSpace) -> list[_Draft]:
        """Return the readings of a question without a name: nodes of the type that it asks for, with conditions."""
        if not space.has_types:
            return []
        asked = QuestionWords.read(words, space, self.encoder)
        drafts = []
        fits = asked.type_affinities[list(asked.focus)].max(axis=0, initial=0.0)
        if asked.kind:
            of_kind = [asked.kind in label.kinds or asked.kind in label.stems for label in space.type_labels]
            fits = np.array(of_kind, dtype=np.float64)
        for place in np.flatnonzero(fits >= NAMES_TYPE):
            nothing = NameMatch(0, 0, "", np.empty(0, dtype=np.int64), True, 1.0)
            path = np.array([space.type_start(int(place)), -1, -1])
            draft = _Draft(question, space, asked, nothing, (), path, 0.0)
            if draft.find_conditions().size or draft.find_conditions().asks_count:
                drafts.append(draft)
        return drafts


def _say_yes(reading: Reading) -> Reading:
    """Return the reading of a question for a yes or no: where it is sure and has answers, there are such things."""
    is_named = reading.explained >= NAMES_RELATION or reading.is_only
    if reading.is_sure and reading.count and is_named and reading.ends_plainly and not reading.asks_count:
        return replace(reading, settled="yes")
    return replace(reading, notes=(*reading.notes, "yes or no is asked for"))


def _without_type_words(
    names: Sequence[NameMatch], words: Sequence[Word], space: PathSpace
) -> list[NameMatch]:
    """Return the names, those less plausible that are a word for a type: "which module" is no class Module."""
    doubtful = []
    for name in names:
        word = words[name.first]
        is_type = (
            not name.is_exact
            and name.last - name.first == 1
            and any(label_affinity(word.stem, label) >= NAMES_TYPE for label in space.type_labels)
        )
        doubtful.append(replace(name, plausibility=0.5 * HOPELESS) if is_type else name)
    certain = [name for name in doubtful if name.plausibility >= HOPELESS]
    return certain or doubtful


def _without_other_writings(names: Sequence[NameMatch]) -> list[NameMatch]:
    """Return the names without those that differ only in capitals from one that the question writes with capitals:
    "Stanley Kubrick" is the person, not the tag "stanley kubrick"."""
    exact = {(name.first, name.last) for name in names if name.is_exact and not name.name.islower()}
    return [name for name in names if name.is_exact or (name.first, name.last) not in exact]


def _join_open_relations(drafts: Sequence[_Draft], tried: dict[int, Reading], scores: Floats) -> None:
    """Read the relations at a name that no word tells apart together: "films by Ada Pell" are those that she directed
    and those that she wrote. Changes ``tried`` and ``scores``: the readings that are joined become one, as likely as
    all of them. Of them "by" leaves those to what acts (``directed by``), "with" the others, if there are any.
    """
    groups: dict[tuple[object, ...], list[int]] = {}
    for place in tried:
        draft = drafts[place]
        if draft.has_open_relation():
            key = draft.space.graph.name, draft.name.first, draft.name.name, *draft.hops[1:]
            groups.setdefault(key, []).append(place)
    for places in groups.values():
        first = drafts[places[0]]
        relations = first.open_relations()
        usable = [
            place
            for place in places
            if drafts[place].hops[0] // 2 in relations
            and tried[place].count != 0
            and not (tried[place].left_out or tried[place].notes)
        ]
        seen = {drafts[place].hops[0] // 2 for place in places}
        if not usable:
            continue
        best = max(usable, key=lambda place: scores[place])
        total = float(np.logaddexp.reduce(scores[places]))
        scores[places] = -np.inf
        scores[best] = total
        reading, repair = tried[best], ""
        if len(usable) > 1:
            alike = sorted(drafts[place].hops[0] // 2 for place in usable)
            labels = [first.space.relations[each] for each in alike]
            reading, _ = replace(drafts[best], alike=tuple(alike)).finish(0.0)
            repair = f"no word says which is meant, so all are read: {', '.join(labels)}"
        tried[best] = replace(reading, is_only=relations <= seen, is_joined=len(usable) > 1, repair=repair)


def _softmax(scores: Floats) -> Floats:
    likelihood = np.exp(scores - scores.max())
    shares: Floats = likelihood / likelihood.sum()
    return shares


def _short_paths(drafts: Sequence[_Draft], order: NDArray[np.int64]) -> list[int]:
    """Return the likeliest drafts of one hop that are not among the first tried."""
    tried = set(order[:MAX_TRIED].tolist())
    short = [place for place in order.tolist() if len(drafts[place].hops) == 1]
    return [place for place in short[:MAX_SHORT] if place not in tried]


def _merge_readings(readings: Mapping[int, Reading], probabilities: Floats) -> list[Reading]:
    """Return the readings with their probabilities, likeliest first, those without answers last. Readings with the
    same answers are one: films with Ada and Joel, films with Joel and Ada."""
    merged: dict[tuple[str, object], Reading] = {}
    for place, reading in sorted(readings.items(), key=lambda item: -probabilities[item[0]]):
        probability = float(probabilities[place])
        key = reading.graph, reading.answers or reading.triples
        known = merged.get(key)
        if known is None:
            merged[key] = replace(reading, probability=probability)
        else:
            together = known.probability + probability
            same = [replace(each, probability=together) for each in (known, reading)]
            merged[key] = min(same, key=lambda each: (len(each.doubts), len(each.hops)))
    return sorted(merged.values(), key=lambda each: (each.count == 0, -each.probability))


def _allowed_relations(asked: QuestionWords, space: PathSpace) -> frozenset[int] | None:
    """Return the relations of a large schema that the words of a question speak for; None for a small schema."""
    if len(space.relations) <= MAX_RELATIONS:
        return None
    best = asked.affinities.max(axis=0)
    kinds = (
        np.array([asked.kind in label.kinds for label in space.labels]) if asked.kind else np.zeros(len(best))
    )
    order = np.argsort(-(best + 0.3 * kinds), kind="stable")[:MAX_RELATIONS]
    return frozenset(order.tolist())


@dataclass(frozen=True, slots=True, eq=False)
class _Draft:
    """A path from a name with its score, before its conditions are looked for and it is executed."""

    question: str
    space: PathSpace
    asked: QuestionWords
    name: NameMatch
    names: Sequence[NameMatch]
    path: NDArray[np.int64]
    score: float
    #: The relations of the first hop where no word tells them apart; () for that of the path alone.
    alike: tuple[int, ...] = ()

    @property
    def hops(self) -> list[int]:
        return [hop for hop in self.path.tolist() if hop >= 0]

    def has_open_relation(self) -> bool:
        """Return whether the path begins against a relation that no word names, and does not go back on it."""
        first, *others = self.hops
        if not first % 2 or others[:1] == [first ^ 1] or self.space.type_of_start(first) is not None:
            return False
        outside = [place for place in range(len(self.asked.words)) if not self._is_of_name(place)]
        named = self.asked.affinities[outside, first // 2].max(initial=0.0) >= NAMES_RELATION
        return not named and first // 2 not in self.space.relations_of_kind(self.name.rows)

    def open_relations(self) -> set[int]:
        """Return the relations that may be meant at the name, by the preposition before it."""
        space = self.space
        relations = {hop // 2 for hop in space.at_rows(self.name.rows) if hop % 2}
        before = self.asked.words[self.name.first - 1].text if self.name.first else ""
        if before not in ("by", "with"):
            return relations
        agentive = {each for each in relations if space.labels[each].is_agentive}
        fitting = agentive if before == "by" else relations - agentive
        return fitting or relations

    def _is_said_otherwise(self) -> bool:
        """Return whether "by" before the name says that another relation is meant: films "by" Ada are not those that
        she only acts in."""
        is_backwards = bool(self.hops[0] % 2) and self.space.type_of_start(self.hops[0]) is None
        before = self.asked.words[self.name.first - 1].text if self.name.first else ""
        return before == "by" and is_backwards and self.hops[0] // 2 not in self.open_relations()

    def _described_by_clause(self) -> tuple[str, ...]:
        """Return a note where the path goes on from what stands before a clause, though the clause describes that:
        "papers that Ada wrote that cite Smith" are Ada's, not those that hers cite."""
        if len(self.hops) < 2:
            return ()
        certain = [name for name in self.names if name.plausibility >= CERTAIN_NAME]
        describes = any(
            word.text in {"that", "which"}
            and self.name.last <= place
            and any(name.first > place for name in certain)
            and max(self.asked.focus, default=-1) < self.name.first
            for place, word in enumerate(self.asked.words)
        )
        return (f"the clause after '{self.name.name}' may describe what is asked for",) if describes else ()

    def _is_of_name(self, place: int) -> bool:
        return self.name.first <= place < self.name.last

    def finish(self, per_word: float) -> tuple[Reading, float]:
        """Return the reading with its conditions, executed, and what the words that its conditions account for add to
        its score: ``per_word`` each. Its probability is not known yet."""
        graph, space, hops = self.space.graph, self.space, self.hops
        if space.type_of_start(hops[0]) is not None:
            return self._finish_type(), 0.0
        words = (
            ()
            if self.alike
            else tuple(space.relations[hop // 2] + (" (backwards)" if hop % 2 else "") for hop in hops)
        )
        affinity = self.asked.affinities.copy()
        affinity[self.name.first : self.name.last] = 0
        of_hops = [float(affinity[:, hop // 2].max()) for hop in hops]
        explained = min(
            _explained_by_kind(self.asked, space, hop, score)
            for hop, score in zip(hops, of_hops, strict=True)
        )
        if hops[0] // 2 in space.relations_of_kind(self.name.rows):
            explained = min(
                (
                    _explained_by_kind(self.asked, space, hop, score)
                    for hop, score in zip(hops[1:], of_hops[1:], strict=True)
                ),
                default=1.0,
            )
        plain = write_path(self.name.name, hops, space, self.alike)
        additions = find_additions(self.question, self.asked, self.name, self.names, hops, space, plain)
        left_out = self._left_out(additions)
        notes = (*additions.notes, *self._ends_elsewhere(), *self._named_twice(affinity, additions))
        notes += self._described_by_clause()
        if set(additions.relations) & {hop // 2 for hop in hops} and additions.counted:
            # "the most actors" names what is counted, not how a film belongs to a name.
            affinity[sorted(additions.counted)] = 0
            of_hops = [float(affinity[:, hop // 2].max()) for hop in hops]
            explained = min(explained, *of_hops)
        common = {
            "graph": graph.name,
            "probability": 1.0,
            "name": self.name.name,
            "hops": words,
            "asks_count": additions.asks_count,
            "left_out": left_out,
            "explained": explained,
            "plausibility": self.name.plausibility,
            "is_certain_name": self.name.plausibility >= CERTAIN_NAME
            or (self.name.is_exact and not self.name.name.islower() and not self.name.name.isdigit()),
            "names_end": self._names_end() if len(hops) == 1 else self._names_others(of_hops, affinity),
            "ends_plainly": self._ends_plainly(additions),
        }
        if space.is_property(hops[-1]):
            if additions.asks_count and space.leads_to_numbers[hops[-1]] and self._asks_for(hops[-1]):
                # "How many lines does it have" asks for the number itself.
                additions.asks_count = common["asks_count"] = False
            chain = str(Chain(plain.chain.triples, plain.chain.answer))
            if additions.size or additions.asks_count:
                notes = (*notes, "a property is read of all nodes, without conditions")
            reading = Reading(
                triples=chain,
                is_chain=True,
                notes=notes,
                count=0 if additions.size else None,
                **common,  # type: ignore[arg-type]
            )
            return reading, -PER_CONDITION * len(notes)
        typed = replace(additions.apply(plain), preferences=left_out, types=self._wanted_types())
        rows = solve_triples(graph, replace(typed, preferences=()))
        reading = Reading(
            triples=str(typed),
            notes=notes,
            count=len(rows),
            answers=rows.tobytes(),
            **common,  # type: ignore[arg-type]
        )
        on_path = affinity[:, [hop // 2 for hop in hops]].max(axis=1)
        by_conditions = (
            affinity[:, sorted(additions.relations)].max(axis=1) if additions.relations else on_path
        )
        gain = per_word * float(np.clip(by_conditions - on_path, 0, None).sum())
        gain += PER_CONDITION * (additions.size - len(notes))
        gain -= PER_MISTYPED * (self._is_mistyped() + self._is_said_otherwise())
        # A word that names a relation of the path does not name that of a condition as well.
        mentions = count_mentions(affinity, affinity.max(axis=1))
        for relation in additions.relations - additions.alike:
            uses = sum(hop // 2 == relation for hop in hops) + 1
            gain -= 0.5 * per_word * max(0.0, uses - max(float(mentions[relation]), 1.0))
            # Nor do the words of a condition name another relation of the path.
            naming = affinity[:, relation] >= NAMES_RELATION
            for hop in {hop // 2 for hop in hops} - {relation}:
                own = affinity[:, hop] >= NAMES_RELATION
                gain -= 0.5 * per_word * float(own.any() and not (own & ~naming).any())
        return reading, gain

    def find_conditions(self) -> Additions:
        """Return the conditions on the nodes of a type."""
        return find_additions(
            self.question, self.asked, self.name, self.names, self.hops, self.space, self._all_of_type()
        )

    def _all_of_type(self) -> TypedChain:
        type = self.space.type_of_start(self.hops[0])
        assert type is not None
        return TypedChain(Chain((), 1), types={1: (type,)})

    def _finish_type(self) -> Reading:
        """Return the reading of all nodes of a type with the question's conditions."""
        space, additions = self.space, self.find_conditions()
        left_out = self._left_out(additions)
        typed = additions.apply(self._all_of_type())
        rows = solve_triples(space.graph, typed)
        return Reading(
            graph=space.graph.name,
            triples=str(replace(typed, preferences=left_out)),
            probability=1.0,
            name=space.type_of_start(self.hops[0]) or "",
            hops=tuple(space.relations[relation] for relation in sorted(additions.relations)),
            asks_count=additions.asks_count,
            left_out=left_out,
            notes=additions.notes,
            explained=1.0,
            plausibility=1.0,
            is_type=True,
            count=len(rows),
            answers=rows.tobytes(),
        )

    def _focus(self) -> list[int]:
        """Return the places of the words for what is asked, outside the name."""
        return [place for place in self.asked.focus if not self.name.first <= place < self.name.last]

    def _asks_for(self, directed: int) -> bool:
        """Return whether the words for what is asked name a relation."""
        focus = self._focus()
        return bool(focus) and bool(self.asked.affinities[focus, directed // 2].max() >= NAMES_RELATION)

    def _types_asked(self) -> NDArray[np.bool_]:
        """Return which types the words for what is asked name."""
        focus = self._focus()
        if self.asked.kind or not focus or not self.space.has_types:
            return np.zeros(len(self.space.type_names), dtype=np.bool_)
        return np.asarray(self.asked.type_affinities[focus].max(axis=0) >= NAMES_TYPE, dtype=np.bool_)

    def _wanted_types(self) -> dict[int, tuple[str, ...]]:
        """Return the types that the answers are to have, where the path leads to others too: "which *classes* are
        defined in queue", where exceptions are as well."""
        of_end = self.space.types_at[self.hops[-1]]
        wanted = self._types_asked() & of_end
        if not wanted.any() or wanted.sum() == of_end.sum():
            return {}
        return {len(self.hops): tuple(self.space.type_names[place] for place in np.flatnonzero(wanted))}

    def _is_mistyped(self) -> bool:
        """Return whether the path leads to no node of the types that are asked for."""
        wanted = self._types_asked()
        return bool(wanted.any()) and not (wanted & self.space.types_at[self.hops[-1]]).any()

    def _named_twice(self, affinity: Floats, additions: Additions) -> tuple[str, ...]:
        """Return a note where the question names a relation twice by its own word, and the path follows it once:
        "what do the dependencies depend on"."""
        relations = [hop // 2 for hop in self.hops]
        named = count_mentions(np.where(affinity >= OWN_WORD, affinity, 0.0), affinity.max(axis=1))
        once = [
            each
            for each in set(relations) - additions.relations
            if relations.count(each) < named[each] and len(self.space.labels[each].stems) == 1
        ]
        return tuple(f"'{self.space.relations[each]}' is named more than once" for each in once)

    def _ends_elsewhere(self) -> tuple[str, ...]:
        """Return a note where the path leads to something else than the question asks for."""
        asked, space, last = self.asked, self.space, self.hops[-1]
        if asked.kind == "person":
            persons = space.end_kinds()["person"]
            is_person = persons[last] or not (persons.any() and space.has_types)
            if space.leads_to_numbers[last] or not is_person:
                return ("it does not lead to a person",)
            # "Who wrote the films directed by": the first word after "who" names the last relation.
            naming = [p for p in self._focus() if asked.affinities[p].max() >= NAMES_RELATION][:1]
            if not naming or asked.affinities[naming[0], last // 2] >= NAMES_RELATION:
                return ()
            return (
                f"'{asked.words[naming[0]].text}' may not be what '{space.relations[last // 2]}' leads to",
            )
        if asked.kind == "time":
            times = space.end_kinds()["time"]
            is_time = times[last] or space.leads_to_numbers[last]
            is_time |= not last % 2 and "time" in space.labels[last // 2].kinds
            return () if is_time or not times.any() else ("it does not lead to a time",)
        focus = self._focus()
        if asked.kind or not focus:
            return ()
        types = asked.type_affinities[focus].max(axis=0, initial=0.0)
        if types.max(initial=0.0) >= NAMES_RELATION and not space.is_property(last):
            if (types * space.types_at[last]).max() >= NAMES_RELATION:
                return ()
            return (f"it does not lead to a {space.type_labels[int(types.argmax())].text}",)
        relations = asked.affinities[focus].max(axis=0)
        names_relation = relations.max() >= NAMES_RELATION
        # "Actors" are where 'stars' leads to, not where it begins; "subclasses" where 'inherits from' begins.
        best = focus[int(asked.affinities[focus, last // 2].argmax())]
        is_backwards = bool(last % 2) != names_inverse(asked.words[best].stem, space.labels[last // 2])
        if names_relation != is_backwards and (not names_relation or relations[last // 2] >= NAMES_RELATION):
            return ()
        words = " ".join(asked.words[place].text for place in focus)
        return (f"'{words}' may not be what '{space.relations[last // 2]}' leads to",)

    def _names_others(self, of_hops: Sequence[float], affinity: Floats) -> bool:
        """Return whether the question names every hop but the one at a name that is certain, and what that hop leads
        to: "who acted in the *films* of Ada Pell". "Where was Ada Pell born" names nobody between her and a place."""
        by_others = affinity[:, [hop // 2 for hop in self.hops[1:]]].max(axis=1)
        between = any(
            word.is_content and by_others[place] < NAMES_RELATION
            for place, word in enumerate(self.asked.words)
            if not self.name.first <= place < self.name.last
        )
        return between and min(of_hops[1:]) >= NAMES_RELATION and self.name.plausibility >= CERTAIN_NAME

    def _names_end(self) -> bool:
        """Return whether the question names what the path leads to: its type, or, in a graph without types, what no
        relation is called after ("songs by")."""
        focus, last = self._focus(), self.hops[-1]
        if not focus or self.asked.kind:
            return False
        if self.space.has_types:
            types = self.asked.type_affinities[focus] * self.space.types_at[last][None]
            return bool(types.max() >= NAMES_RELATION)
        return bool(last % 2) and bool(self.asked.affinities[focus].max() < NAMES_RELATION)

    def _ends_plainly(self, additions: Additions) -> bool:
        """Return whether each word for what is asked is a type, a general word, or part of a condition or of the last
        relation; in a graph without types "letters" may be anything that a relation begins at."""
        asked, last = self.asked, self.hops[-1] // 2
        return bool(self._types_asked().any()) or all(
            asked.words[place].text in GENERIC
            or place in additions.words
            or asked.affinities[place, last] >= NAMES_RELATION
            for place in self._focus()
        )

    def _left_out(self, additions: Additions) -> tuple[str, ...]:
        """Return the content words that neither a name, a relation, a type nor a condition stands for."""
        asked, space, hops = self.asked, self.space, self.hops
        relations = {hop // 2 for hop in hops if space.type_of_start(hop) is None}
        on_path = sorted(relations | additions.relations)
        qualifier = self._qualifier()
        left = []
        for place, word in enumerate(asked.words):
            if place in qualifier:
                continue
            if asked.is_wording(place, self.question):
                continue
            if self.name.first <= place < self.name.last or place in additions.words:
                continue
            if asked.names_part(place, on_path, space):
                continue
            if place in asked.focus[-1:] and hops[-1] % 2 and not space.has_types and not asked.kind:
                continue  # "which songs": a graph without types does not name what its relations begin at
            left.append(word.text)
        return tuple(dict.fromkeys(left))

    def _qualifier(self) -> range:
        """Return the places of the words in brackets that say after a name what kind of thing it is, "Petra (Film)",
        where only one node has the name. Other words in brackets, a year or a person, would have to be checked."""
        words, last = self.asked.words, self.name.last
        brackets = _IN_BRACKETS.match(self.question, words[last - 1].end)
        if brackets is None or len(self.name.rows) != 1:
            return range(0)
        inside = range(last, last + sum(word.end <= brackets.end() for word in words[last:]))
        return inside if all(words[place].text in GENERIC for place in inside) else range(0)


def _explained_by_kind(asked: QuestionWords, space: PathSpace, hop: int, score: float) -> float:
    """Return how far the question names a hop: "when" and "where" name a hop to a time or a place as well."""
    if asked.kind in ("time", "place") and not hop % 2 and asked.kind in space.labels[hop // 2].kinds:
        return max(score, NAMES_RELATION)
    return score


def write_path(name: str, hops: Sequence[int], space: PathSpace, alike: Sequence[int] = ()) -> TypedChain:
    """Return a path from a name as typed triples; its first hop is along any of the relations ``alike``, if there are
    such. Where it goes back the way it came, it leads to other nodes than the name: films by the director of Kismet
    are other films."""
    triples, conditions = [], []
    previous = Term(name, is_name=True)
    for number, hop in enumerate(hops, 1):
        relations = alike if alike and number == 1 else (hop // 2,)
        unknown, relation = Term(f"#{number}"), " or ".join(space.relations[each] for each in relations)
        triples.append(
            Triple(unknown, relation, previous) if hop % 2 else Triple(previous, relation, unknown)
        )
        if number == 2 and hop == hops[0] ^ 1:
            conditions.append(Condition(number, OWN_VALUE, "=", name, negated=True))
        previous = unknown
    return TypedChain(Chain(tuple(triples), len(triples)), conditions=tuple(conditions))


def solve_triples(graph: PropertyGraph, typed: TypedChain) -> RowSet:
    """Return the rows of the answers to typed triples in a graph; none where it cannot hold them."""
    try:
        compiled = compile_question(graph, typed).question
    except UsageError:
        compiled = None
    return np.empty(0, dtype=np.uint32) if compiled is None else solve_question(graph, compiled)


_SPACES: OrderedDict[tuple[object, ...], PathSpace] = OrderedDict()
_LOCK = Lock()


def open_space(graph: PropertyGraph) -> PathSpace:
    """Return the paths of a graph, remembered while the graph stays as it is."""
    schema = graph.relations()
    key = graph.name, graph.size, tuple((name, relation.edges) for name, relation in schema.items())
    with _LOCK:
        if key in _SPACES:
            _SPACES.move_to_end(key)
            return replace(_SPACES[key], graph=graph)
        space = PathSpace.of_graph(graph)
        _SPACES[key] = space
        while len(_SPACES) > _REMEMBERED:
            _SPACES.popitem(last=False)
        return space
