"""Graphs in files: Matrix Market, edge lists, METIS, `.npz` and memory-mapped folders; also `.gz`, `.bz2`, `.xz`.

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
from tcgpu.files import COMPRESSIONS, as_text, compression, replacing, replacing_folder
from tcgpu.formats import binary, edge_list, matrix_market, metis
from tcgpu.graph import Graph, as_graph, known_count
from tcgpu.suggest import unknown


@dataclass(frozen=True)
class Format:
    """A file format: its title, the endings of its names, and the functions that read and write it."""

    title: str
    endings: tuple[str, ...]
    write: Callable  # (graph, stream); for a folder (graph, folder)
    read: Callable | None = None  # (path, base, n) -> Graph; by default, Graph.from_edges of the edges
    read_edges: Callable | None = None  # (path, base, n) -> (u, v, n, labels)


EDGE_LIST = Format(
    "edge list",
    (".txt", ".el", ".edges", ".edgelist", ".csv", ".tsv"),
    edge_list.write,
    read_edges=edge_list.read_edges,
)
FOLDER = Format("folder of memory-mapped arrays", (), binary.write_folder, binary.read_folder)
FORMATS = {
    "mtx": Format("Matrix Market", (".mtx",), matrix_market.write, read_edges=matrix_market.read_edges),
    "edges": EDGE_LIST,
    "metis": Format("METIS", (".graph", ".metis"), metis.write, metis.read, metis.read_edges),
    "npz": Format("NumPy archive, of tcgpu or of scipy.sparse.save_npz", (".npz",), binary.write_npz, binary.read_npz),
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
) -> Graph:
    """Read the graph in a file or folder; its name is that of the file.

    Parameters
    ----------
    path
        In a folder, arrays larger than 4 MB are mapped into memory, and so is a text of more than 256 MB while it is
        read. Such a file must not be truncated meanwhile: the system would end the process (SIGBUS).
    format
        A name in FORMATS; by default the ending of the path decides.
    base
        For an edge list: 0 or 1, the number of the first vertex. The numbers in the file are the vertices.
    n
        The number of vertices, counted from `base` or 0.
    relabel
        For an edge list: True numbers the vertices that occur in ascending order, and `graph.ids` keeps their numbers
        in the file; so does the default, unless the file's heading says how many vertices there are, or `base` or `n`
        is given. False means `base=0`.
    columns
        For an edge list: which two columns hold the ends of an edge, by their numbers, from 0 on, or by their names in
        the first line; by default those with names such as source and target, else the first two.

    Raises
    ------
    FormatError
        The file does not have the format; the message names the line and what was expected.
    """
    name, chosen, n, more = _checked(path, format, n, base=base, columns=columns, relabel=relabel or None)
    if relabel and not (base is None and n is None):
        raise GraphError(f"{name}: relabel=True numbers the vertices that occur; it goes without base= and n=")
    if relabel is False and base is None and chosen is EDGE_LIST:
        base = 0
    if chosen.read is None:
        u, v, n, labels = chosen.read_edges(name, base, n, **more)
        graph = Graph.from_edges(u, v, n, labels=labels)
    else:
        graph = chosen.read(name, base, n)
    graph.name = _stem(name, chosen)
    return graph


def open_folder(path: str | os.PathLike[str]) -> Graph:
    """As `read` for a folder, but without reading and checking its columns, for folders that were checked before."""
    graph = binary.read_folder(path, validate=False)
    graph.name = _stem(as_text(path), FOLDER)
    return graph


@roomy
def read_edges(
    path: str | os.PathLike[str],
    format: str | None = None,
    *,
    base: int | None = None,
    n: int | None = None,
    columns: tuple[int, int] | tuple[str, str] | None = None,
) -> tuple[Any, Any, int, Any]:
    """The edges that a text file lists, `(u, v, n, labels)`, with loops, duplicates and both directions."""
    name, chosen, n, more = _checked(path, format, n, base=base, columns=columns)
    if chosen.read_edges is None:
        raise GraphError(f"{name}: a {chosen.title} holds columns, not edges; tcgpu.read(...).edges() has them")
    return chosen.read_edges(name, base, n, **more)


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
        Its ending selects the format and the compression; a path that ends with a slash is a folder.
    format
        A name in FORMATS, for a path with another ending.
    """
    graph = as_graph(graph)
    path = as_text(path)
    chosen = _format(path, format)
    try:
        if chosen is FOLDER:
            with replacing_folder(path, binary.is_ours) as folder:
                chosen.write(graph, folder)
            return
        with replacing(path) as stream:
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


def _checked(path, format, n, **of_edge_lists):
    """`(path as text, Format, n, a dict with columns)`; checks that the file exists before its ending."""
    path = as_text(path)
    if not os.path.exists(path):
        by_name = "" if {".", "/"} & set(path) else f"; published graphs are loaded by name: tcgpu.load({path!r})"
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT) + by_name, path)
    chosen = _format(path, format)
    for keyword, value in of_edge_lists.items():
        if value is not None and chosen is not EDGE_LIST:
            raise GraphError(f"{path}: {keyword}= is for edge lists; a {chosen.title} has its vertices in one way only")
    columns = of_edge_lists["columns"]
    return path, chosen, None if n is None else known_count(n), {} if columns is None else {"columns": columns}


def _format(path, name):
    """The Format with this name, else the one of the path's ending."""
    if name is not None:
        if name not in FORMATS:
            raise GraphError(unknown("format", name, FORMATS))
        return FORMATS[name]
    if os.path.isdir(path) or path.endswith(("/", os.sep)):
        return FOLDER
    if by_ending := _by_ending(path):
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
