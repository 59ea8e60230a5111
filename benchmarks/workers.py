"""Questions asked at once: an evaluation against a model that takes its time, with one worker and with several.

The model is a local server that waits before each reply, so that only the waiting is measured.

    python benchmarks/workers.py
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))

from clew.evaluate.run_folder import evaluate_recipes
from clew.evaluate.setup import EvaluationSettings, load_questions
from clew.models import create_language_model
from clew.store.store import Store
from scripted import Reply, ScriptedServer


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--delay", type=float, default=0.3, help="seconds before each reply")
    parser.add_argument("--questions", type=int, default=32)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "questions.jsonl"
        records = [
            {"question": f"What is the capital of land {n}?", "answers": ["Paris"],
             "evidence": [{"document": "atlas.txt"}]} for n in range(options.questions)
        ]  # fmt: skip
        path.write_text("\n".join(map(json.dumps, records)), encoding="utf-8")
        with ScriptedServer(lambda request: Reply("Paris", delay=options.delay)) as server:
            print("| workers | seconds | questions/s | ratio |\n|---|---|---|---|")
            first = 0.0
            for workers in (1, 2, 4, 8, 16):
                questions = load_questions(f"jsonl={path}", str(Path(folder) / "base"), None, 0)
                with Store.open(questions.corpus, create=True):
                    pass
                bench = EvaluationSettings(create_language_model(server.llm), llm_name=server.llm)
                started = time.perf_counter()
                evaluate_recipes(Path(folder) / str(workers), questions, ["none"], bench, workers=workers)
                seconds = time.perf_counter() - started
                first = first or seconds
                print(
                    f"| {workers} | {seconds:.1f} | {options.questions / seconds:.1f} | {first / seconds:.1f} |"
                )


if __name__ == "__main__":
    main()
