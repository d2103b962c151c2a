"""A file through which the worker processes of one machine map a graph, so that its columns are in memory once.

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
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace

import numpy as np

from tcgpu.files import map_file
from tcgpu.graph import Graph

MEMORY = "/dev/shm"  # a folder in main memory, on Linux
OPEN_FILES = "/proc/self/fd"  # where processes of one user find each other's open files, on Linux
MARGIN = 1 << 24  # bytes that are left free
TOKEN = 64  # bytes at the start of the file; the columns after them are aligned


@dataclass(frozen=True)
class SharedFile:
    """What a worker needs to map the graph."""

    path: str
    token: str  # random, and the first bytes of the file: another file may have taken the number of a closed one
    n: int
    m: int

    @property
    def nbytes(self):
        return TOKEN + 8 * (self.n + 1) + 4 * self.m

    def graph(self):
        """The Graph in the file; None if the path now leads to another file, OSError if it leads nowhere."""
        found = os.stat(self.path)
        if not stat.S_ISREG(found.st_mode) or found.st_size != self.nbytes:
            return None
        with open(self.path, "rb") as file:
            pages = map_file(file, 0, self.path)
        if pages[:TOKEN] != self.token.encode():
            return None
        col_ptr = np.frombuffer(pages, np.int64, self.n + 1, TOKEN)
        row_idx = np.frombuffer(pages, np.int32, self.m, TOKEN + col_ptr.nbytes)
        return Graph(col_ptr, row_idx, validate=False)


@contextmanager
def shared_file(graph):
    """The SharedFile of a graph inside the `with`; None if there is no space for it."""
    shared = SharedFile("", secrets.token_hex(TOKEN // 2), graph.n, graph.m)
    folder = _folder_with_space(shared.nbytes)
    if folder is None:
        yield None
        return
    named = not os.path.isdir(OPEN_FILES)
    file = tempfile.NamedTemporaryFile(dir=folder, prefix="tcgpu-") if named else tempfile.TemporaryFile(dir=folder)
    try:
        for content in (shared.token.encode(), graph.col_ptr, graph.row_idx):
            file.write(np.ascontiguousarray(content) if len(content) else b"")
        file.flush()
        shared = replace(shared, path=file.name if named else f"/proc/{os.getpid()}/fd/{file.fileno()}")
    except OSError:  # another process has used the space
        shared = None
        _close(file)
    try:
        yield shared
    finally:
        _close(file)


def _close(file):
    with suppress(OSError):  # closing tries once more to write what did not fit
        file.close()


def _folder_with_space(size):
    folders = (folder for folder in (MEMORY, tempfile.gettempdir()) if os.access(folder, os.W_OK))
    return next((folder for folder in folders if shutil.disk_usage(folder).free > size + MARGIN), None)
