"""The processed knowledge bases of STaRK (Wu et al., NeurIPS 2024): PRIME, MAG and AMAZON, as they are published.

A folder (``processed``; of AMAZON ``processed/cache/brand-category-color``), or the ``processed.zip`` that it comes
in, with ``node_info.pkl`` (a dictionary of what is known of each node, by number), ``node_types.pt``,
``edge_index.pt`` (2 x edges) and ``edge_types.pt``; and the names of both kinds of types in ``node_type_dict.pkl``
and ``edge_type_dict.pkl``, which MAG leaves to the code.

Ids are the nodes' numbers, to which STaRK's answers refer. What STaRK's own code writes into a node's document
(``get_doc_info``) becomes its name, aliases, text and properties. MAG's edge types (``author___writes___paper``) are
called by their middle part. Edges are kept as they are given; STaRK's code then makes them undirected.

The pickles are read as plain data (:mod:`clew.parse.graphs.pickles`), so nothing in them is run, and torch is
not needed.
The dictionary of nodes is in memory as a whole while it is read: a pickle cannot be read in part.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any

from clew.core.errors import UnreadableFile
from clew.core.protocols import GraphSink
from clew.parse.graphs.columns import to_json_value
from clew.parse.graphs.pickles import load_plain, load_tensor, to_list

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

    from numpy.typing import NDArray

NODES, NODE_TYPES, EDGES, EDGE_TYPES = "node_info.pkl", "node_types.pt", "edge_index.pt", "edge_types.pt"
NODE_NAMES, EDGE_NAMES = "node_type_dict.pkl", "edge_type_dict.pkl"
_NEEDED = (NODES, NODE_TYPES, EDGES, EDGE_TYPES)
#: Folders below the one that is given in which the files may lie.
_DEPTH = 4
#: The names of MAG's types, which its files do not hold.
_MAG_NODES = {0: "author", 1: "institution", 2: "field_of_study", 3: "paper"}
_MAG_EDGES = {
    0: "author___affiliated_with___institution",
    1: "paper___cites___paper",
    2: "paper___has_topic___field_of_study",
    3: "author___writes___paper",
}
#: By which types a base is known, and which of them may answer; of any other all may.
_ANSWERS = (({"product", "brand"}, ("product",)), ({"paper", "author"}, ("paper",)))
#: Keys of a node that hold its name, the first that is there; what holds other names, and what is left out.
_NAMES = ("name", "title", "DisplayName", "brand_name", "category_name", "color_name")
_ALIASES = ("alias", "other_names")
_LEFT_OUT = frozenset({"type", "new_id"})
#: Texts from this length on are text, shorter ones properties.
_LONG = 120
#: Reviews, questions and remarks of a node that are taken, as in STaRK (``max_entries``).
_ENTRIES = 25
#: Edges that are given at once.
_BLOCK = 1 << 16
#: What MAG and AMAZON write for a missing value.
_MISSING = ("", "nan", "-1", "None")


def is_stark(path: Path) -> bool:
    """Return whether a folder or zip archive holds a processed knowledge base of STaRK."""
    if not path.is_dir() and path.suffix.lower() != ".zip":
        return False
    try:
        return bool(_places(path))
    except (OSError, zipfile.BadZipFile):
        return False


def list_stark_files(path: Path) -> list[Path]:
    """Return the files on disk that are read: the archive, or those in the folder. Raises UnreadableFile."""
    if not path.is_dir():
        return [path]
    place = Path(str(_place(path)))
    return [place / name for name in (*_NEEDED, NODE_NAMES, EDGE_NAMES) if (place / name).is_file()]


def answer_types(path: Path) -> tuple[str, ...]:
    """Return the types of nodes that may answer STaRK's questions: its ``candidate_types``; none where all may."""
    types = set(_named(_place(path), NODE_NAMES, _MAG_NODES).values())
    return next((answers for known, answers in _ANSWERS if known <= types), ())


def read_stark(path: Path, sink: GraphSink, tick: Callable[[int], None]) -> None:
    """Give a knowledge base to ``sink``; ``tick`` is told how many bytes are read. Raises UnreadableFile."""
    place = _place(path)
    types, relations = _named(place, NODE_NAMES, _MAG_NODES), _named(place, EDGE_NAMES, _MAG_EDGES)
    numbers = _tensor(place, NODE_TYPES)
    info = _opened(place, NODES, load_plain)
    if not isinstance(info, dict) or {int(one) for one in info} != set(range(len(numbers))):
        raise UnreadableFile(
            f"{path}: {NODES} does not hold a node for each of the {len(numbers):,} {NODE_TYPES}"
        )
    edges, kinds = _tensor(place, EDGES), _tensor(place, EDGE_TYPES)
    _check(path, numbers, types, edges, kinds, relations)
    ids = [str(number) for number in range(len(numbers))]
    for number in list(info):
        _node(ids[int(number)], types[int(numbers[int(number)])], info.pop(number), sink)
    size = (
        path.stat().st_size if path.is_file() else sum(one.stat().st_size for one in list_stark_files(path))
    )
    tick(size // 2)
    called = _called(relations)
    for start in range(0, len(kinds), _BLOCK):
        heads, tails = edges[:, start : start + _BLOCK].tolist()
        for head, tail, kind in zip(heads, tails, kinds[start : start + _BLOCK].tolist(), strict=True):
            sink.add_edge(ids[head], called[int(kind)], ids[tail])
        tick(size // 2 + size * min(start + _BLOCK, len(kinds)) // (2 * len(kinds)))


def _places(path: Path) -> list[Traversable]:
    """Return the folders in ``path`` that have all files."""
    found: list[Traversable] = []
    level: list[Traversable] = [path if path.is_dir() else zipfile.Path(path)]
    for _ in range(_DEPTH):
        found += [one for one in level if all((one / name).is_file() for name in _NEEDED)]
        level = sorted((one for folder in level for one in folder.iterdir() if one.is_dir()), key=str)
    return found


def _place(path: Path) -> Traversable:
    try:
        places = _places(path)
    except (OSError, zipfile.BadZipFile) as error:
        raise UnreadableFile(f"{path}: {error}") from error
    if len(places) != 1:
        raise UnreadableFile(
            f"{path}: it holds {len(places) or 'no'} processed knowledge bases of STaRK",
            f"Name the folder that has {', '.join(_NEEDED)}",
        )
    return places[0]


def _opened(place: Traversable, name: str, read: Callable[[Any, str], Any]) -> Any:
    try:
        with (place / name).open("rb") as stream:
            if isinstance(place, Path):
                return read(stream, str(place / name))
            # Within an archive: torch's files are archives themselves, which are read from their end.
            with TemporaryFile() as copy:
                while block := stream.read(1 << 20):
                    copy.write(block)
                copy.seek(0)
                return read(copy, str(place / name))
    except (OSError, zipfile.BadZipFile) as error:
        raise UnreadableFile(f"{place / name}: {error}") from error


def _tensor(place: Traversable, name: str) -> NDArray[Any]:
    found: NDArray[Any] = _opened(place, name, load_tensor)
    return found


def _named(place: Traversable, file: str, usual: Mapping[int, str]) -> dict[int, str]:
    """Return what types are called, by number; MAG's names where the file is not there."""
    if not (place / file).is_file():
        return dict(usual)
    found = _opened(place, file, load_plain)
    if not isinstance(found, dict):
        raise UnreadableFile(f"{place / file}: holds no dictionary of types")
    return {int(number): str(name) for number, name in found.items()}


def _check(
    path: Path,
    numbers: NDArray[Any],
    types: Mapping[int, str],
    edges: NDArray[Any],
    kinds: NDArray[Any],
    relations: Mapping[int, str],
) -> None:
    """Raise UnreadableFile where the files do not fit each other."""
    problem = ""
    if edges.ndim != 2 or edges.shape != (2, len(kinds)):
        problem = f"{EDGES} has the shape {edges.shape}, and there are {len(kinds):,} {EDGE_TYPES}"
    elif edges.size and (edges.min() < 0 or edges.max() >= len(numbers)):
        problem = f"{EDGES} names a node that is not there"
    elif unknown := {int(one) for one in numbers.ravel().tolist()} - types.keys():
        problem = f"the type {min(unknown)} of nodes has no name"
    elif unknown := {int(one) for one in kinds.ravel().tolist()} - relations.keys():
        problem = f"the type {min(unknown)} of edges has no name"
    if problem:
        raise UnreadableFile(f"{path}: {problem}", "Are all files of one knowledge base?")


def _called(relations: Mapping[int, str]) -> dict[int, str]:
    """Return what relations are called: of ``author___writes___paper`` the middle, where no other has the same."""
    short = {
        number: (name.split("___") * 3)[1] if name.count("___") == 2 else name
        for number, name in relations.items()
    }
    times = list(short.values())
    return {
        number: short[number] if times.count(short[number]) == 1 else name
        for number, name in relations.items()
    }


def _node(id: str, type: str, given: Any, sink: GraphSink) -> None:
    said = {str(key): one for key, one in _flat(given) if str(key) not in _LEFT_OUT}
    name = next((one for key in _NAMES if (one := _value(said.get(key))) is not None), "")
    texts: list[str] = []
    properties: dict[str, Any] = {}
    for key, one in said.items():
        if key in _NAMES and _value(one) == name:
            continue
        if key in {"review", "qa"}:
            texts += _entries(one)
        elif key not in _ALIASES and (value := _value(one)) is not None:
            long = isinstance(value, str) and len(value) >= _LONG
            if key in {"abstract", "description"}:
                texts.insert(0, str(value))
            elif long:
                texts.append(f"{key}: {value}")
            else:
                properties[key] = value
    aliases = [alias for key in _ALIASES for alias in _strings(said.get(key)) if alias != name]
    sink.add_node(
        id,
        types=[type],
        name=str(name),
        aliases=list(dict.fromkeys(aliases)),
        text="\n".join(texts),
        properties=properties,
    )


def _flat(given: Any) -> Iterator[tuple[str, Any]]:
    """Yield what is known of a node; its ``details`` as if they stood beside the rest, without other bases' ids."""
    if not isinstance(given, dict):
        return
    for key, value in given.items():
        if key != "details" or not isinstance(value, dict):
            yield key, value
    details = given.get("details")
    for key, value in details.items() if isinstance(details, dict) else ():
        if not str(key).startswith("_") and "_id" not in str(key) and key not in given:
            yield key, value


def _value(given: Any) -> Any:
    """Return a value as a property or text, None for one that is missing."""
    given = to_list(given)
    if isinstance(given, (set, frozenset)):
        given = sorted(given, key=str)
    if isinstance(given, (list, tuple)):
        some = [one for part in given[:_ENTRIES] if (one := _value(part)) is not None]
        return "; ".join(str(one) for one in some) or None
    if isinstance(given, dict):
        for key in ("text", "desc"):  # PubMed's remarks and protein families of PRIME's genes
            if isinstance(given.get(key), str):
                return given[key]
        return json.dumps(given, ensure_ascii=False, sort_keys=True, default=str) if given else None
    found = to_json_value(given)
    return None if found is None or str(found).strip() in _MISSING else found


def _strings(given: Any) -> Iterable[str]:
    given = to_list(given)
    several = given if isinstance(given, (list, tuple)) else [given]
    return [one.strip() for one in several if isinstance(one, str) and one.strip() not in _MISSING]


def _entries(given: Any) -> Iterator[str]:
    """Yield reviews, those with most votes first, and questions with their answers, as lines."""
    entries = [one for one in to_list(given) or () if isinstance(one, dict)]
    for one in sorted(entries, key=lambda one: -_votes(one.get("vote")))[:_ENTRIES]:
        if "question" in one:
            yield f"question: {_value(one['question']) or ''} answer: {_value(one.get('answer')) or ''}"
        else:
            summary, text = _value(one.get("summary")), _value(one.get("reviewText"))
            yield "review: " + ". ".join(str(part) for part in (summary, text) if part is not None)


def _votes(said: Any) -> int:
    digits = str(said).replace(",", "").partition(".")[0]
    return int(digits) if digits.isdecimal() else 0
