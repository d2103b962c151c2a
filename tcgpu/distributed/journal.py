"""A journal: a file that keeps which parts of a count are done, so that a count that ended early can be resumed.

It is a text file. Its first line, the heading, names the graph and the cut; each further line is one part with its
triangles and a checksum over the heading and the line. Only a file that starts with this count's own heading is
changed; an empty or missing one is begun. A last line without its end was being written when the process ended: it is
cut off. Any other line that is damaged, impossible or there twice is refused.
"""

import hashlib
import json
import os
from contextlib import contextmanager
from dataclasses import astuple, replace

import numpy as np

from tcgpu.engines.native import jit, run_threads, shares
from tcgpu.errors import GraphError

MAGIC = b'{"journal": "tcgpu '  # how every heading starts
VERSION = 2  # of the format
HEADING = 1 << 12  # bytes; no heading is longer
PART = b'{"part": '  # how every line of a part starts
LINE = 256  # bytes; no line of a part is longer
SKETCH = 1 << 12  # columns, and nonzeros, that are drawn from a graph where a sketch of it will do

U64 = np.uint64


class Journal:
    """The parts that are done: `done` has the triangles of each. `add` makes a part one of them, in the file, too."""

    def __init__(self, parts, done, write=lambda entry: None):
        self.done, self._write = done, write
        self._number = {part: number for number, part in enumerate(parts)}

    def add(self, found):
        """A part that was Found is done."""
        if found.part in self.done:  # parts without edges can be equal
            return
        number, seconds = self._number[found.part], round(found.seconds, 6)
        self._write({"part": number, "triangles": found.triangles, "seconds": seconds})
        self.done[found.part] = found.triangles


@contextmanager
def journal(path, graph, verb, parts):
    """The Journal in the file `path`, begun if there is none, of a verb's parts of a graph; without a path, in none.

    GraphError for a file that is not this count's journal, or is damaged; it is left as it is, to the last byte.
    """
    if path is None:
        yield Journal(parts, {})
        return
    heading = {
        "journal": f"tcgpu {verb}",
        "version": VERSION,
        "graph": fingerprint(graph),
        "cut": hashlib.sha256(repr([astuple(replace(part, work=0.0)) for part in parts]).encode()).hexdigest()[:32],
        "parts": len(parts),
    }
    first = json.dumps(heading).encode() + b"\n"
    if os.path.exists(path):
        if not os.path.isfile(path) and not os.path.isdir(path):
            raise GraphError(f"{path}: a pipe or a device, where a journal is a file")
        with open(path, "rb") as file:
            _check_heading(file.read(HEADING), heading, first, path)
    with open(path, "r+b", buffering=0, opener=_open_or_create) as file:
        _lock(file, path)
        text = _content(file, len(first) + LINE * (len(parts) + 1), path)
        _check_heading(text, heading, first, path)
        done, end = _done(text, first, graph, parts, path)
        if len(text) < len(first):
            _append(file, first[len(text) :], path)
        elif end < len(text):
            file.truncate(end)
        yield Journal(parts, done, lambda entry: _append(file, _line(entry, first), path))


def fingerprint(graph, whole=True):
    """Some digits that tell a graph's columns from any other's; if not `whole`, by the look of some of them."""
    pointers, rows = graph.col_ptr, graph.row_idx
    if not whole:
        pointers, rows = (array[np.linspace(0, array.size - 1, min(array.size, SKETCH)).astype(np.int64)]
                          for array in (pointers, rows))  # fmt: skip
    digest = hashlib.sha256(f"{graph.n} {graph.m} {_mixed(pointers)} {_mixed(rows)}".encode())
    return digest.hexdigest()[:32]


def _open_or_create(path, flags):
    """Open a file as it is; a new one where there is none, even if another process makes it just now."""
    return os.open(path, flags | os.O_CREAT, 0o666)


def _lock(file, path):
    """GraphError if another process writes to it."""
    try:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise GraphError(f"{path}: another count writes to this journal") from None
    except (ImportError, OSError):
        pass  # a system, or a file system, without locks


def _content(file, most, path):
    """All bytes of the file; GraphError where there are more than `most`."""
    if os.fstat(file.fileno()).st_size > most:
        raise GraphError(f"{path}: longer than a journal of these parts can be; it is left as it is")
    return file.readall()


def _append(file, data, path):
    """Add bytes to the end of the file: all of them, or none and OSError with the file's name."""
    end = file.seek(0, os.SEEK_END)
    left = memoryview(data)
    try:
        while left:
            left = left[file.write(left) :]
    except OSError as error:
        file.truncate(end)
        raise OSError(error.errno, error.strerror, os.fspath(path)) from None


def _line(entry, first):
    """The line of a part, with a checksum that holds for this entry under this heading only."""
    check = hashlib.sha256(first + json.dumps(entry).encode()).hexdigest()[:32]
    return json.dumps(entry | {"check": check}).encode() + b"\n"


def _entry(line, first):
    """What a line says, if it is one that was written under this heading, byte for byte; else None."""
    if len(line) >= LINE:
        return None
    try:
        entry = json.loads(line)
        del entry["check"]
        return entry if _line(entry, first) == line + b"\n" else None
    except (ValueError, KeyError, TypeError):
        return None


def _done(text, first, graph, parts, path):
    """({part: triangles}, how many bytes say so): behind these is at most a line that was not written to its end."""
    *lines, rest = text[len(first) :].split(b"\n")
    done = {}
    for number, line in enumerate(lines, 2):
        where = f"{path}, line {number}"
        part, triangles = _checked(_entry(line, first), line, graph, parts, where)
        if part in done:
            raise GraphError(f"{where}: this part is there before; found {_shown(line)}")
        done[part] = triangles
    if len(rest) >= LINE or not (rest.startswith(PART) or PART.startswith(rest)):
        raise GraphError(f"{path}, line {len(lines) + 2}: expected a part; found {_shown(rest)}")
    return done, len(text) - len(rest)


def _checked(entry, line, graph, parts, where):
    """The part and the triangles of an entry; GraphError unless it is one, and they can be."""
    if entry is None:
        raise GraphError(
            f"{where}: damaged: expected a part with its triangles and their checksum; found {_shown(line)}; "
            "without this line the part is counted again"
        )
    number, triangles = entry.get("part"), entry.get("triangles")
    if type(number) is not int or type(triangles) is not int or not 0 <= number < len(parts):
        raise GraphError(f"{where}: expected one of {len(parts)} parts and its triangles; found {_shown(line)}")
    most = _most_triangles(graph, parts[number])
    if not 0 <= triangles <= most:
        raise GraphError(f"{where}: expected 0 to {most} triangles in this part; found {_shown(line)}")
    return parts[number], triangles


def _most_triangles(graph, part):
    """A bound: a part's edge (i, j) has a triangle at most with each other row of column j."""
    if part.empty:
        return 0
    begin, end = part.columns(graph)
    longest = int(np.diff(graph.col_ptr[begin : end + 1]).max())
    return (part.last - part.first) * (longest - 1)


def _shown(line):
    return repr(line[:60].decode("utf-8", "backslashreplace"))


def _check_heading(text, heading, first, path):
    """GraphError unless a file's first bytes are this heading, a large part of it, or none at all."""
    started = not text or len(text) >= len(MAGIC) and first.startswith(text)
    if not started and not text.startswith(first):
        raise GraphError(f"{path}: {_otherwise(text, heading)}")


def _otherwise(text, heading):
    """Why a file's first line is not this heading."""
    try:
        found = json.loads(text[:HEADING].split(b"\n")[0])
        if text.startswith(MAGIC) and found.get("version") != VERSION:
            return "a journal of another version of tcgpu; name a new file"
        ours = all(isinstance(found[key], type(value)) for key, value in heading.items())
    except (ValueError, KeyError, TypeError, RecursionError):
        ours = False
    if not ours:
        return "not a journal of parts that are done; it is left as it is"
    if found["journal"] != heading["journal"]:
        return f"a journal of {found['journal']}, not of {heading['journal']}"
    if found["graph"] != heading["graph"]:
        return "a journal of another graph, or of the same in another order"
    return (
        f"a journal of this graph in {found['parts']} other parts, not these {heading['parts']}: "
        "go on with the memory and the workers that it was begun with"
    )


def _mixed(array):
    """A number of 64 bits out of all of an integer array, the same for any number of threads."""
    found = np.zeros(shares(array.size), np.uint64)
    run_threads(_mix, array, found, workers=found.size)
    return int(found.sum(dtype=np.uint64))


@jit
def _mix(worker, workers, array, found):
    """Sum up a hash of each element and its place, as SplitMix64 makes it."""
    total = U64(0)
    for k in range(array.size * worker // workers, array.size * (worker + 1) // workers):
        x = U64(array[U64(k)]) + U64(k) * U64(0x9E3779B97F4A7C15)
        x = (x ^ x >> U64(30)) * U64(0xBF58476D1CE4E5B9)
        x = (x ^ x >> U64(27)) * U64(0x94D049BB133111EB)
        total += x ^ x >> U64(31)
    found[worker] = total
