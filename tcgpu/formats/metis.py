"""METIS files: a header `vertices edges [format [weights]]`, then a line for each vertex: its neighbours, from 1.

Every edge is in two lines, those of its two ends. Vertex sizes, vertex weights and edge weights must be numbers and are
skipped. Lines that begin with `%` are comments; an empty line is a vertex without neighbours; empty lines may follow
the last vertex.
"""

import dataclasses
import re
from itertools import pairwise

import numpy as np

from tcgpu.arrays import bincount, repeat
from tcgpu.files import NEWLINE, Text
from tcgpu.formats import kinds, scan
from tcgpu.graph import Graph
from tcgpu.progress import pulse

_WEIGHT = re.compile(scan.NUMBER + rb"\Z")
_HEADER = re.compile(rb"(\d+)\s+(\d+)(?:\s+([01]{1,3})(?:\s+(\d+))?)?\Z")


@dataclasses.dataclass(frozen=True)
class _Header:
    at: int  # offset of its line
    n: int
    edges: int
    skip: int  # words before the neighbours in each line
    weighted: bool  # a weight follows each neighbour
    end: int  # offset of the first vertex's line


def read(path, base=None, n=None):
    text = Text(path)
    header = _read_header(text)
    scan.check_count(n, header.n, path)
    if header.n > len(text) - header.end + 1:
        raise text.error(header.at, f"{header.n} vertices need as many lines, which do not fit into this file")
    lengths, neighbours = _read_lines(text, header)
    lengths = _check_lines(text, header, lengths)
    _check_edges(text, header, lengths, neighbours)
    graph = Graph.from_csr(np.concatenate(([0], np.cumsum(lengths))), neighbours)
    if graph.cleaned.reversed != graph.m:
        raise _one_sided(text, header, lengths, neighbours)
    # the format lists both directions of an edge: they do not count as dropped
    graph.cleaned = dataclasses.replace(graph.cleaned, reversed=0)
    return graph


def write(graph, stream):
    """Write the neighbours of each vertex; vertex v is the line v + 1 after the header."""
    stream.write(f"{graph.n} {graph.m}\n".encode())
    indptr, indices = graph.adjacency
    for first in range(0, graph.n, scan.BLOCK):
        part = indptr[first : first + scan.BLOCK + 1]
        stream.write(scan.format_lines(part[1:] - part[0], indices[part[0] : part[-1]], 1, " "))


def _read_header(text):
    at, line = text.first_line(text.start, "header: vertices and edges")
    found = _HEADER.match(line[:200])
    if not found:
        raise text.error(at, "expected the header of a METIS file: vertices, edges, perhaps a format and a count")
    n, edges = int(found[1]), int(found[2])
    scan.check_most(text, at, n)
    sizes, weights, weighted = (digit == "1" for digit in (found[3] or b"").decode().rjust(3, "0"))
    count = int(found[4] or 1)
    if weights and not 1 <= count <= len(text):
        raise text.error(at, f"{count} weights for each vertex: there are as many as 1 to the length of a line")
    return _Header(at, n, edges, sizes + weights * count, weighted, text.line(at)[1])


def _read_lines(text, header):
    """The number of neighbours in each line, -1 in an empty one that lacks words to skip; all neighbours, from 0."""
    found = [(np.empty(0, np.int64), np.empty(0, np.int32))]
    for first, last in pairwise(text.chunk_bounds(header.end, scan.CHUNK).tolist()):
        pulse()
        part = text.data[first:last].tobytes()
        found.append(_plain_lines(part, header) or _any_lines(text, first, part, header))
    return [np.concatenate(each) for each in zip(*found, strict=True)]


def _plain_lines(part, header):
    """As `_any_lines`, all lines at once; None if there is anything but whole numbers and blanks, or a fault."""
    text, (skip, step) = part.replace(b"\r\n", b"\n"), (header.skip, 1 + header.weighted)
    if text.translate(None, b"0123456789 \t\n"):
        return None
    numbers, data = np.fromstring(text, np.int64, sep=" "), np.frombuffer(text, np.uint8)
    ends = np.flatnonzero(data == NEWLINE)
    line = np.searchsorted(ends, np.flatnonzero(np.diff(data > kinds.SPACE, prepend=False))[::2])
    words = bincount(line, minlength=ends.size)
    place = np.arange(line.size) - (np.cumsum(words) - words)[line] - skip
    near = (place >= 0) & (place % step == 0)
    missing = (words > 0) & ((words < skip) | ((words - skip) % step > 0))
    if missing.any() or not ((numbers[near] > 0) & (numbers[near] <= header.n)).all():
        return None
    lengths = np.where(words > 0, bincount(line[near], minlength=ends.size), -1 if skip else 0)
    return lengths, (numbers[near] - 1).astype(np.int32)


def _any_lines(text, first, part, header):
    """As `_read_lines`, of the part of the text from `first` on, line by line."""
    lines, lengths, numbers = part.split(b"\n")[:-1], [], []
    for k, line in enumerate(lines):
        if not line.startswith(b"%"):
            words = [word for word in line.removesuffix(b"\r").replace(b"\t", b" ").split(b" ") if word]
            near = words[header.skip :: 1 + header.weighted]
            if words and (fault := _fault(header, words, near)):
                raise text.error(first + sum(len(line) + 1 for line in lines[:k]), fault)
            lengths.append(len(near) if words or not header.skip else -1)
            numbers += map(int, near)
    return np.array(lengths, np.int64), np.array(numbers, np.int32) - np.int32(1)


def _fault(header, words, near):
    """What is wrong with the words of a line, of which `near` are to be numbers of vertices; None if nothing is."""
    others = words[: header.skip] + (words[header.skip + 1 :: 2] if header.weighted else [])
    if not all(map(bytes.isdigit, near)) or not all(map(_WEIGHT.match, others)):
        wrong = next((word for word in near if not word.isdigit()), None)
        if any(byte < 9 or byte > 126 for byte in b"".join(words)):
            return scan.MESSAGES[kinds.BINARY]
        if wrong is None:
            return "a weight is not a number"
        return scan.MESSAGES[kinds.NEGATIVE] if re.match(rb"-\d", wrong) else "expected vertex numbers"
    if near and not 1 <= min(map(int, near)) <= max(map(int, near)) <= header.n:
        return scan.allowed(1, header.n)
    missing = len(words) < header.skip or header.weighted and len(others) < header.skip + len(near)
    return scan.MESSAGES[kinds.NO_VALUE] if missing else None


def _check_lines(text, header, lengths):
    """Return one length for each vertex: the last line may be missing if it is empty, empty lines may follow."""
    if lengths.size == header.n - 1 and not header.skip:
        return np.append(lengths, 0)
    if lengths.size < header.n:
        raise text.error(header.at, f"the header promises {header.n} vertices, lines follow for {lengths.size}")
    empty = np.flatnonzero(lengths[: header.n] < 0)
    if empty.size:
        raise text.error(_line_of(text, header, empty[0]), scan.MESSAGES[kinds.NO_VALUE])
    beyond = np.flatnonzero(lengths[header.n :] > (-1 if header.skip else 0))
    if beyond.size:
        at = _line_of(text, header, header.n + beyond[0])
        raise text.error(at, f"the header promises {header.n} vertices, this is a line too many")
    return lengths[: header.n]


def _check_edges(text, header, lengths, neighbours):
    """Compare the header's number of edges with the lines; programs count a loop as one entry, as two, or not."""
    listed = neighbours.size
    if listed == 2 * header.edges:
        return
    loops = int(np.count_nonzero(repeat(np.arange(header.n, dtype=np.int32), lengths) == neighbours))
    if 2 * header.edges not in (listed + loops, listed - loops):
        promise = f"the header promises {header.edges} edges, so {2 * header.edges} numbers"
        raise text.error(header.at, f"{promise}; the vertices list {listed}")


def _one_sided(text, header, lengths, neighbours):
    """The error about the first vertex that lists another one which does not list it."""
    u = repeat(np.arange(header.n, dtype=np.int64), lengths)
    v = neighbours.astype(np.int64)
    k = np.flatnonzero(~np.isin(u * header.n + v, v * header.n + u))[0]
    at = _line_of(text, header, u[k])
    return text.error(at, f"vertex {u[k] + 1} lists vertex {v[k] + 1}, which does not list it")


def _line_of(text, header, vertex):
    return [at for at, line in text.lines(header.end) if not line.startswith(b"%")][vertex]
