"""Graphs in files: Matrix Market, edge lists, METIS, `.npz` and a memory-mapped folder; `.gz .bz2 .xz` transparently.

A file is read whole or refused: GraphError names the file, the line (for arrays the member), and what was expected.
A file is written whole or not at all.
"""

import errno
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from tcgpu.errors import GraphError
from tcgpu.formats import binary, edge_list, matrix_market, metis
from tcgpu.formats.files import COMPRESSIONS, compression, replacing, replacing_folder
from tcgpu.formats.vertices import checked_count
from tcgpu.graph import as_graph
from tcgpu.suggest import unknown


@dataclass(frozen=True)
class Format:
    """A file format: what it is called, the endings of its names, and what reads and writes it."""

    title: str
    endings: tuple[str, ...]
    read: Callable  # (path, base, n) -> Graph
    write: Callable  # (graph, stream); for a folder (graph, folder)
    read_edges: Callable | None = None  # (path, base, n) -> (u, v, n, labels)


FORMATS = {
    "mtx": Format("Matrix Market", (".mtx",), matrix_market.read, matrix_market.write, matrix_market.read_edges),
    "edges": Format(
        "edge list",
        (".txt", ".el", ".edges", ".edgelist", ".csv", ".tsv"),
        edge_list.read,
        edge_list.write,
        edge_list.read_edges,
    ),
    "metis": Format("METIS", (".graph", ".metis"), metis.read, metis.write, metis.read_edges),
    "npz": Format("NumPy archive, ours or of scipy.sparse.save_npz", (".npz",), binary.read_npz, binary.write_npz),
    "folder": Format("folder of memory-mapped arrays", (), binary.read_folder, binary.write_folder),
}


def read(path, format=None, *, base=None, n=None, relabel=None):
    """The graph in a file or folder, its name that of the file.

    format: a name out of FORMATS; without one, what the path's ending says.
    base, n, relabel: for edge lists. With `base` 0 or 1 the numbers in the file are the vertices, counted from there;
    with `n` there are that many vertices. With relabel=True, or with neither, the vertices are those that the file's
    heading tells of, or else the numbers that occur, in ascending order, and `graph.ids` keeps these; relabel=False is
    base 0.

    The arrays of a folder stay in its files where they are larger than 4 MB, and a text of more than 256 MB is not
    copied before it is read. Such a file must not be cut off meanwhile: the system would end the process (SIGBUS).
    """
    path, chosen, n = _checked(path, format, base, n)
    base = _base(path, chosen, base, n, relabel)
    graph = chosen.read(path, base, n)
    graph.name = _stem(path, chosen)
    return graph


def open_folder(path):
    """The graph in a folder, as `read` gives it, but unread: for who knows that its columns were checked before."""
    graph = binary.read_folder(path, validate=False)
    graph.name = _stem(os.fspath(path), FORMATS["folder"])
    return graph


def read_edges(path, format=None, *, base=None, n=None):
    """What a text file lists, as it stands: `(u, v, n, labels)`, with loops, duplicates and both directions."""
    path, chosen, n = _checked(path, format, base, n)
    if chosen.read_edges is None:
        raise GraphError(f"{path}: a {chosen.title} holds columns, not edges; tcgpu.read(...).edges() has them")
    return chosen.read_edges(path, base, n)


def write(graph, path, format=None):
    """Write a graph to a file, or to a folder: a path that ends with a slash, or format="folder".

    All formats number vertices as the graph does; an edge list writes labels where they are distinct whole numbers,
    `.npz` and a folder keep numbers and text. A file that was there before is replaced, once all is written, and its
    mode and owner are kept; a folder only where we wrote it and everything in it. GraphError names the file that could
    not be written.
    """
    graph = as_graph(graph)
    path = os.fspath(path)
    chosen = _format(path, format)
    try:
        if chosen is FORMATS["folder"]:
            with replacing_folder(path, binary.is_ours) as folder:
                chosen.write(graph, folder)
            return
        with replacing(path) as stream:
            if chosen is FORMATS["edges"]:
                ending = _ending(path)
                chosen.write(graph, stream, "," if ending == ".csv" else "\t", heading=ending in (".csv", ".tsv"))
            else:
                chosen.write(graph, stream)
    except GraphError as error:
        raise error if str(error).startswith(path) else GraphError(f"{path}: {error}") from error.__cause__


def _checked(path, format, base, n):
    path = os.fspath(path)
    if not os.path.exists(path):  # before its ending is found wanting
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
    chosen = _format(path, format)
    if base is not None and chosen is not FORMATS["edges"]:
        raise GraphError(f"{path}: base is for edge lists; a {chosen.title} numbers its vertices in one way only")
    return path, chosen, checked_count(n)


def _base(path, chosen, base, n, relabel):
    """`base`, as it has to be for what `relabel` wishes."""
    if relabel and chosen is not FORMATS["edges"]:
        raise GraphError(f"{path}: relabel is for edge lists; a {chosen.title} numbers its vertices in one way only")
    if relabel and not (base is None and n is None):
        raise GraphError(f"{path}: relabel=True numbers the vertices that occur; it goes without base and n")
    keeps = relabel is False and chosen is FORMATS["edges"]
    return 0 if keeps and base is None else base


def _format(path, name):
    """The Format called `name`, else the one that the path's ending stands for."""
    if name is not None:
        if name not in FORMATS:
            raise GraphError(unknown("format", name, FORMATS))
        return FORMATS[name]
    if os.path.isdir(path) or path.endswith(("/", os.sep)):
        return FORMATS["folder"]
    ending = _ending(path)
    for chosen in FORMATS.values():
        if ending in chosen.endings:
            return chosen
    known = "; ".join(f"{name}: {' '.join(f.endings) or 'a folder'}" for name, f in FORMATS.items())
    raise GraphError(
        f"{path}: the ending {ending!r} names no format; say which with format=, or use one of "
        f"{known}; each but the folder also with {' '.join(COMPRESSIONS)}"
    )


def _ending(path):
    """The ending of the name, in lower case, that says the format: the one before `.gz` and the like."""
    path = Path(path)
    return (path.with_suffix("") if compression(path) else path).suffix.lower()


def _stem(path, chosen):
    """The name of the file without the endings that say how it is written."""
    name = os.path.basename(os.path.abspath(path))
    if chosen is FORMATS["folder"]:
        return name
    name = name.removesuffix(Path(name).suffix) if compression(name) else name
    known = any(_ending(name) in other.endings for other in FORMATS.values())
    return name.removesuffix(Path(name).suffix) if known else name
