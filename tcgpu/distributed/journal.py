"""A journal: a file that records which parts of a count are done, so that a later count can resume.

It is a text file. The first line, the heading, identifies the graph and the cut. Each further line is one part with its
triangles and a checksum over the heading and the line. A file is only changed if it starts with the heading of this
very count, or is empty. An incomplete last line is cut off: the process ended while it was written. Any other line that
is damaged or repeated is refused, and the file is left as it is.
"""

import hashlib
import json
import os
from contextlib import closing, contextmanager, suppress

import numpy as np

from tcgpu.errors import GraphError
from tcgpu.progress import progress as progress_bar

MAGIC = b'{"journal": "tcgpu '  # the start of every heading
VERSION = 3  # of the format
MAX_HEADING = 1 << 12  # bytes
PART = b'{"part": '  # the start of every line of a part
MAX_LINE = 256  # bytes of a line of a part
HASH_BYTES = 1 << 26  # hashed at a time: a count can be interrupted in between
OTHERS = {  # what a heading says in which this entry is the first that differs
    "version": "a journal of another version of tcgpu; name a new file",
    "journal": "a journal of {journal}, not of this verb",
    "graph": "a journal of another graph, or of the same in another order",
    "cut": "a journal of this graph in {parts} other parts: "
    "resume it with the memory and the workers that it was begun with",
}


class Journal:
    """The parts that are done: `done` maps each to its triangles. `add` also writes it to the file, if there is one."""

    def __init__(self, parts, done, write=lambda entry: None):
        self.done, self._write = done, write
        self._number = {part: number for number, part in enumerate(parts)}

    def add(self, result):
        if result.part in self.done:  # parts without edges can be equal
            return
        number, seconds = self._number[result.part], round(result.seconds, 6)
        self._write({"part": number, "triangles": result.triangles, "seconds": seconds})
        self.done[result.part] = result.triangles


def count_parts(graph, parts, results, resume, progress, take=lambda result: None):
    """The triangles of all parts of a graph. `results(parts)` yields a PartResult for each that is not empty.

    resume: the path of a journal; progress: as in `tcgpu.count`; take: is called with each PartResult.
    """
    what, work = f"counting {graph.m:,} edges in {len(parts)} parts", sum(part.work for part in parts)
    with open_journal(resume, graph, "count", parts) as journal, progress_bar(progress, work, what) as bar:
        if journal.done:
            bar.add(sum(part.work for part in journal.done))
        with closing(results([part for part in parts if part not in journal.done])) as each:
            for result in each:
                take(result)
                journal.add(result)
                bar.add(result.part.work)
        return sum(journal.done.values())


@contextmanager
def open_journal(path, graph, verb, parts):
    """The Journal of a verb's parts of a graph in the file `path`, which is created if missing; None: in memory only.

    Raises GraphError for a file that is damaged, or is not the journal of this count; the file is left as it is.
    """
    if path is None:
        yield Journal(parts, {})
        return
    heading = {
        "journal": f"tcgpu {verb}",
        "version": VERSION,
        "graph": fingerprint(graph),
        "cut": _digest(repr([(part.first, part.last, part.low, part.high, 0.0) for part in parts]).encode()),
        "parts": len(parts),
    }
    first = json.dumps(heading).encode() + b"\n"
    if os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path):
        raise GraphError(f"{path}: a pipe or a device, where a journal is a file")
    # not "w+b", which would empty a file that another process creates at this moment
    with open(path, "r+b", buffering=0, opener=lambda path, flags: os.open(path, flags | os.O_CREAT, 0o666)) as file:
        _lock(file, path)
        longest = len(first) + MAX_LINE * (len(parts) + 1)
        text = file.read(longest + 1)
        _check_heading(text, heading, first, path)
        if len(text) > longest:
            raise GraphError(f"{path}: longer than a journal of these parts can be; it is left as it is")
        done, end = _read_parts(text, first, graph, parts, path)
        if len(text) < len(first):
            _append(file, first[len(text) :], path)
        elif end < len(text):
            file.truncate(end)
        yield Journal(parts, done, lambda entry: _append(file, _line(entry, first), path))


def fingerprint(graph):
    """A hash of all of a graph's columns, 32 hexadecimal digits."""
    digest = hashlib.blake2b(f"{graph.n} {graph.m}".encode(), digest_size=16)
    for array in (graph.col_ptr, graph.row_idx):
        step = HASH_BYTES // array.itemsize
        for begin in range(0, array.size, step):
            digest.update(np.ascontiguousarray(array[begin : begin + step]))
    return digest.hexdigest()


def _digest(data):
    return hashlib.sha256(data).hexdigest()[:32]


def _lock(file, path):
    """Lock the file; raises GraphError if another process has."""
    try:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise GraphError(f"{path}: another count writes to this journal") from None
    except (ImportError, OSError):
        pass  # a system, or a file system, without locks


def _append(file, data, path):
    """Append bytes to the file. If not all can be written, none are, and OSError names the file."""
    end = file.seek(0, os.SEEK_END)
    rest = memoryview(data)
    try:
        while rest:
            rest = rest[file.write(rest) :]
    except OSError as error:
        file.truncate(end)
        raise OSError(error.errno, error.strerror, os.fspath(path)) from None


def _line(entry, first):
    """The line of an entry, with its checksum under this heading."""
    check = _digest(first + json.dumps(entry).encode())
    return json.dumps(entry | {"check": check}).encode() + b"\n"


def _read_parts(text, first, graph, parts, path):
    """({part: triangles}, number of bytes up to an incomplete last line); GraphError for any damage."""
    *lines, rest = text[len(first) :].split(b"\n")
    done = {}
    for line in lines:
        try:
            entry = json.loads(line[:MAX_LINE])
            part, triangles = parts[entry["part"]], entry["triangles"]
            whole = _line({key: value for key, value in entry.items() if key != "check"}, first) == line + b"\n"
            numbers = type(entry["part"]) is type(triangles) is int and entry["part"] >= 0
            sound = whole and numbers and 0 <= triangles <= (part.last - part.first) * graph.max_column
        except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
            sound = False
        if not sound or part in done:
            break
        done[part] = triangles
    else:
        line = rest
        if len(rest) < MAX_LINE and (rest.startswith(PART) or PART.startswith(rest)):
            return done, len(text) - len(rest)
    raise GraphError(
        f"{path}, line {len(done) + 2}: damaged: expected one of {len(parts)} parts, once, and its triangles; "
        f"found {line[:60].decode('utf-8', 'backslashreplace')!r}; without this line the part is counted again"
    )


def _check_heading(text, heading, first, path):
    """GraphError unless the file's first bytes are this heading, a recognizable part of it, or nothing."""
    if not text or text.startswith(first) or len(text) >= len(MAGIC) and first.startswith(text):
        return
    reason = "not a journal of parts that are done; it is left as it is"
    with suppress(Exception):  # it is no heading
        found = json.loads(text[:MAX_HEADING].split(b"\n")[0])
        if text.startswith(MAGIC):
            reason = next(says for key, says in OTHERS.items() if found.get(key) != heading[key]).format(**found)
    raise GraphError(f"{path}: {reason}")
