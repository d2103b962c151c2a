"""A file through which the worker processes of one machine map arrays, so that these are in memory once.

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

from tcgpu.files import map_file

MEMORY = "/dev/shm"  # a folder in main memory, on Linux
OPEN_FILES = "/proc/self/fd"  # where processes of one user find each other's open files, on Linux
MARGIN_BYTES = 1 << 24  # bytes that are left free
TOKEN = 64  # bytes at the start of the file; the arrays after them are aligned


@dataclass(frozen=True)
class SharedFile:
    """What a worker needs to map the file. It is sent with every part."""

    path: str
    token: str  # random, and the first bytes of the file: another file may have taken the number of a closed one
    arrays: tuple  # (size, dtype) of each

    @property
    def nbytes(self):
        return TOKEN + sum(size * np.dtype(dtype).itemsize for size, dtype in self.arrays)

    def open(self):
        """The arrays in the file; None if the path now leads to another file, OSError if it leads nowhere."""
        found = os.stat(self.path)
        if not stat.S_ISREG(found.st_mode) or found.st_size != self.nbytes:
            return None
        with open(self.path, "rb") as file:
            pages = map_file(file, 0, self.path)
        if pages[:TOKEN] != self.token.encode():
            return None
        found, at = [], TOKEN
        for size, dtype in self.arrays:
            found.append(np.frombuffer(pages, dtype, size, at))
            at += found[-1].nbytes
        return found


class SharedArrays:
    """Arrays that other processes may map, those with the largest elements first. `close` closes their file."""

    def __init__(self, *arrays):
        self.arrays, self._file, self._shared = arrays, None, None

    def source(self):
        """The SharedFile, created at the first call; None if there is no space for it."""
        folder = None if self._shared else _folder_with_space(sum(array.nbytes for array in self.arrays))
        if folder is None:
            return self._shared
        token = secrets.token_hex(TOKEN // 2)
        try:
            if os.path.isdir(OPEN_FILES):
                self._file = tempfile.TemporaryFile(dir=folder)
                path = f"/proc/{os.getpid()}/fd/{self._file.fileno()}"
            else:
                self._file = tempfile.NamedTemporaryFile(dir=folder, prefix="tcgpu-")
                path = self._file.name
            for content in (token.encode(), *self.arrays):
                self._file.write(np.ascontiguousarray(content) if len(content) else b"")
            self._file.flush()
            self._shared = SharedFile(path, token, tuple((array.size, array.dtype.str) for array in self.arrays))
        except OSError:  # another process has used the space
            self.close()
        return self._shared

    def close(self):
        file, self._file, self._shared = self._file, None, None
        if file is not None:
            with suppress(OSError):  # closing tries once more to write what did not fit
                file.close()


def _folder_with_space(size):
    folders = (folder for folder in (MEMORY, tempfile.gettempdir()) if os.access(folder, os.W_OK))
    return next((folder for folder in folders if shutil.disk_usage(folder).free > size + MARGIN_BYTES), None)
