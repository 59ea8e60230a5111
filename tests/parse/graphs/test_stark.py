"""STaRK's processed knowledge bases: what is made of them, and that nothing in them is run."""

from __future__ import annotations

import io
import os
import pickle
import zipfile
from pathlib import Path

import numpy as np
import pytest

import clew
from clew.core.errors import UnreadableFile
from clew.parse.graphs.pickles import load_plain, load_tensor, to_list
from clew.parse.graphs.reader import declared_answer_types, detect_format
from stark_base import EDGES, NODES, write_stark, write_tensor


@pytest.mark.parametrize("protocol", [2, 4])
@pytest.mark.parametrize("zipped", [False, True])
def test_the_nodes_and_edges_of_a_base_in_the_official_layout(
    tmp_path: Path, protocol: int, zipped: bool
) -> None:
    place = write_stark(tmp_path / "prime", protocol)
    if zipped:
        place = tmp_path / "prime" / "processed.zip"
        with zipfile.ZipFile(place, "w", zipfile.ZIP_DEFLATED) as archive:
            for file in (tmp_path / "prime" / "processed").iterdir():
                archive.write(file, f"processed/{file.name}")
    with clew.open(tmp_path / "kb", create=True) as base:
        report = base.graphs.add(place)
        assert (report.graph.name, report.graph.nodes, report.graph.edges) == ("prime", 6, len(EDGES))
        assert base.graphs.add(place).outcome == "unchanged"
        graph = base.graphs.get("prime")
        assert dict(graph.types()) == {"disease": 2, "drug": 2, "gene/protein": 2}
        assert graph.answer_types() == ()  # in PRIME every node may answer
        gene, drug = graph.entities(graph.rows(["prime:2", "prime:4"]))
        assert (gene.name, gene.aliases) == ("ADRB2", ("B2AR", "BAR"))
        assert gene.text.startswith("summary: A receptor that opens the airways")
        assert gene.properties == {
            "generif": "bound by inhaled drugs",
            "id": 150,
            "interpro": "GPCR family",
            "source": "NCBI",
            "taxid": 9606,
        }
        assert drug.text == "An inhaled drug for the airways."
        assert drug.properties == {"half_life": "4 hours", "id": "DB1", "source": "DrugBank"}
        edges = {
            (int(head), relation, int(tail))
            for relation in graph.relations()
            for head in range(6)
            for tail in graph.neighbours(np.array([head]), relation)[1]
        }
        names = {0: "ppi", 1: "indication", 2: "associated with", 3: "target"}
        assert edges == {(head, names[kind], tail) for head, tail, kind in EDGES}


def test_mag_leaves_the_names_of_types_to_the_code_and_papers_answer(tmp_path: Path) -> None:
    paper = {
        "new_id": 2,
        "title": "Threads",
        "abstract": "On thread.",
        "Date": "2001-01-01",
        "OriginalVenue": -1,
    }
    nodes = {
        0: {"DisplayName": "A. Ariadne", "PaperCount": 3, "type": "author", "new_id": 0},
        1: {"DisplayName": "Knossos", "PaperCount": -1, "type": "institution"},
        2: paper,
    }
    place = write_stark(
        tmp_path / "mag",
        node_info=nodes,
        node_types=[0, 1, 3],
        edge_index=[[0, 0], [2, 1]],
        edge_types=[3, 0],
        node_type_dict=None,
        edge_type_dict=None,
    )
    assert detect_format(place) == "stark" and declared_answer_types(place) == ("paper",)
    with clew.open(tmp_path / "kb", create=True) as base:
        base.graphs.add(tmp_path / "mag", name="mag")
        graph = base.graphs.get("mag")
        assert graph.answer_types() == ("paper",)
        assert sorted(graph.relations()) == ["affiliated_with", "writes"]
        author, institution, paper = graph.entities(np.arange(3))
        assert (author.name, author.properties) == ("A. Ariadne", {"PaperCount": 3})
        assert (institution.name, institution.properties) == ("Knossos", {})
        assert (paper.name, paper.text, paper.properties) == ("Threads", "On thread.", {"Date": "2001-01-01"})


def test_products_have_reviews_those_with_most_votes_first(tmp_path: Path) -> None:
    review = {"summary": "Good", "reviewText": "It lasts.", "vote": "2"}
    product = {
        "title": "Card box",
        "brand": "Boxer",
        "description": ["Holds", "1000 cards."],
        "review": [review, {"summary": "Better", "reviewText": "Fine.", "vote": "1,024"}],
        "qa": [{"question": "Is it red?", "answer": "Yes."}],
    }
    folder = tmp_path / "amazon" / "processed" / "cache"
    write_stark(
        folder,
        node_info={0: product, 1: {"brand_name": np.str_("Boxer")}},
        node_types=[0, 1],
        node_type_dict={0: "product", 1: "brand"},
        edge_index=[[0], [1]],
        edge_types=[0],
        edge_type_dict={0: "has_brand"},
    )
    with clew.open(tmp_path / "kb", create=True) as base:
        base.graphs.add(tmp_path / "amazon", name="amazon")
        graph = base.graphs.get("amazon")
        box, brand = graph.entities(np.arange(2))
        assert box.text.splitlines() == [
            "Holds; 1000 cards.",
            "review: Better. Fine.",
            "review: Good. It lasts.",
            "question: Is it red? answer: Yes.",
        ]
        assert (brand.name, brand.type, graph.answer_types()) == ("Boxer", "brand", ("product",))


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        ({"edge_types": [0, 1]}, "shape"),
        ({"edge_index": [[0] * 8, [6] * 8]}, "a node that does not exist"),
        ({"node_types": [0, 0, 1, 1, 2, 9]}, "type 9 of nodes"),
        ({"edge_types": [0] * 7 + [4]}, "type 4 of edges"),
        ({"node_info": {0: NODES[0]}}, "a node for each of the 6"),
    ],
)
def test_files_that_do_not_fit_each_other_add_nothing(tmp_path: Path, changed: dict, problem: str) -> None:
    place = write_stark(tmp_path / "prime", **changed)
    with clew.open(tmp_path / "kb", create=True) as base:
        with pytest.raises(UnreadableFile, match=problem):
            base.graphs.add(place)
        assert base.graphs.infos() == []


def test_a_folder_that_holds_something_else_says_so(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    with clew.open(tmp_path / "kb", create=True) as base, pytest.raises(UnreadableFile):
        base.graphs.add(tmp_path / "x")


class Evil:
    """A pickle of this asks for a function to be called when it is read."""

    def __init__(self, call: object, *arguments: object) -> None:
        self.reduced = call, arguments

    def __reduce__(self):
        return self.reduced


@pytest.mark.parametrize("protocol", [0, 2, 4])
@pytest.mark.parametrize("file", ["node_info", "node_type_dict"])
def test_what_a_pickle_asks_to_be_run_is_not_run(tmp_path: Path, protocol: int, file: str) -> None:
    place = write_stark(tmp_path / "prime")
    witness = tmp_path / "was-run"
    for call in (Evil(os.mkdir, str(witness)), Evil(eval, f"__import__('os').mkdir({str(witness)!r})")):
        (place / f"{file}.pkl").write_bytes(pickle.dumps({0: call}, protocol=protocol))
        with (
            clew.open(tmp_path / "kb", create=True) as base,
            pytest.raises(UnreadableFile, match="no plain data"),
        ):
            base.graphs.add(place)
        assert not witness.exists()


def test_a_pickle_cannot_change_what_reads_it() -> None:
    # BUILD with a pair as state sets attributes of whatever lies below it: here of the function for scalars.
    content = b"\x80\x02cnumpy.core.multiarray\nscalar\nN}X\x05\x00\x00\x00_madecnumpy\ndtype\ns\x86b."
    with pytest.raises(UnreadableFile):
        load_plain(io.BytesIO(content), "x.pkl")
    value = np.float64(0.5)
    assert load_plain(io.BytesIO(pickle.dumps([value])), "x.pkl") == [0.5]


@pytest.mark.parametrize("protocol", [2, 3, 4, 5])
def test_numbers_and_texts_of_numpy_become_pythons_own(protocol: int) -> None:
    data = {
        "a": np.float64(1.5),
        "b": np.str_("xé"),
        "c": np.array([[1, 2], [3, 4]]),
        "d": np.bool_(True),
        "e": {1},
    }
    loaded = load_plain(io.BytesIO(pickle.dumps(data, protocol=protocol)), "x.pkl")
    loaded["c"] = to_list(loaded["c"])
    assert loaded == {"a": 1.5, "b": "xé", "c": [[1, 2], [3, 4]], "d": True, "e": {1}}
    assert [type(value) for value in loaded.values()] == [float, str, list, bool, set]


def test_an_array_of_objects_and_a_damaged_pickle_are_refused() -> None:
    for content in (pickle.dumps(np.datetime64("2001-01-01")), b"\x80\x04]", b"", b"not a pickle"):
        with pytest.raises(UnreadableFile):
            load_plain(io.BytesIO(content), "x.pkl")


def test_tensors_as_torch_writes_them(tmp_path: Path) -> None:
    write_tensor(tmp_path / "e.pt", [[0, 1, 2], [2, 0, 1]])
    with (tmp_path / "e.pt").open("rb") as stream:
        tensor = load_tensor(stream, "e.pt")
    assert tensor.dtype == np.int64 and tensor.tolist() == [[0, 1, 2], [2, 0, 1]]
    write_tensor(tmp_path / "f.pt", [0.5, 1.5], "f4")
    with (tmp_path / "f.pt").open("rb") as stream:
        assert load_tensor(stream, "f.pt").tolist() == [0.5, 1.5]


def test_a_tensor_that_reaches_beyond_its_storage_is_refused(tmp_path: Path) -> None:
    write_tensor(tmp_path / "e.pt", [1, 2, 3])
    with zipfile.ZipFile(tmp_path / "e.pt") as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    for change in (
        {"e/data/0": b"\0" * 8},
        {"e/data.pkl": members["e/data.pkl"].replace(b"(J\x03", b"(J\x09", 1)},
    ):
        with zipfile.ZipFile(tmp_path / "bad.pt", "w") as archive:
            for name, content in (members | change).items():
                archive.writestr(name, content)
        with (tmp_path / "bad.pt").open("rb") as stream, pytest.raises(UnreadableFile):
            load_tensor(stream, "bad.pt")
    with pytest.raises(UnreadableFile, match="torch"):
        load_tensor(io.BytesIO(b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."), "old.pt")


def test_tensors_equal_those_of_torch(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    strided = torch.arange(12).view(3, 4).t()[1:]
    for name, tensor in (
        ("a", strided),
        ("b", torch.zeros(0, dtype=torch.long)),
        ("c", torch.arange(9)[3:5]),
    ):
        torch.save(tensor, tmp_path / f"{name}.pt")
        with (tmp_path / f"{name}.pt").open("rb") as stream:
            assert load_tensor(stream, name).tolist() == tensor.tolist()
