"""Where the workers of one machine find a graph: a folder that they all map, so that it is in memory once."""

import fcntl
import os
import shutil
import tempfile
import time
from pathlib import Path

from tcgpu.formats import binary
from tcgpu.graph import Graph

MEMORY = "/dev/shm"  # a folder in main memory, on Linux
PREFIX = "tcgpu-"
MARGIN = 1 << 24  # bytes that are left free
YOUNG = 60  # seconds: a folder that was made just now may not be locked yet


class Share:
    """A graph for other processes. A context: at its end a folder that was made for it is gone."""

    def __init__(self, graph):
        self.graph, self._made, self._lock = graph, None, None

    def __enter__(self):
        return self

    def __exit__(self, *failure):
        if self._made is not None:
            self._remove()

    def folder(self):
        """The graph's own folder, or one that is made now; None where there is no room for one."""
        if self.graph.folder is not None:
            return os.fspath(self.graph.folder)
        if self._made is None:
            self._make()
        return self._made

    def columns(self):
        """The graph as it is sent: without what nobody needs to count it."""
        return Graph(self.graph.col_ptr, self.graph.row_idx, validate=False)

    def _make(self):
        _sweep()
        place = _place(self.graph.nbytes)
        if place is None:
            return
        self._made = tempfile.mkdtemp(prefix=PREFIX, dir=place)
        self._lock = _locked(self._made)
        try:
            binary.write_folder(self.columns(), Path(self._made))
        except OSError:  # someone else has taken the room
            self._remove()

    def _remove(self):
        shutil.rmtree(self._made, ignore_errors=True)
        os.close(self._lock)
        self._made = None


def _places():
    return [place for place in (MEMORY, tempfile.gettempdir()) if os.access(place, os.W_OK)]


def _place(size):
    """The first place with room for so many bytes."""
    return next((place for place in _places() if shutil.disk_usage(place).free > size + MARGIN), None)


def _locked(folder):
    """An open folder that nobody else holds; None if somebody does. It is let go where the process ends, however."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        return None
    return handle


def _sweep():
    """Remove the folders of processes that ended without a chance to."""
    for place in _places():
        for folder in Path(place).glob(f"{PREFIX}*"):
            try:
                handle = _locked(folder) if time.time() - folder.stat().st_mtime > YOUNG else None
            except OSError:  # another user's, or just gone
                continue
            if handle is not None:
                shutil.rmtree(folder, ignore_errors=True)
                os.close(handle)
