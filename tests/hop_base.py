"""A base of five documents with a question of three hops, and what runs a method over it with a scripted model."""

from clew.core.trail import TrailRecorder
from clew.core.types import Location, Question
from clew.knowledge_base import registry
from clew.models import create_language_model
from clew.parse.documents.builder import DocumentBuilder
from clew.store.store import Store
from scripted import ScriptedServer

TEXTS = {
    "Simpsons theme": "The Simpsons theme was arranged anew by Alf Clausen in season two.",
    "Alf Clausen": "Alf Clausen is a composer who was taught by Wilmot Harker in Boston.",
    "Wilmot Harker": "Wilmot Harker taught for years. He was born in the village of Dunmere.",
    "Dunmere": "Dunmere lies on the river Oskell and has a ferry.",
    "Noise": "A season of theme music was played by the band all summer.",
}
QUESTION = "Where does the teacher of the arranger of the Simpsons theme come from?"
BORN = "born in the village of Dunmere"


def make_base(folder):
    """Return the base, open, in a new folder."""
    base = Store.open(folder, create=True)
    for number, (title, text) in enumerate(TEXTS.items()):
        builder = DocumentBuilder()
        builder.add_paragraph(text)
        parsed = builder.finish(data=text.encode(), title=title, media_type="text/plain", parser="t/1")
        base.put_document(parsed, Location(f"/docs/{title}.txt", "/docs", 1, number, number))
    base.catch_up()
    return base


def reading(request):
    """Answer the cited reader's prompt: Dunmere, where a source says so."""
    sources = request.user.split("\n\n")
    numbers = [number for number, text in enumerate(sources, 1) if BORN in text]
    quotes = [{"source": number, "text": BORN} for number in numbers]
    return {"quotes": quotes, "answer": "Dunmere" if quotes else "", "abstain": not quotes}


def ask(base, script, recipe, question=QUESTION, **more):
    """Return a recipe's answer by a scripted model, and what the model was asked."""
    with ScriptedServer(script) as server:
        method = registry.build_method(recipe, base, llm=create_language_model(server.llm, **more))
        return method.answer(Question(question), TrailRecorder()), server.requests


def titles(hits):
    """Return the documents of hits, in their order."""
    return [hit.node.document_name.removesuffix(".txt") for hit in hits]


def names(answer):
    """Return the names of an answer's steps."""
    return [step.name for step in answer.trail]


def adds_up(answer, requests):
    """Return whether the trail has every call once, with its tokens, and seconds where there was work."""
    calls = sum(step.usage.calls for step in answer.trail)
    spent = sum(step.usage.tokens_in for step in answer.trail)
    timed = all(step.seconds > 0 for step in answer.trail if step.usage.calls)
    return (
        timed
        and answer.usage.calls == calls == len(requests)
        and answer.usage.tokens_in == spent == calls * 11
    )
