"""Ask several questions, put the quotes of the answers aside, and write them as a memo with footnotes.

python examples/memo.py [memo.docx]
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import clew
from clew.knowledge_base.memo import Memo

SAMPLES = Path(__file__).parents[1] / "samples" / "documents"
QUESTIONS = [
    "What does the hirer pay a day if the lighter is returned late?",
    "What is the hull insured for?",
    "In what year was the Bittern built?",
]

if __name__ == "__main__":
    target = Path(sys.argv[1] if len(sys.argv) > 1 else "memo.docx")
    with TemporaryDirectory() as folder, clew.open(Path(folder) / "kb", create=True) as base:
        base.add([SAMPLES])
        for question in QUESTIONS:
            for quote in base.basket.pin_answer(base.ask(question), question):
                print(f"{question} “{quote.text}” ({quote.place})")
        memo = Memo(base.basket.quotes(), title="Hire of the Bittern")
        memo.write(target)
    print(f"{len(memo.quotes)} quotes written to {target}")
