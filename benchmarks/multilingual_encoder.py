"""The encoder ``clew:multilingual``: training of the update that clew ships, and its cross-validation.

    python benchmarks/multilingual_encoder.py train                                    # make multilingual
    python benchmarks/multilingual_encoder.py folds --only fold0 fold1 --contrasts 1.46 3 6
    python benchmarks/multilingual_encoder.py folds --contrasts 1.46

``train`` learns from all questions, as ``clew train encoder`` does, and writes the update of rank 16 into the
package. ``folds`` trains an encoder for each fold of ``folds.py``, and with each data set left out, and asks it the
questions that it has not seen over the pooled paragraphs of their data set; also the encoder without an update.
``--contrasts`` are those to search with (:attr:`clew.models.encoders.OnnxEncoder.contrast`); vectors alone need none.
Needs the extras train and multilingual, and ../shared/data. On a GPU an encoder takes half a minute, on two cores
about an hour. Killed, it continues where it was.
"""

from __future__ import annotations

import argparse
import shutil
from collections.abc import Sequence
from pathlib import Path
from unittest.mock import patch

from clew.app.cli.output import show_progress
from clew.evaluate.datasets import load_dataset
from clew.models.encoders import OnnxEncoder
from clew.models.multilingual import (
    UPDATE_FILE,
    export_multilingual,
    read_update,
    shipped_update,
    weights_file,
    write_update,
)
from clew.train.encoder import (
    MODEL_FOLDER,
    RECORD,
    EncoderSettings,
    Training,
    train_encoder,
    training_from_data,
)
from clew.train.multilingual import find_update, write_trainable_folder
from clew.train.pairs import pairs_from_examples
from folds import DATA, SETS, Examples, Pools, brief, jobs, read_or_make

#: Chosen on folds 0 and 1 among: rank 16 with learning rates of 3e-4 and 1e-3 and scales of 20 and 50; all weights.
SETTINGS = EncoderSettings(lora_rank=16, learning_rate=1e-3)
BY_VECTORS, BY_ALL = ("dense",), ("search", "kgp")
#: The folder of the encoder without an update.
SOURCE = "multilingual-e5-small"


def train_update(training: Training, folder: Path) -> Path:
    """Return the file of the update of a training, which begins from the encoder without one; beside it lies the
    training's record."""
    file = folder / UPDATE_FILE
    if not file.exists():
        source = Path(training.source)
        if not source.exists():
            write_trainable_folder(weights_file(), source)
        train_encoder(training, folder, lambda plan: print(f"{folder}: {plan}"), show_progress(folder.name))
        write_update(find_update(weights_file(), folder / MODEL_FOLDER, SETTINGS.lora_rank), file)
        shutil.rmtree(folder / MODEL_FOLDER)
    return file


def export_encoder(update: Path | None, work: Path, name: str) -> str:
    """Return the encoder with an update, or without one, as ``onnx:FOLDER``."""
    folder = work / name / "onnx"
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        export_multilingual(weights_file(), folder, None if update is None else read_update(update))
    return f"onnx:{folder}"


def measure_folds(examples: Examples, work: Path, contrasts: Sequence[float], names: Sequence[str]) -> None:
    """Ask every fold's encoder the questions of its fold, and print recall@5."""
    pools = Pools(work / "bases", examples)
    records: dict[str, list[dict[str, object]]] = {}
    for kind, name, asked, learnt in [("without update", "untrained", examples, None), *jobs(examples)]:
        if names and name not in names:
            continue
        update = None
        if learnt is not None:
            pairs = pairs_from_examples(learnt, SETTINGS.objective, SETTINGS.negatives, SETTINGS.seed)
            training = Training(pairs, str(work / SOURCE), SETTINGS, {"questions": len(learnt)})
            update = train_update(training, work / name)
        encoder = export_encoder(update, work, name)
        searches = [(BY_VECTORS, 1.0), *((BY_ALL, contrast) for contrast in contrasts)]
        for recipes, contrast in searches:
            label = kind if recipes == BY_VECTORS else f"{kind}, contrast {contrast:g}"
            file = work / f"{name}-{recipes[0]}-{contrast:g}.jsonl"
            with patch.object(OnnxEncoder, "contrast", contrast):
                some = read_or_make(file, pools.measure(asked, "own", recipes, encoder))
            records.setdefault(label, []).extend(some)
    brief(records)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("action", choices=("train", "folds"))
    parser.add_argument("--work", type=Path, default=Path("build/multilingual"))
    parser.add_argument("--contrasts", type=float, nargs="+", default=[], help="folds: to search with")
    parser.add_argument("--only", nargs="+", default=[], help="folds: fold0 without-musique untrained")
    options = parser.parse_args()
    if not DATA.is_dir():
        raise SystemExit(f"no data at {DATA}; it is not part of this repository")
    if options.action == "folds":
        examples = {
            name: list(load_dataset(name, DATA / name / f"{file}.jsonl").examples())
            for name, file in SETS.items()
        }
        measure_folds(examples, options.work, options.contrasts, options.only)
        return
    data = [f"{name}={DATA / name / file}.jsonl" for name, file in SETS.items()]
    training = training_from_data(data, str(options.work / SOURCE), SETTINGS, held_out=0.0)
    shutil.copy(train_update(training, options.work / "all"), shipped_update())
    shutil.copy(options.work / "all" / RECORD, shipped_update().with_name(RECORD))


if __name__ == "__main__":
    main()
