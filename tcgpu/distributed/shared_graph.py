"""A graph for the worker processes of one machine: a file that all of them map, so that it is in memory once.

The file has no name. Workers open it as `/proc/PID/fd/NUMBER`, through the process that made it, and the system frees
it once no process has it open or mapped, however these processes end. So there is nothing to delete, and a killed
process leaves nothing behind.

Where there is no `/proc` (macOS) it is a temporary file with a name, which its own process deletes. Of a killed process
it stays until the system cleans its folder of temporary files: nothing here deletes files of another process.
"""

import os
import secrets
import shutil
import stat
import tempfile
from dataclasses import dataclass

import numpy as np

from tcgpu.formats import binary
from tcgpu.graph import Graph

MEMORY = "/dev/shm"  # a folder in main memory, on Linux
OPEN_FILES = "/proc/self/fd"  # where other processes of the same user find the open files of a process, on Linux
MARGIN = 1 << 24  # bytes that are left free
TOKEN = 64  # bytes at the start of the file; the columns after them are aligned


@dataclass(frozen=True)
class SharedFile:
    """What a worker needs to map the file. It goes with every part."""

    path: str
    token: str  # random, and the file's first bytes: the number of a closed file may be given to any other file
    n: int
    m: int

    @property
    def nbytes(self):
        return TOKEN + 8 * (self.n + 1) + 4 * self.m

    def open(self):
        """The Graph in the file, or None if that is not the file at this path. OSError where there is none."""
        found = os.stat(self.path)
        if not stat.S_ISREG(found.st_mode) or found.st_size != self.nbytes:
            return None
        with open(self.path, "rb") as file:
            pages = binary.mapped_pages(file)
        if pages[:TOKEN] != self.token.encode():
            return None
        col_ptr = np.frombuffer(pages, np.int64, self.n + 1, TOKEN)
        row_idx = np.frombuffer(pages, np.int32, self.m, TOKEN + col_ptr.nbytes)
        return Graph(col_ptr, row_idx, validate=False)


class Share:
    """A graph for other processes. A context: at its end the file that was made for it is closed."""

    def __init__(self, graph):
        self.graph, self._file, self._shared = graph, None, None

    def __enter__(self):
        return self

    def __exit__(self, *failure):
        self._close()

    def source(self):
        """The path of the graph's own folder, or the SharedFile that is made now; None where there is no room."""
        if self.graph.folder is not None:
            return os.fspath(self.graph.folder)
        if self._shared is None:
            self._make()
        return self._shared

    def columns(self):
        """The graph as it is sent: without what nobody needs to count it."""
        return Graph(self.graph.col_ptr, self.graph.row_idx, validate=False)

    def _make(self):
        place = _place(self.graph.nbytes)
        if place is None:
            return
        token = secrets.token_hex(TOKEN // 2)
        try:
            if os.path.isdir(OPEN_FILES):
                self._file = tempfile.TemporaryFile(dir=place)
                path = f"/proc/{os.getpid()}/fd/{self._file.fileno()}"
            else:
                self._file = tempfile.NamedTemporaryFile(dir=place, prefix="tcgpu-")
                path = self._file.name
            for content in (token.encode(), self.graph.col_ptr, self.graph.row_idx):
                self._file.write(np.ascontiguousarray(content) if len(content) else b"")
            self._file.flush()
            self._shared = SharedFile(path, token, self.graph.n, self.graph.m)
        except OSError:  # another process has taken the room
            self._close()

    def _close(self):
        file, self._file, self._shared = self._file, None, None
        if file is not None:
            try:
                file.close()
            except OSError:  # what did not fit is tried once more
                pass


def _places():
    return [place for place in (MEMORY, tempfile.gettempdir()) if os.access(place, os.W_OK)]


def _place(size):
    """The first place with room for so many bytes."""
    return next((place for place in _places() if shutil.disk_usage(place).free > size + MARGIN), None)
