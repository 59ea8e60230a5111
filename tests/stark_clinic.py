"""A knowledge base of drugs in STaRK's layout, large enough that a list of 20 leaves some of it out, with questions
and what a scripted model says of each."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from stark_base import write_stark

DISEASES = ("asthma", "rhinitis", "gout", "migraine")
GENES = ("ADRB2", "HRH1", "XDH", "CALCA")
DRUGS = (
    "salbutamol", "terbutaline", "formoterol", "salmeterol", "cetirizine", "loratadine", "allopurinol", "febuxostat",
    "probenecid", "erenumab", "sumatriptan", "colchicine",
)  # fmt: skip
#: Plants that nothing treats and that no question is about.
PLANTS = tuple(f"herb {letter}{letter}" for letter in "abcdefghij")
NAMES = (*DISEASES, *GENES, *DRUGS, *PLANTS)
ID = {name: number for number, name in enumerate(NAMES)}
TYPES = {0: "disease", 1: "gene/protein", 2: "drug", 3: "plant"}
RELATIONS = {0: "indication", 1: "target", 2: "associated with"}
#: What is said of a drug beyond its name; what the questions ask for in words is here.
SAID = {
    "salbutamol": "Inhaled at once in an emergency.",
    "terbutaline": "Swallowed or injected.",
    "formoterol": "Inhaled twice a day; quick and long at once.",
    "salmeterol": "Inhaled twice a day; slow.",
    "colchicine": "From the crocus; it calms an attack.",
}
TRIPLES = [
    *((drug, "indication", "asthma") for drug in ("salbutamol", "terbutaline", "formoterol", "salmeterol")),
    *((drug, "target", "ADRB2") for drug in ("salbutamol", "terbutaline", "formoterol", "salmeterol")),
    *((drug, "indication", "rhinitis") for drug in ("cetirizine", "loratadine")),
    *((drug, "target", "HRH1") for drug in ("cetirizine", "loratadine")),
    *((drug, "indication", "gout") for drug in ("allopurinol", "febuxostat", "probenecid")),
    *((drug, "target", "XDH") for drug in ("allopurinol", "febuxostat")),
    *((drug, "indication", "migraine") for drug in ("erenumab", "sumatriptan")),
    ("ADRB2", "associated with", "asthma"),
    ("XDH", "associated with", "gout"),
    ("CALCA", "associated with", "migraine"),
]


def write_clinic(folder: Path) -> Path:
    """Write the base to ``folder``/processed and return that."""
    kinds = [0] * len(DISEASES) + [1] * len(GENES) + [2] * len(DRUGS) + [3] * len(PLANTS)
    nodes: dict[int, dict[str, Any]] = {
        number: {"id": f"X{number}", "type": TYPES[kind], "name": name, "source": "made up"}
        | ({"details": {"description": SAID[name]}} if name in SAID else {})
        for number, (name, kind) in enumerate(zip(NAMES, kinds, strict=True))
    }
    codes = {name: code for code, name in RELATIONS.items()}
    edges = [(ID[head], ID[tail], codes[relation]) for head, relation, tail in TRIPLES]
    # Both ways, as PrimeKG has them.
    edges += [(tail, head, code) for head, tail, code in edges]
    return write_stark(
        folder,
        node_info=nodes,
        node_types=kinds,
        node_type_dict=TYPES,
        edge_index=[[head for head, _, _ in edges], [tail for _, tail, _ in edges]],
        edge_types=[code for _, _, code in edges],
        edge_type_dict=RELATIONS,
    )


def ids(*names: str) -> list[int]:
    """Return the numbers of nodes, to which STaRK's answers refer."""
    return [ID[name] for name in names]


#: Question, right answers, the triples that the model writes, its scores (0 for all else).
QUESTIONS: tuple[tuple[str, list[int], str, dict[str, float]], ...] = ()


def write_questions(folder: Path, questions: Any) -> Path:
    """Write questions and the tenth of the test split as STaRK publishes them; return the file of questions.

    There is one question more than the split has.
    """
    (folder / "stark_qa").mkdir(parents=True)
    (folder / "split").mkdir()
    rows = [
        f'{number},"{text}","{gold}"'
        for number, (text, gold, *_) in enumerate([*questions, ("Left out?", [0])])
    ]
    (folder / "stark_qa" / "stark_qa.csv").write_text("\n".join(["id,query,answer_ids", *rows]) + "\n")
    (folder / "split" / "test-0.1.index").write_text("".join(f"{n}\n" for n in range(len(questions))))
    return folder / "stark_qa" / "stark_qa.csv"


def name_in(prompt: str) -> str:
    """Return the name of the node that a prompt shows."""
    (name,) = re.findall(r"^name: (.*)$", prompt, re.M)
    return name
