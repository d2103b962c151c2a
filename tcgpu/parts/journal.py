"""A journal of the parts that are done, so that a count that was broken off goes on where it was.

A text file: a first line says of which graph, and how it is cut; each further one what a part has. A line that was
being written when all ended counts as not written. The same graph in the same cut goes on; any other is refused.
"""

import hashlib
import json
from contextlib import contextmanager
from dataclasses import astuple, replace

import numpy as np

from tcgpu._native import jit, run_threads, threads
from tcgpu.graph import GraphError

SKETCH = 1 << 12  # columns, and nonzeros, that are drawn from a graph where a sketch of it will do

U64 = np.uint64


class Journal:
    """The parts that are done: `done` has the triangles of each. `add` makes a part one of them, in the file, too."""

    def __init__(self, parts, done, file=None):
        self.done, self._file = done, file
        self._number = {part: number for number, part in enumerate(parts)}

    def add(self, found):
        """A part that was Found is done."""
        self.done[found.part] = found.triangles
        if self._file is not None:
            line = {"part": self._number[found.part], "triangles": found.triangles, "seconds": round(found.seconds, 6)}
            self._file.write(json.dumps(line).encode() + b"\n")
            self._file.flush()


@contextmanager
def journal(path, graph, verb, parts):
    """The Journal in the file `path`, begun if there is none, of a verb's parts of a graph; without a path, in none."""
    if path is None:
        yield Journal(parts, {})
        return
    heading = {
        "journal": f"tcgpu {verb}",
        "graph": fingerprint(graph),
        "cut": hashlib.sha256(repr([astuple(replace(part, work=0.0)) for part in parts]).encode()).hexdigest()[:32],
        "parts": len(parts),
    }
    with open(path, "a+b") as file:
        _claim(file, path)
        done = _read(file, path, heading, parts)
        yield Journal(parts, done, file)


def fingerprint(graph, whole=True):
    """Some digits that tell a graph's columns from any other's; if not `whole`, by the look of some of them."""
    pointers, rows = graph.col_ptr, graph.row_idx
    if not whole:
        pointers, rows = (array[np.linspace(0, array.size - 1, min(array.size, SKETCH)).astype(np.int64)]
                          for array in (pointers, rows))  # fmt: skip
    digest = hashlib.sha256(f"{graph.n} {graph.m} {_mixed(pointers)} {_mixed(rows)}".encode())
    return digest.hexdigest()[:32]


def _claim(file, path):
    """GraphError if another process writes to it."""
    try:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise GraphError(f"{path}: another count writes to this journal") from None
    except (ImportError, OSError):
        pass  # a system, or a file system, without locks


def _read(file, path, heading, parts):
    """What the file says is done; what it lacks of a first line is written, half a last line is cut off."""
    file.seek(0)
    text = file.read()
    first = json.dumps(heading).encode() + b"\n"
    if first.startswith(text):  # nothing, or half of a first line
        file.truncate(0)
        file.write(first)
        file.flush()
        return {}
    lines = text.splitlines(keepends=True)
    if not lines[-1].endswith(b"\n"):
        file.truncate(len(text) - len(lines.pop()))
    if not lines or lines[0] != first:
        raise GraphError(f"{path}: {_otherwise(lines, heading)}")
    done = {}
    for number, line in enumerate(lines[1:], 2):
        try:
            entry = json.loads(line)
            part, triangles = entry["part"], entry["triangles"]
        except (ValueError, KeyError, TypeError):
            part = triangles = None
        if type(part) is not int or type(triangles) is not int or not 0 <= part < len(parts):
            raise GraphError(f"{path}, line {number}: expected a part and its triangles; found {line[:60]!r}")
        done[parts[part]] = triangles
    return done


def _otherwise(lines, heading):
    """Why a first line is not this heading."""
    try:
        found = json.loads(lines[0])
        ours = all(isinstance(found[key], type(value)) for key, value in heading.items())
    except (ValueError, KeyError, TypeError, IndexError):
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
    found = np.zeros(threads(), np.uint64)
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
