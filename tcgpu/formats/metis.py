"""METIS files: a header `vertices edges [format [weights]]`, then a line for each vertex: its neighbours, from 1.

Every edge stands in two lines, that of each end. Vertex sizes, vertex weights and edge weights have to be numbers and
are passed over. Lines that begin with `%` are comments; an empty line is a vertex without neighbours; empty lines may
follow the last vertex.
"""

import dataclasses
import re

import numpy as np

from tcgpu import cleaning
from tcgpu.formats import scan
from tcgpu.formats.files import Text
from tcgpu.formats.vertices import checked_against
from tcgpu.graph import Graph

BLOCK = 1 << 18  # vertices formatted at a time

_HEADER = re.compile(rb"(\d+)\s+(\d+)(?:\s+([01]{1,3})(?:\s+(\d+))?)?\Z")


def read(path, base=None, n=None):
    text, header, lengths, neighbours = _scan(path, n)
    graph = Graph.from_csr(np.concatenate(([0], np.cumsum(lengths))), neighbours)
    if graph.cleaned.reversed != graph.m:
        raise _one_sided(text, header, lengths, neighbours)
    # both directions of an edge are how this format is, not something that was dropped
    graph.cleaned = dataclasses.replace(graph.cleaned, reversed=0)
    return graph


def read_edges(path, base=None, n=None):
    """What the lines list, as it stands: `(u, v, n, None)`, every edge in both directions."""
    _, header, lengths, neighbours = _scan(path, n)
    return np.repeat(np.arange(header.n, dtype=np.int32), lengths), neighbours, header.n, None


def write(graph, stream):
    """Whole neighbourhoods; vertex v is the line v + 1 after the header."""
    stream.write(f"{graph.n} {graph.m}\n".encode())
    indptr, indices = graph.adjacency
    for first in range(0, graph.n, BLOCK):
        part = indptr[first : first + BLOCK + 1]
        stream.write(scan.format_lists(part, indices[part[0] : part[-1]], 1))


@dataclasses.dataclass(frozen=True)
class _Header:
    at: int  # where its line begins
    n: int
    edges: int
    skip: int  # words before the neighbours in each line
    weighted: bool  # a weight follows each neighbour
    end: int  # where the vertices' lines begin


def _scan(path, n):
    """The text, its header, how many neighbours each vertex has, and all neighbours."""
    text = Text(path)
    header = _header(text)
    checked_against(n, header.n, path)
    if header.n > len(text) - header.end + 1:
        raise text.fault(header.at, f"{header.n} vertices need as many lines, which do not fit into this file")
    try:
        lengths, neighbours = scan.lists(text, header.end, header.n, skip=header.skip, weighted=header.weighted)
    except scan.Fault as fault:
        raise fault.about(text, "expected vertex numbers", 1, header.n) from None
    lengths = _one_a_vertex(text, header, lengths)
    _check_edges(text, header, lengths, neighbours)
    return text, header, lengths, neighbours


def _header(text):
    for at, line in text.lines(text.start):
        if not line or line.startswith(b"%"):
            continue
        found = _HEADER.match(line[:200])
        if not found:
            raise text.fault(at, "expected the header of a METIS file: vertices, edges, perhaps a format and a count")
        n, edges = int(found[1]), int(found[2])
        if n > cleaning.MAX_VERTICES:
            raise text.fault(at, f"{n} vertices are more than {cleaning.MAX_VERTICES}, the most there can be")
        sizes, weights, weighted = (digit == "1" for digit in (found[3] or b"").decode().rjust(3, "0"))
        constraints = int(found[4] or 1)
        if weights and not 1 <= constraints <= len(text):
            raise text.fault(
                at, f"{constraints} weights for each vertex: there are as many as 1 to the length of a line"
            )
        skip = sizes + (constraints if weights else 0)
        return _Header(at, n, edges, skip, weighted, text.line(at)[1])
    raise text.fault_at_end("the file ends before its header: vertices and edges")


def _one_a_vertex(text, header, lengths):
    """Exactly one length for each vertex; an end of line may be missing, empty lines may follow."""
    if lengths.size == header.n - 1 and not header.skip:
        return np.append(lengths, 0)
    if lengths.size < header.n:
        raise text.fault(header.at, f"the header promises {header.n} vertices, lines follow for {lengths.size}")
    empty = np.flatnonzero(lengths[: header.n] < 0)
    if empty.size:
        at = _line_of_vertex(text, header, int(empty[0]))
        raise text.fault(at, scan.FAULTS[scan.NO_VALUE])
    beyond = np.flatnonzero(lengths[header.n :] > (-1 if header.skip else 0))
    if beyond.size:
        at = _line_of_vertex(text, header, header.n + int(beyond[0]))
        raise text.fault(at, f"the header promises {header.n} vertices, this is a line too many")
    return lengths[: header.n]


def _check_edges(text, header, lengths, neighbours):
    """The header's count of edges against the lines, with loops written once, twice, or not counted."""
    listed = neighbours.size
    if listed == 2 * header.edges:
        return
    loops = int(np.count_nonzero(np.repeat(np.arange(header.n, dtype=np.int32), lengths) == neighbours))
    if 2 * header.edges not in (listed + loops, listed - loops):
        promise = f"the header promises {header.edges} edges, so {2 * header.edges} numbers"
        raise text.fault(header.at, f"{promise}; the vertices list {listed}")


def _one_sided(text, header, lengths, neighbours):
    """The GraphError about the first vertex that lists another one which does not list it."""
    u = np.repeat(np.arange(header.n, dtype=np.int64), lengths)
    v = neighbours.astype(np.int64)
    alone = int(np.flatnonzero(~np.isin(u * header.n + v, v * header.n + u))[0])
    return text.fault(
        _line_of_vertex(text, header, int(u[alone])),
        f"vertex {u[alone] + 1} lists vertex {v[alone] + 1}, which does not list it",
    )


def _line_of_vertex(text, header, vertex):
    starts = np.concatenate(([header.end], np.flatnonzero(text.data[header.end : -1] == ord("\n")) + header.end + 1))
    return int(starts[text.data[starts] != ord("%")][vertex])
