"""Graphs in files: Matrix Market, edge lists, METIS, `.npz` and memory-mapped folders; pairs in `.npy` and Parquet.

All but folders may be compressed: `.gz`, `.bz2`, `.xz`, `.zst`. An open file may stand in place of a path.

A file is read whole or refused: FormatError names the file, the line (for arrays the member), and what was expected.
A file is written whole or not at all.
"""

import errno
import logging
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tcgpu.errors import GraphError, roomy
from tcgpu.files import COMPRESSIONS, GivenFile, as_text, compression, given_file, replacing, replacing_folder
from tcgpu.formats import binary, edge_list, matrix_market, metis, pairs
from tcgpu.graph import Graph, as_graph, known_count
from tcgpu.progress import part, underway
from tcgpu.suggest import check_known


@dataclass(frozen=True)
class Format:
    """A file format: its title, the endings of its names, and the functions that read and write it."""

    title: str
    endings: tuple[str, ...]
    write: Callable | None = None  # (graph, stream); for a folder (graph, folder); None: it is only read
    read: Callable | None = None  # (path, base, n) -> Graph; by default, Graph.from_edges of the edges
    read_edges: Callable | None = None  # (path, base, n) -> (u, v, n, labels)
    keywords: tuple[str, ...] = ()  # of `read`, which are for it, as it holds no more than edges


EDGE_LIST = Format(
    "edge list",
    (".txt", ".el", ".edges", ".edgelist", ".csv", ".tsv"),
    edge_list.write,
    read_edges=edge_list.read_edges,
    keywords=("base", "columns", "relabel"),
)
FOLDER = Format("folder of memory-mapped arrays", (), binary.write_folder, binary.read_folder)
FORMATS = {
    "mtx": Format("Matrix Market", (".mtx",), matrix_market.write, read_edges=matrix_market.read_edges),
    "edges": EDGE_LIST,
    "metis": Format("METIS", (".graph", ".metis"), metis.write, metis.read),
    "npz": Format("NumPy archive, of tcgpu or of scipy.sparse.save_npz", (".npz",), binary.write_npz, binary.read_npz),
    "npy": Format("NumPy array of pairs", (".npy",), read=pairs.read_npy, keywords=("base", "relabel")),
    "parquet": Format("Parquet table", (".parquet", ".pq"), None, pairs.read_parquet, None, EDGE_LIST.keywords),
    "folder": FOLDER,
}


log = logging.getLogger("tcgpu")
_LABELS = "an edge list has labels only if they are distinct whole numbers from 0; .npz and folders keep them"


@roomy
def read(
    path: str | os.PathLike[str],
    format: str | None = None,
    *,
    base: int | None = None,
    n: int | None = None,
    relabel: bool | None = None,
    columns: tuple[int, int] | tuple[str, str] | None = None,
    progress: bool | Callable[[float, float], Any] | None = None,
) -> Graph:
    """Read the graph in a file or folder; its name is that of the file. A FormatError names the line that is wrong.

    Parameters
    ----------
    path
        Or an open file, of bytes or text, which is read to its end: an edge list, unless its name or `format` says
        otherwise. In a folder, arrays larger than 4 MB are mapped into memory, and so is a text of more than 256 MB
        while it is read. Such a file must not be truncated meanwhile: the system would end the process (SIGBUS).
    format
        A name in FORMATS; by default the ending of the path decides.
    base
        For an edge list (also npy and parquet): 0 or 1, the number of the first vertex. The numbers in the file are
        the vertices.
    n
        The number of vertices, counted from `base` or 0.
    relabel
        For an edge list: True numbers the vertices that occur in ascending order, and `graph.labels` keeps their names
        in the file, any text, or their numbers, as does `graph.ids`; so does the default with numbers, unless the
        file's heading says how many vertices there are, or `base` or `n` is given. False means `base=0`.
    columns
        For an edge list: which two columns hold the ends of an edge, by their numbers, from 0 on, or by their names in
        the first line; by default those with names such as source and target, else the first two.
    progress
        True shows a bar, False none, None one at a terminal only; a function is called with (done, total).
    """
    if hasattr(path, "read"):
        path = given_file(path)
    name = as_text(path)
    if not (isinstance(name, GivenFile) or os.path.exists(name)):
        by_name = "" if {".", "/"} & set(name) else f"; published graphs are loaded by name: tcgpu.load({name!r})"
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT) + by_name, name)
    chosen = _format(name, format)
    for keyword, value in (("base", base), ("columns", columns), ("relabel", relabel or None)):
        if value is not None and keyword not in chosen.keywords:
            raise GraphError(f"{name}: {keyword}= is for edge lists; a {chosen.title} has its vertices in one way only")
    if base not in (None, 0, 1):
        raise GraphError(f"base must be 0 or 1, not {base!r}")
    n, more = None if n is None else known_count(n), {} if columns is None else {"columns": columns}
    if relabel and chosen is EDGE_LIST:
        more["relabel"] = True
    if relabel and not (base is None and n is None):
        raise GraphError(f"{name}: relabel=True numbers the vertices that occur; it goes without base= and n=")
    if relabel is False and base is None and "base" in chosen.keywords:
        base = 0
    with underway(progress, f"reading {name}"):
        if chosen.read is None:
            with part(0, 2):
                u, v, n, labels = chosen.read_edges(name, base, n, **more)
            with part(1, 2):
                graph = Graph.from_edges(u, v, n, labels=labels)
        else:
            graph = chosen.read(name, base, n, **more)
    graph.name = None if name.startswith("<") else _stem(name, chosen)
    return graph


def open_folder(path: str | os.PathLike[str]) -> Graph:
    """As `read` for a folder, but without reading and checking its columns, for folders that were checked before."""
    graph = binary.read_folder(path, validate=False)
    graph.name = _stem(as_text(path), FOLDER)
    return graph


@roomy
def write(graph: Any, path: str | os.PathLike[str], format: str | None = None) -> None:
    """Write a graph to a file or folder.

    A file that exists is replaced once all is written, and its mode and owner are kept; a folder is replaced only if
    tcgpu wrote it and everything in it. All formats number the vertices as the graph does; an edge list writes labels
    if they are distinct whole numbers from 0, and logs that it does not (logger "tcgpu"); `.npz` and a folder keep
    numbers and text.

    Parameters
    ----------
    graph
        A Graph or anything that `as_graph` takes.
    path
        Its ending selects the format and the compression; a path that ends with a slash is a folder. Or an open file,
        of bytes or text: an edge list, unless `format` says otherwise.
    format
        A name in FORMATS, for a path with another ending.
    """
    graph = as_graph(graph)
    stream = path
    path = f"<{type(stream).__name__}>" if hasattr(stream, "write") else as_text(path)
    chosen = _format(path, format or ("edges" if hasattr(stream, "write") else None))
    if chosen.write is None:
        raise GraphError(f"{path}: a {chosen.title} is only read; .npz and folders keep all of a graph, .csv its edges")
    text = hasattr(stream, "encoding")
    if hasattr(stream, "write") and (chosen is FOLDER or text and chosen.write is binary.write_npz):
        raise GraphError(f"{path}: a {chosen.title} goes to {'a file of bytes' if text else 'a path'}, not in here")
    try:
        if chosen is FOLDER:
            with replacing_folder(path, binary.is_ours) as folder:
                chosen.write(graph, folder)
            return
        with replacing(stream) as stream:
            if chosen is EDGE_LIST:
                ending = _ending(path)
                if graph.labels is not None and edge_list.numeric_labels(graph.labels) is None:
                    log.warning("%s: the file has vertex numbers from 0, as %s", path, _LABELS)
                chosen.write(graph, stream, "," if ending == ".csv" else "\t", heading=ending in (".csv", ".tsv"))
            else:
                chosen.write(graph, stream)
    except GraphError as error:
        raise error if str(error).startswith(path) else GraphError(f"{path}: {error}") from error.__cause__


def format_of(path: str | os.PathLike[str]) -> str | None:
    """The name of the format of a file, by its ending, or of a folder that tcgpu wrote; None if it is neither."""
    if os.path.isdir(path):
        return "folder" if binary.is_ours(path) else None
    return _by_ending(path)


def _format(path, name):
    """The Format with this name, else the one of the path's ending."""
    if name is not None:
        return FORMATS[check_known("format", name, FORMATS, GraphError)]
    given = isinstance(path, GivenFile)
    if not given and (os.path.isdir(path) or path.endswith(("/", os.sep))):
        return FOLDER
    if by_ending := _by_ending(path) or ("edges" if given else None):
        return FORMATS[by_ending]
    ending = _ending(path)
    known = "; ".join(f"{name}: {' '.join(f.endings) or 'a folder'}" for name, f in FORMATS.items())
    raise GraphError(
        f"{path}: the ending {ending!r} names no format; say which with format=, or use one of "
        f"{known}; each but the folder also with {' '.join(COMPRESSIONS)}"
    )


def _by_ending(path):
    """The name of the format that the ending names, or None."""
    return next((name for name, chosen in FORMATS.items() if _ending(path) in chosen.endings), None)


def _ending(path):
    """The ending that selects the format, in lower case: the one before `.gz` and the like."""
    path = Path(path)
    return (path.with_suffix("") if compression(path) else path).suffix.lower()


def _stem(path, chosen):
    """The name of the file without the endings for format and compression."""
    name = os.path.basename(os.path.abspath(path))
    if chosen is FOLDER:
        return name
    name = name.removesuffix(Path(name).suffix) if compression(name) else name
    known = any(_ending(name) in other.endings for other in FORMATS.values())
    return name.removesuffix(Path(name).suffix) if known else name
