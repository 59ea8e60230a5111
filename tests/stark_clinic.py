"""A knowledge base of drugs in STaRK's layout, large enough that a list of 20 leaves some of it out, with questions
and what a scripted model says of each."""

from __future__ import annotations

import json
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


#: Question, right answers, what a model writes of it, and the scores that it gives (0 to all else).
QUESTIONS: tuple[tuple[str, list[int], str, dict[str, float]], ...] = (
    (
        "Which drug for asthma is inhaled at once in an emergency?",
        ids("salbutamol"),
        "#1 : drug\n#1 >> indication >> asthma\nfinal answer: #1",
        {"salbutamol": 0.9, "formoterol": 0.6},
    ),
    (
        "Which drug for asthma is quick and long at once?",
        ids("formoterol"),
        "#1 : drug\n#1 >> indication >> asthma\nfinal answer: #1",
        {"salmeterol": 0.9, "terbutaline": 0.8, "formoterol": 0.7},
    ),
    (
        "Which drug from the crocus calms an attack of migraine?",
        ids("colchicine"),
        "#1 : drug\n#1 >> indication >> migraine\nfinal answer: #1",
        {"colchicine": 1.0, "erenumab": 0.3},
    ),
    (
        "Which drug for gout acts on HRH1?",
        ids("febuxostat"),
        "#1 : drug\n#1 >> indication >> gout\n#1 >> acts on >> HRH1\nfinal answer: #1",
        {"febuxostat": 0.8, "cetirizine": 0.9},
    ),
    (
        "Which drug eases a hum in the ear?",
        ids("loratadine"),
        "#1 >> indication >> tinnitus\nfinal answer: #1",
        {"cetirizine": 0.9, "loratadine": 0.5},
    ),
    ("Which plant helps nobody?", ids("CALCA"), "I do not know.", {"herb aa": 0.4}),
    (
        "What treats gout?",
        ids("allopurinol", "febuxostat", "probenecid", "colchicine"),
        "#1 >> indication >> gout\nfinal answer: #1",
        {"XDH": 1.0, "allopurinol": 0.9, "febuxostat": 0.8, "probenecid": 0.7},
    ),
)


def write_questions(folder: Path) -> Path:
    """Write the questions, and one more, and the tenth of the test split, which is without that, as STaRK publishes
    them; return the file of questions."""
    (folder / "stark_qa").mkdir(parents=True)
    (folder / "split").mkdir()
    asked = [*((text, gold) for text, gold, _, _ in QUESTIONS), ("Which is left out?", [0])]
    rows = [f'{number},"{text}","{gold}"' for number, (text, gold) in enumerate(asked)]
    (folder / "stark_qa" / "stark_qa.csv").write_text("\n".join(["id,query,answer_ids", *rows]) + "\n")
    (folder / "split" / "test-0.1.index").write_text("".join(f"{n}\n" for n in range(len(QUESTIONS))))
    return folder / "stark_qa" / "stark_qa.csv"


def reply(request: Any) -> str:
    """Write the triples of a question, score a candidate, or put candidates in order."""
    (asked,) = [question for question in QUESTIONS if question[0] in request.user]
    _, _, triples, scores = asked
    names = re.findall(r"^name: (.*)$", request.user, re.M)
    if "typed triples" in request.system:
        return triples
    if "in order" in request.system:
        order = sorted(range(len(names)), key=lambda n: -scores.get(names[n], 0.0))
        return json.dumps({"ranking": [n + 1 for n in order]})
    (name,) = names
    return str(scores.get(name, 0.0))
