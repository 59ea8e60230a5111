"""A base whose graph knows one half of a small world and whose documents know the other; who answers from both."""

from __future__ import annotations

import re

import clew
from clew.core.trail import TrailRecorder
from clew.core.types import Question, Scope
from clew.knowledge_base import registry
from clew.models import create_language_model
from retrieve_documents import add
from scripted import ScriptedServer

#: (film, director, town of birth, mayor of the town, studio of the film, year of its prize).
WORLD = [
    ("The Salt Orchard", "Ilse Varnholt", "Dunmere", "Wilmot Harker", "Arlen Pictures", 1931),
    ("Low Water", "Emil Szarka", "Saltreach", "Jutta Kessel", "Bittern Films", 1932),
    ("The Tin Parade", "Dorte Halvik", "Oskell Bay", "Alf Clausen", "Corran House", 1933),
    ("Glass Harvest", "Ruben Achterberg", "Port Ellery", "Ada Strake", "Fenner Brothers", 1934),
    ("Nine Lanterns", "Marit Solheim", "Vessby", "Tomas Brandt", "Teshi Studio", 1935),
]

#: What the documents say: (relation, head) -> (document, sentence, answer).
SAID = {
    key: said
    for film, director, town, mayor, _, year in WORLD
    for key, said in {
        ("place of birth", director): (
            f"{director}.txt",
            f"{director} was born in {town} by the water.",
            town,
        ),
        ("mayor", town): (f"{town}.txt", f"The mayor of the small town of {town} is {mayor}.", mayor),
        ("winner", f"Golden Reed of {year}"): (
            f"reed {year}.txt",
            f"The Golden Reed of {year} was won by the film {film}.",
            film,
        ),
    }.items()
}


def graph_lines() -> list[str]:
    """Return the triples of the graph: who directed what, which studio made it."""
    directed = [f"{film}\tdirected_by\t{director}" for film, director, *_ in WORLD]
    return directed + [f"{film}\tstudio\t{studio}" for film, _, _, _, studio, _ in WORLD]


def fill(store, folder):
    """Add the documents and the graph ``films`` to a store."""
    for name, sentence, _ in SAID.values():
        add(store, name, name.removesuffix(".txt"), sentence)
    add(store, "noise.txt", "noise", "A season of theme music was played by the band all summer.")
    store.catch_up()
    path = folder / "films.tsv"
    path.write_text("\n".join(graph_lines()) + "\n", encoding="utf-8")
    clew.KnowledgeBase(store).graphs.add(path)
    return store


class Agent:
    """A scripted model of every role of the method: what it is told to write as chains, in turn; questions by rule;
    answers from the numbered sources where these say it; ``memory`` where it is asked to fill in a chain."""

    def __init__(self, *chains, memory=""):
        self.chains, self.memory, self.parsed = chains, memory, 0

    def __call__(self, request):
        if "You rewrite a question" in request.system:
            self.parsed += 1
            return self.chains[(self.parsed - 1) % len(self.chains)]
        if "You turn a triple" in request.system:
            head, relation = re.match(r'.*\("(.*?)", "(.*?)", \?\)\n', request.user, re.DOTALL).groups()
            return f"What is the {relation} of {head}?"
        if "numbered sources" in request.system:
            return read(request.user)
        assert "You fill in what is missing" in request.system, request.prompt
        return self.memory


def read(user):
    """Answer "What is the RELATION of HEAD?" where one of the numbered sources says it."""
    sources, _, asked = user.rpartition("\n\nQuestion: ")
    known = next((SAID[key] for key in SAID if asked == "What is the {} of {}?".format(*key)), None)
    for number, source in enumerate(re.split(r"\n\n(?=\[\d+\])", sources), 1):
        if known and known[1] in source:
            return {
                "quotes": [{"source": number, "text": known[1]}],
                "answer": known[2],
                "abstain": False,
            }
    return {"quotes": [], "answer": "", "abstain": True}


FILM, DIRECTOR, TOWN, MAYOR, STUDIO, YEAR = WORLD[0]
THREE_HOPS = f"{FILM} >> director >> #1; #1 >> place of birth >> #2; #2 >> mayor >> #3; final answer: #3"
QUESTION = f"Who is mayor of the town where the director of {FILM} was born?"


def run(base, agent, question=QUESTION, recipe="chain(k=3)", chain="", scope=None, **more):
    with ScriptedServer(agent) as server:
        method = registry.build_method(recipe, base, llm=create_language_model(server.llm, **more))
        asked = Question(question, scope or Scope(), chain)
        return method.answer(asked, TrailRecorder()), server.requests


def steps(answer, name):
    return [step for step in answer.trail if step.name == name]


def sources(answer):
    """Return which source filled which unknown, in the order in which they did."""
    return [
        (s.detail["unknown"], s.detail["source"]) for s in steps(answer, "fill") if s.detail.get("values")
    ]
