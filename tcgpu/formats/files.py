"""Files as bytes: decompressed or memory-mapped when read, replaced in one step when written."""

import bz2
import gzip
import io
import lzma
import mmap
import os
import secrets
import shutil
import stat
import zlib
from contextlib import contextmanager
from pathlib import Path

import numpy as np

from tcgpu.graph import GraphError

COMPRESSIONS = (".gz", ".bz2", ".xz")

NEWLINE = ord("\n")

_OPEN = {".gz": gzip.open, ".bz2": bz2.open, ".xz": lzma.open}
_CORRUPT = (OSError, EOFError, zlib.error, lzma.LZMAError)
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_EXCERPT = 60  # characters of a faulty line that a message shows


def compression(path):
    """The ending that says how a file is compressed, or None."""
    ending = Path(path).suffix.lower()
    return ending if ending in COMPRESSIONS else None


def contents(path):
    """Every byte of a file, decompressed; a plain file is mapped instead of read."""
    ending = compression(path)
    with opened_as_is(path) as file:
        if ending:
            try:
                with _OPEN[ending](file) as plain:
                    return plain.read()
            except _CORRUPT as error:
                raise GraphError(f"{path}: not a whole {ending} file: {error}") from None
        status = os.fstat(file.fileno())
        if stat.S_ISREG(status.st_mode) and status.st_size:
            return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        return file.read()


def opened(path):
    """A file to read and seek in, decompressed."""
    return io.BytesIO(contents(path)) if compression(path) else opened_as_is(path)


def opened_as_is(path):
    try:
        return open(path, "rb")
    except IsADirectoryError:
        raise GraphError(f"{path} is a folder, not a file") from None


class Text:
    """The lines of a text file, for compiled scanners and for messages about a line.

    `data` (uint8) holds the whole text and always ends with a newline, so that a scanner which stops at newlines needs
    no other check for the end. `start` is where the text begins.
    """

    def __init__(self, path):
        self.path = path
        self._buffer = contents(path)
        if len(self._buffer) == 0:
            raise GraphError(f"{path}, line 1: the file is empty")
        if self._buffer[-1:] != b"\n":
            self._buffer = self._buffer[:] + b"\n"
        self.data = np.frombuffer(self._buffer, np.uint8)
        self.start = len(_BYTE_ORDER_MARK) if self._buffer[:3] == _BYTE_ORDER_MARK else 0

    def __len__(self):
        return len(self._buffer)

    def line(self, at):
        """The line that begins at byte `at`, without the blanks around it, and where the next one begins."""
        end = self._buffer.find(b"\n", at)
        return self._buffer[at:end].strip(), end + 1

    def lines(self, at):
        """Every line from byte `at` on, as (where it begins, its bytes)."""
        while at < len(self):
            line, following = self.line(at)
            yield at, line
            at = following

    def cuts(self, first, size):
        """Ends of lines that cut the text from byte `first` on into chunks of about `size` bytes (int64)."""
        cuts = [first]
        while cuts[-1] < len(self):
            cuts.append(self._buffer.find(b"\n", min(cuts[-1] + size, len(self)) - 1) + 1)
        return np.array(cuts, np.int64)

    def fault(self, at, message):
        """A GraphError about the line that begins at byte `at`."""
        number = 1 + int(np.count_nonzero(self.data[:at] == NEWLINE))
        shown = self._buffer[at : self._buffer.find(b"\n", at)][: 4 * _EXCERPT].decode("utf-8", "backslashreplace")
        shown = shown.strip() if len(shown) <= _EXCERPT else shown[:_EXCERPT].strip() + "..."
        return GraphError(f"{self.path}, line {number}: {message}; found {shown!r}")

    def fault_at_end(self, message):
        """A GraphError about a text that stops too early."""
        return GraphError(f"{self.path}, line {np.count_nonzero(self.data == NEWLINE)}: {message}")


@contextmanager
def replacing(path):
    """A binary stream, compressed as the name says, whose content becomes the file `path` when all went well.

    Until then it is a file of another name beside it, so that nobody ever sees half a graph. A pipe or a device is
    written to directly.
    """
    target = os.path.realpath(path)
    if os.path.exists(target) and not os.path.isfile(target):
        if os.path.isdir(target):
            raise GraphError(f"{path} is a folder, not a file")
        with open(path, "wb") as file, _compressed(file, path) as stream:
            yield stream
        return
    part = _sibling(target)
    try:
        with open(part, "xb") as file, _compressed(file, path) as stream:
            yield stream
        os.replace(part, target)
    except BaseException:
        Path(part).unlink(missing_ok=True)
        raise


@contextmanager
def replacing_folder(path, marker):
    """A new empty folder that becomes `path` when all went well.

    What is there already is replaced only where it is empty or holds the file `marker`, the sign of what we wrote.
    """
    target = Path(os.path.realpath(path))
    if target.exists() and not (target / marker).is_file() and not (target.is_dir() and not any(target.iterdir())):
        raise GraphError(f"{path} exists and is not a graph folder; it is left as it is")
    part, old = Path(_sibling(target)), Path(_sibling(target))
    part.mkdir()
    try:
        yield part
        if target.exists():
            target.rename(old)
        part.rename(target)
    except BaseException:
        if old.exists() and not target.exists():
            old.rename(target)
        shutil.rmtree(part, ignore_errors=True)
        raise
    shutil.rmtree(old, ignore_errors=True)


@contextmanager
def _compressed(file, path):
    ending = compression(path)
    if ending is None:
        yield file
    elif ending == ".gz":  # no name and no date inside: the same graph is the same bytes
        with gzip.GzipFile("", "wb", fileobj=file, compresslevel=6, mtime=0) as stream:
            yield stream
    else:
        with _OPEN[ending](file, "wb") as stream:
            yield stream


def _sibling(target):
    return os.path.join(os.path.dirname(target), f".tcgpu-{secrets.token_hex(8)}.part")
