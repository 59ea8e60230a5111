"""Ask documents and a graph together, without a language model, and print what each answer rests on."""

from pathlib import Path
from tempfile import TemporaryDirectory

import clew

SAMPLES = Path(__file__).parents[1] / "samples"
QUESTIONS = [
    "What does the hirer pay a day if the lighter is returned late?",
    "In what year was the Bittern built?",
    "Who commands the Heron Queen?",  # the graph knows
    "What is the capital of Mongolia?",  # nothing here does
]

if __name__ == "__main__":
    with TemporaryDirectory() as folder, clew.open(Path(folder) / "kb", create=True) as base:
        base.add([SAMPLES / "documents"])
        base.graphs.add(SAMPLES / "graphs" / "oskell-people-and-ships.tsv")
        for question in QUESTIONS:
            answer = base.ask(question)
            print(f"{question}\n  {answer.text}")
            for quote in answer.citations:
                print(f"  [{quote.number}] “{quote.text}” ({quote.place})")
            print(f"  {len(answer.trail)} steps, {answer.usage.calls} model calls")
