"""A file through which the worker processes of one machine map a graph, so that it is in memory once.

The file has no name. Workers open it as `/proc/PID/fd/NUMBER`, through the process that created it. The system frees it
once no process has it open or mapped, however these processes end: a killed process leaves nothing behind, and there is
nothing to delete.

Where there is no `/proc` (macOS) it is a temporary file with a name, which the process that created it deletes. If that
process is killed, the file stays until the system cleans its temporary folder. Nothing here deletes another process's
files.
"""

import os
import secrets
import shutil
import stat
import tempfile
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from tcgpu.formats import binary
from tcgpu.graph import Graph

MEMORY = "/dev/shm"  # a folder in main memory, on Linux
OPEN_FILES = "/proc/self/fd"  # where processes of one user find each other's open files, on Linux
MARGIN = 1 << 24  # bytes that are left free
TOKEN = 64  # bytes at the start of the file; the columns after them are aligned


@dataclass(frozen=True)
class SharedFile:
    """What a worker needs to map the file. It is sent with every part."""

    path: str
    token: str  # random, and the first bytes of the file: another file may have taken the number of a closed one
    n: int
    m: int

    @property
    def nbytes(self):
        return TOKEN + 8 * (self.n + 1) + 4 * self.m

    def open(self):
        """The Graph in the file; None if the path now leads to another file, OSError if it leads nowhere."""
        found = os.stat(self.path)
        if not stat.S_ISREG(found.st_mode) or found.st_size != self.nbytes:
            return None
        with open(self.path, "rb") as file:
            pages = binary.map_pages(file)
        if pages[:TOKEN] != self.token.encode():
            return None
        col_ptr = np.frombuffer(pages, np.int64, self.n + 1, TOKEN)
        row_idx = np.frombuffer(pages, np.int32, self.m, TOKEN + col_ptr.nbytes)
        return Graph(col_ptr, row_idx, validate=False)


class SharedGraph:
    """A graph that other processes may map. `close` closes its file."""

    def __init__(self, graph):
        self.graph, self._file, self._shared = graph, None, None

    def source(self):
        """The SharedFile, created at the first call; None if there is no space for it."""
        if self._shared is None:
            self._create()
        return self._shared

    def _create(self):
        folder = _folder_with_space(self.graph.nbytes)
        if folder is None:
            return
        token = secrets.token_hex(TOKEN // 2)
        try:
            if os.path.isdir(OPEN_FILES):
                self._file = tempfile.TemporaryFile(dir=folder)
                path = f"/proc/{os.getpid()}/fd/{self._file.fileno()}"
            else:
                self._file = tempfile.NamedTemporaryFile(dir=folder, prefix="tcgpu-")
                path = self._file.name
            for content in (token.encode(), self.graph.col_ptr, self.graph.row_idx):
                self._file.write(np.ascontiguousarray(content) if len(content) else b"")
            self._file.flush()
            self._shared = SharedFile(path, token, self.graph.n, self.graph.m)
        except OSError:  # another process has used the space
            self.close()

    def close(self):
        file, self._file, self._shared = self._file, None, None
        if file is not None:
            with suppress(OSError):  # closing tries once more to write what did not fit
                file.close()


def _folders():
    return [folder for folder in (MEMORY, tempfile.gettempdir()) if os.access(folder, os.W_OK)]


def _folder_with_space(size):
    return next((folder for folder in _folders() if shutil.disk_usage(folder).free > size + MARGIN), None)
