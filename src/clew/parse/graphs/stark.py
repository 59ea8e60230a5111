"""The processed knowledge bases of STaRK (Wu et al., NeurIPS 2024): PRIME, MAG and AMAZON, as they are published.

A knowledge base is a folder (``processed``; for AMAZON ``processed/cache/brand-category-color``) or the
``processed.zip`` that it is published in. It has ``node_info.pkl`` (a dictionary of the fields of each node, by
number), ``node_types.pt``, ``edge_index.pt`` (2 x edges) and ``edge_types.pt``. The names of both kinds of types are
in ``node_type_dict.pkl`` and ``edge_type_dict.pkl``; MAG has neither file, and its names are written here.

Ids are the nodes' numbers, to which STaRK's answers refer. The fields that STaRK's own code writes into a node's
document (``get_doc_info``) become its name, aliases, text and properties. An edge type of three parts
(``author___writes___paper``) is named by the middle one. Edges are directed as they are stored; STaRK's code makes
them undirected.

The pickles are read as plain data (:mod:`clew.parse.graphs.pickles`): no code in them is run, torch is not needed.
The dictionary of nodes is in memory as a whole while it is read, since a pickle cannot be read in part.
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
from clew.core.text import read_count
from clew.parse.graphs.columns import to_json_value
from clew.parse.graphs.files import RowErrors
from clew.parse.graphs.formats import GraphFormat, GraphReadOptions
from clew.parse.graphs.pickles import load_plain, load_tensor, to_list

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

    from numpy.typing import NDArray

NODES, NODE_TYPES, EDGES, EDGE_TYPES = "node_info.pkl", "node_types.pt", "edge_index.pt", "edge_types.pt"
NODE_NAMES, EDGE_NAMES = "node_type_dict.pkl", "edge_type_dict.pkl"
_NEEDED = (NODES, NODE_TYPES, EDGES, EDGE_TYPES)
#: The files may lie in a folder so many levels below the given one.
_DEPTH = 4
#: The names of MAG's types, which its files do not hold.
_MAG_NODES = {0: "author", 1: "institution", 2: "field_of_study", 3: "paper"}
_MAG_EDGES = {
    0: "author___affiliated_with___institution",
    1: "paper___cites___paper",
    2: "paper___has_topic___field_of_study",
    3: "author___writes___paper",
}
#: Types that a knowledge base is recognised by, and those of them that may answer; in any other, all may.
_ANSWERS = (({"product", "brand"}, ("product",)), ({"paper", "author"}, ("paper",)))
#: Fields with a node's name, in order of preference; with other names; and those that are left out.
_NAMES = ("name", "title", "DisplayName", "brand_name", "category_name", "color_name")
_ALIASES = ("alias", "other_names")
_LEFT_OUT = frozenset({"type", "new_id"})
#: A field of so many characters is part of the node's text; a shorter one is a property.
_MIN_TEXT_LENGTH = 120
#: So many reviews, questions or remarks of a node are read, as in STaRK (``max_entries``).
_MAX_ENTRIES = 25
#: Edges that are converted at a time.
_BLOCK = 1 << 16
#: Values that stand for a missing value in MAG and AMAZON.
_MISSING = ("", "nan", "-1", "None")


def is_stark(path: Path) -> bool:
    """Return whether a folder or zip archive holds a processed knowledge base of STaRK."""
    if not path.is_dir() and path.suffix.lower() != ".zip":
        return False
    try:
        return bool(_find_folders(path))
    except (OSError, zipfile.BadZipFile):
        return False


def _list_files(path: Path) -> list[Path]:
    """Return the files on disk that are read: the archive, or the files in the folder. Raises UnreadableFile."""
    if not path.is_dir():
        return [path]
    folder = Path(str(_find_folder(path)))
    return [folder / name for name in (*_NEEDED, NODE_NAMES, EDGE_NAMES) if (folder / name).is_file()]


def _answer_types(path: Path) -> tuple[str, ...]:
    """Return the types of nodes that may answer STaRK's questions: its ``candidate_types``; none where all may."""
    types = set(_type_names(_find_folder(path), NODE_NAMES, _MAG_NODES).values())
    return next((answers for known, answers in _ANSWERS if known <= types), ())


def _read_stark(
    path: Path,
    sink: GraphSink,
    options: GraphReadOptions,
    errors: RowErrors,
    report_progress: Callable[[int], None],
) -> None:
    """Add a knowledge base to ``sink``. Raises UnreadableFile.

    ``report_progress`` is called with the number of bytes on disk that are read.
    """
    folder = _find_folder(path)
    type_names = _type_names(folder, NODE_NAMES, _MAG_NODES)
    relation_names = _type_names(folder, EDGE_NAMES, _MAG_EDGES)
    node_types = _read_tensor(folder, NODE_TYPES)
    nodes = _read(folder, NODES, load_plain)
    if not isinstance(nodes, dict) or {int(number) for number in nodes} != set(range(len(node_types))):
        raise UnreadableFile(
            f"{path}: {NODES} does not hold a node for each of the {len(node_types):,} {NODE_TYPES}"
        )
    edges, edge_types = _read_tensor(folder, EDGES), _read_tensor(folder, EDGE_TYPES)
    if problem := _mismatch(node_types, type_names, edges, edge_types, relation_names):
        raise UnreadableFile(f"{path}: {problem}", "Are all files of one knowledge base?")
    ids = [str(number) for number in range(len(node_types))]
    for number in list(nodes):
        # Each node is dropped from the dictionary once it is added, to free its memory.
        _add_node(ids[int(number)], type_names[int(node_types[int(number)])], nodes.pop(number), sink)
    size = path.stat().st_size if path.is_file() else sum(file.stat().st_size for file in _list_files(path))
    report_progress(size // 2)
    relations = _shorten_relations(relation_names)
    for start in range(0, len(edge_types), _BLOCK):
        heads, tails = edges[:, start : start + _BLOCK].tolist()
        types = edge_types[start : start + _BLOCK].tolist()
        for head, tail, type in zip(heads, tails, types, strict=True):
            sink.add_edge(ids[head], relations[int(type)], ids[tail])
        done = min(start + _BLOCK, len(edge_types))
        report_progress(size // 2 + size * done // (2 * len(edge_types)))


def _find_folders(path: Path) -> list[Traversable]:
    """Return the folders in ``path`` that have all files."""
    folders: list[Traversable] = []
    level: list[Traversable] = [path if path.is_dir() else zipfile.Path(path)]
    for _ in range(_DEPTH):
        folders += [folder for folder in level if all((folder / name).is_file() for name in _NEEDED)]
        level = sorted((entry for folder in level for entry in folder.iterdir() if entry.is_dir()), key=str)
    return folders


def _find_folder(path: Path) -> Traversable:
    try:
        folders = _find_folders(path)
    except (OSError, zipfile.BadZipFile) as error:
        raise UnreadableFile(f"{path}: {error}") from error
    if len(folders) != 1:
        raise UnreadableFile(
            f"{path}: it holds {len(folders) or 'no'} processed knowledge bases of STaRK",
            f"Name the folder that has {', '.join(_NEEDED)}",
        )
    return folders[0]


def _read(folder: Traversable, name: str, load: Callable[[Any, str], Any]) -> Any:
    try:
        with (folder / name).open("rb") as stream:
            if isinstance(folder, Path):
                return load(stream, str(folder / name))
            # Within an archive: torch's files are archives themselves, which are read from their end.
            with TemporaryFile() as copy:
                while block := stream.read(1 << 20):
                    copy.write(block)
                copy.seek(0)
                return load(copy, str(folder / name))
    except (OSError, zipfile.BadZipFile) as error:
        raise UnreadableFile(f"{folder / name}: {error}") from error


def _read_tensor(folder: Traversable, name: str) -> NDArray[Any]:
    tensor: NDArray[Any] = _read(folder, name, load_tensor)
    return tensor


def _type_names(folder: Traversable, file: str, default: Mapping[int, str]) -> dict[int, str]:
    """Return the names of types by number; ``default`` (MAG's names) where the file does not exist."""
    if not (folder / file).is_file():
        return dict(default)
    names = _read(folder, file, load_plain)
    if not isinstance(names, dict):
        raise UnreadableFile(f"{folder / file}: holds no dictionary of types")
    return {int(number): str(name) for number, name in names.items()}


def _mismatch(
    node_types: NDArray[Any],
    type_names: Mapping[int, str],
    edges: NDArray[Any],
    edge_types: NDArray[Any],
    relation_names: Mapping[int, str],
) -> str:
    """Return how the files contradict each other, "" where they do not."""
    if edges.ndim != 2 or edges.shape != (2, len(edge_types)):
        return f"{EDGES} has the shape {edges.shape}, and there are {len(edge_types):,} {EDGE_TYPES}"
    if edges.size and (edges.min() < 0 or edges.max() >= len(node_types)):
        return f"{EDGES} names a node that does not exist"
    if unknown := {int(number) for number in node_types.ravel().tolist()} - type_names.keys():
        return f"the type {min(unknown)} of nodes has no name"
    if unknown := {int(number) for number in edge_types.ravel().tolist()} - relation_names.keys():
        return f"the type {min(unknown)} of edges has no name"
    return ""


def _shorten_relations(names: Mapping[int, str]) -> dict[int, str]:
    """Return the names of relations: of ``author___writes___paper`` the middle, where no other has the same."""
    short = {
        number: (name.split("___") * 3)[1] if name.count("___") == 2 else name
        for number, name in names.items()
    }
    all_short = list(short.values())
    return {
        number: short[number] if all_short.count(short[number]) == 1 else name
        for number, name in names.items()
    }


def _add_node(id: str, type: str, info: Any, sink: GraphSink) -> None:
    fields = {str(key): value for key, value in _flatten(info) if str(key) not in _LEFT_OUT}
    names = (value for key in _NAMES if (value := _field_value(fields.get(key))) is not None)
    name = next(names, "")
    texts: list[str] = []
    properties: dict[str, Any] = {}
    for key, field in fields.items():
        if key in _NAMES and _field_value(field) == name:
            continue
        if key in {"review", "qa"}:
            texts += _entry_lines(field)
        elif key not in _ALIASES and (value := _field_value(field)) is not None:
            is_long = isinstance(value, str) and len(value) >= _MIN_TEXT_LENGTH
            if key in {"abstract", "description"}:
                texts.insert(0, str(value))
            elif is_long:
                texts.append(f"{key}: {value}")
            else:
                properties[key] = value
    aliases = [alias for key in _ALIASES for alias in _strings(fields.get(key)) if alias != name]
    sink.add_node(
        id,
        types=[type],
        name=str(name),
        aliases=list(dict.fromkeys(aliases)),
        text="\n".join(texts),
        properties=properties,
    )


def _flatten(info: Any) -> Iterator[tuple[str, Any]]:
    """Yield the fields of a node, with those of its ``details`` at their end, but for ids in other databases."""
    if not isinstance(info, dict):
        return
    for key, value in info.items():
        if key != "details" or not isinstance(value, dict):
            yield key, value
    details = info.get("details")
    for key, value in details.items() if isinstance(details, dict) else ():
        if not str(key).startswith("_") and "_id" not in str(key) and key not in info:
            yield key, value


def _field_value(field: Any) -> Any:
    """Return a field as a property or text, None for a missing value."""
    field = to_list(field)
    if isinstance(field, (set, frozenset)):
        field = sorted(field, key=str)
    if isinstance(field, (list, tuple)):
        values = [value for part in field[:_MAX_ENTRIES] if (value := _field_value(part)) is not None]
        return "; ".join(map(str, values)) or None
    if isinstance(field, dict):
        for key in ("text", "desc"):  # PubMed's remarks and protein families of PRIME's genes
            if isinstance(field.get(key), str):
                return field[key]
        return json.dumps(field, ensure_ascii=False, sort_keys=True, default=str) if field else None
    value = to_json_value(field)
    return None if value is None or str(value).strip() in _MISSING else value


def _strings(field: Any) -> Iterable[str]:
    field = to_list(field)
    values = field if isinstance(field, (list, tuple)) else [field]
    texts = [value.strip() for value in values if isinstance(value, str)]
    return [text for text in texts if text not in _MISSING]


def _entry_lines(field: Any) -> Iterator[str]:
    """Yield reviews, those with most votes first, and questions with their answers, as lines."""
    entries = [entry for entry in to_list(field) or () if isinstance(entry, dict)]
    for entry in sorted(entries, key=lambda entry: -_count_votes(entry.get("vote")))[:_MAX_ENTRIES]:
        if "question" in entry:
            question, answer = _field_value(entry["question"]), _field_value(entry.get("answer"))
            yield f"question: {question or ''} answer: {answer or ''}"
        else:
            parts = (_field_value(entry.get("summary")), _field_value(entry.get("reviewText")))
            yield "review: " + ". ".join(str(part) for part in parts if part is not None)


def _count_votes(vote: Any) -> int:
    digits = str(vote).replace(",", "").partition(".")[0]
    return read_count(digits) or 0


#: A folder or zip archive, recognised by the files in it.
FORMATS = (
    GraphFormat("stark", _read_stark, matches=is_stark, list_files=_list_files, answer_types=_answer_types),
)
