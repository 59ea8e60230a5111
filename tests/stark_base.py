"""A small knowledge base in exactly the layout of STaRK's processed ones, and its questions.

Pickles as ``pickle.dump`` writes them; tensors as ``torch.save`` does (a zip archive of a pickle of protocol 2 and of
the numbers of each storage), written here without torch.
"""

from __future__ import annotations

import pickle
import struct
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

NODE_TYPES = {0: "disease", 1: "gene/protein", 2: "drug"}
EDGE_TYPES = {0: "ppi", 1: "indication", 2: "associated with", 3: "target"}
#: What PRIME says of a node: ``details`` hold texts and numbers of pandas and numpy.
NODES: dict[int, dict[str, Any]] = {
    0: {"id": "D1", "type": "disease", "name": "asthma", "source": "MONDO"},
    1: {
        "id": "D2",
        "type": "disease",
        "name": "rhinitis",
        "source": "MONDO",
        "details": {"nan": float("nan")},
    },
    2: {
        "id": 150,
        "type": "gene/protein",
        "name": "ADRB2",
        "source": "NCBI",
        "details": {
            "alias": ["BAR", "B2AR"],
            "summary": "A receptor that opens the airways when it is bound. " * 4,
            "_score": 3.5,
            "taxid": np.int64(9606),
            "interpro": [{"desc": "GPCR family", "id": "IPR1"}],
            "generif": [{"pubmed": 1, "text": "bound by inhaled drugs"}],
        },
    },
    3: {"id": 7, "type": "gene/protein", "name": "HRH1", "source": "NCBI"},
    4: {
        "id": "DB1",
        "type": "drug",
        "name": "salbutamol",
        "source": "DrugBank",
        "details": {
            "description": "An inhaled drug for the airways.",
            "half_life": np.str_("4 hours"),
            "x": "nan",
        },
    },
    5: {"id": "DB2", "type": "drug", "name": "cetirizine", "source": "DrugBank"},
}
OF_TYPE = [0, 0, 1, 1, 2, 2]
#: Both ways, as PrimeKG has them.
EDGES = [(2, 3, 0), (3, 2, 0), (4, 0, 1), (0, 4, 1), (5, 1, 1), (2, 0, 2), (4, 2, 3), (5, 3, 3)]

QUESTIONS = "id,query,answer_ids\n" + "\n".join(
    [
        "0,Which drug for asthma is inhaled?,[4]",
        '3,Which drug targets HRH1?,"[5]"',
        '7,Which gene is bound by inhaled drugs and opens the airways?,"[2, 3]"',
    ]
)


def write_tensor(path: Path, values: Sequence[Any], kind: str = "i8", stem: str = "") -> None:
    """Write a tensor as ``torch.save`` does."""
    array = np.array(values, dtype=kind)
    storage = {"i8": "LongStorage", "f4": "FloatStorage"}[kind]
    strides = tuple(step // array.itemsize for step in array.strides)

    def text(text: str) -> bytes:
        return b"X" + struct.pack("<I", len(text)) + text.encode()

    def numbers(some: Sequence[int]) -> bytes:
        return b"(" + b"".join(b"J" + struct.pack("<i", item) for item in some) + b"t"

    content = b"".join(
        [
            b"\x80\x02ctorch._utils\n_rebuild_tensor_v2\n(",
            b"(" + text("storage") + f"ctorch\n{storage}\n".encode() + text("0") + text("cpu"),
            b"J" + struct.pack("<i", array.size) + b"tQ",
            b"K\x00" + numbers(array.shape) + numbers(strides) + b"\x89ccollections\nOrderedDict\n)R",
            b"tR.",
        ]
    )
    folder = stem or path.stem
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr(f"{folder}/data.pkl", content)
        archive.writestr(f"{folder}/byteorder", "little")
        archive.writestr(f"{folder}/data/0", array.astype(f"<{kind}").tobytes())
        archive.writestr(f"{folder}/version", "3\n")


def write_stark(folder: Path, protocol: int = 4, **changed: Any) -> Path:
    """Write the base to ``folder``/processed and return that; ``changed`` replaces what a file holds, None leaves it
    out."""
    place = folder / "processed"
    place.mkdir(parents=True)
    held = {
        "node_info": NODES,
        "node_type_dict": NODE_TYPES,
        "edge_type_dict": EDGE_TYPES,
        "edge_index": list(zip(*((head, tail) for head, tail, _ in EDGES), strict=True)),
        "edge_types": [kind for _, _, kind in EDGES],
        "node_types": OF_TYPE,
    } | changed
    for name, value in held.items():
        if isinstance(value, dict):
            (place / f"{name}.pkl").write_bytes(pickle.dumps(value, protocol=protocol))
        elif value is not None:
            write_tensor(place / f"{name}.pt", value, stem="archive")
    return place


def write_questions(folder: Path) -> Path:
    """Write the questions and their split as STaRK publishes them; return the file of questions."""
    (folder / "stark_qa").mkdir(parents=True)
    (folder / "split").mkdir()
    (folder / "stark_qa" / "stark_qa.csv").write_text(QUESTIONS + "\n")
    (folder / "split" / "train.index").write_text("3\n")
    (folder / "split" / "test.index").write_text("0\n7\n")
    return folder / "stark_qa" / "stark_qa.csv"
