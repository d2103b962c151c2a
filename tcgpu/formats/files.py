"""Files as bytes: read, decompressed or memory-mapped; replaced in one step when written.

A file of at most SMALL bytes, and every compressed one, is copied into memory, and refused if it changes meanwhile. A
larger one is mapped. A mapped file has to stay as it is until it is read: no check is made for other content, and where
it is cut off the system ends the process (SIGBUS). To replace such a file, write another one and rename it.
"""

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
from contextlib import contextmanager, suppress
from pathlib import Path

import numpy as np

from tcgpu.errors import GraphError

COMPRESSIONS = (".gz", ".bz2", ".xz")

NEWLINE = ord("\n")

SMALL = 1 << 28  # bytes; a larger file is mapped
PIECE = 1 << 20  # compressed bytes read at a time

# what makes a decompressor of one stream, and of what number of zero bytes the padding behind a stream is a multiple
_STREAMS = {
    ".gz": (lambda: zlib.decompressobj(zlib.MAX_WBITS | 16), 1),
    ".bz2": (bz2.BZ2Decompressor, None),
    ".xz": (lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ), 4),
}
_CORRUPT = (OSError, EOFError, zlib.error, lzma.LZMAError)
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_EXCERPT = 60  # characters of a faulty line that a message shows


def compression(path):
    """The ending that says how a file is compressed, or None."""
    ending = Path(path).suffix.lower()
    return ending if ending in COMPRESSIONS else None


def contents(path):
    """Every byte of a file, decompressed; a large plain file is mapped instead of read."""
    ending = compression(path)
    with opened_as_is(path) as file:
        if ending:
            try:
                return _decompressed(file, *_STREAMS[ending])
            except _CORRUPT as error:
                raise GraphError(f"{path}: not a whole {ending} file: {error}") from None
        try:
            return _plain(file, path)
        except OSError as error:
            raise GraphError(f"{path}: cannot be read: {_reason(error)}") from None


def mapped(file, size, path, access=mmap.ACCESS_READ):
    """The first `size` bytes of a file, mapped; GraphError where it has become shorter."""
    try:
        return mmap.mmap(file.fileno(), size, access=access)
    except ValueError:
        raise changed(path) from None


def changed(path):
    return GraphError(f"{path}: the file changed while it was read")


def _plain(file, path):
    before = os.fstat(file.fileno())
    if not stat.S_ISREG(before.st_mode) or before.st_size == 0:
        return file.read()
    if before.st_size > SMALL:
        return mapped(file, before.st_size, path)
    content = file.read()
    after = os.fstat(file.fileno())
    if len(content) != before.st_size or (after.st_size, after.st_mtime_ns) != (before.st_size, before.st_mtime_ns):
        raise changed(path)
    return content


def _decompressed(file, new_stream, padding):
    """What one or more compressed streams hold that lie one behind the other; every byte has to belong to them.

    padding: zero bytes may lie behind a stream if their number is a multiple of this; None: none at all.
    """
    content, rest = bytearray(), file.read(PIECE)
    while True:
        stream = new_stream()
        while not stream.eof:
            if not rest:
                raise EOFError("it ends in the middle of a stream")
            content += stream.decompress(rest)
            rest = stream.unused_data or file.read(PIECE)
        zeros = 0
        while padding and rest[:1] == b"\0":
            stripped = rest.lstrip(b"\0")
            zeros += len(rest) - len(stripped)
            rest = stripped or file.read(PIECE)
        if padding and zeros % padding:
            raise EOFError(f"{zeros} zero bytes behind a stream, which is no multiple of {padding}")
        if not rest:
            return content


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
    no other check for the end. `start` is where the text begins; `whole_lines` tells whether the newline was there.
    """

    def __init__(self, path):
        self.path = path
        self._buffer = contents(path)
        if len(self._buffer) == 0:
            raise GraphError(f"{path}, line 1: the file is empty")
        self.whole_lines = self._buffer[-1:] == b"\n"
        if not self.whole_lines:
            self._buffer = self._buffer[:] + b"\n"
        self.data = np.frombuffer(self._buffer, np.uint8)
        self.data.flags.writeable = False  # one type of array for the scanners, whatever the buffer is
        self.start = len(_BYTE_ORDER_MARK) if self._buffer[:3] == _BYTE_ORDER_MARK else 0

    def __len__(self):
        return len(self._buffer)

    def line(self, at):
        """The line that begins at byte `at`, without the blanks around it, and where the next one begins."""
        end = self._buffer.find(b"\n", at)
        return self._buffer[at:end].strip(), end + 1

    def cells(self, at):
        """The line that begins at byte `at`, without spaces around it: a tab there is the end of an empty cell."""
        return self._buffer[at : self._buffer.find(b"\n", at)].strip(b" \r")

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

    Until then it is a file of another name beside it, so that nobody ever sees half a graph. The new file has the mode
    and, where the system lets us, the owner and group of the old one. A pipe or a device is written to directly.
    """
    target = os.path.realpath(path)
    with _naming(path):
        if os.path.exists(target) and not os.path.isfile(target):
            if os.path.isdir(target):
                raise GraphError(f"{path} is a folder, not a file")
            with open(path, "wb") as file, _compressed(file, path) as stream:
                yield stream
            return
        old = os.stat(target) if os.path.exists(target) else None
        part = _sibling(target)
        try:
            with open(part, "xb", opener=lambda name, flags: os.open(name, flags, 0o600 if old else 0o666)) as file:
                with _compressed(file, path) as stream:
                    yield stream
                if old:
                    _take_access(file.fileno(), old)
                    file.flush()
                    os.fsync(file.fileno())  # the old content goes only when the new one is on the disk
            os.replace(part, target)
        except BaseException:
            Path(part).unlink(missing_ok=True)
            raise


@contextmanager
def replacing_folder(path, is_ours):
    """A new empty folder that becomes `path` when all went well.

    is_ours: tells of a folder (a Path) whether we wrote it and all that is in it. What is there already is replaced
    only where it is empty or `is_ours` says so.
    """
    target = Path(os.path.realpath(path))
    with _naming(path):
        old = target.stat() if target.exists() else None
        if old and not (target.is_dir() and (not any(target.iterdir()) or is_ours(target))):
            raise GraphError(f"{path} exists and holds other things than a graph of tcgpu; it is left as it is")
        part, aside = Path(_sibling(target)), Path(_sibling(target))
        part.mkdir()
        try:
            yield part
            if old:
                _take_access(part, old)
                target.rename(aside)
            part.rename(target)
        except BaseException:
            if aside.exists() and not target.exists():
                aside.rename(target)
            shutil.rmtree(part, ignore_errors=True)
            raise
        if old:
            _remove(aside, is_ours, path)


def _remove(aside, is_ours, path):
    """Remove a folder that we wrote, its files by name: what was put into it in the meantime stays."""
    names = [entry.name for entry in aside.iterdir()]
    if names and not is_ours(aside):
        raise GraphError(f"{path} is written; what was put into the old folder meanwhile is in {aside}")
    for name in names:
        (aside / name).unlink()
    aside.rmdir()


@contextmanager
def _naming(path):
    """Turn what the system says about a write that fails into a GraphError that names the file the user named."""
    try:
        yield
    except BrokenPipeError:  # who reads it has seen enough: no fault of the file
        raise
    except OSError as error:
        folder = os.path.dirname(os.path.realpath(path))
        missing = "" if os.path.isdir(folder) else f": {folder}"
        raise GraphError(f"{path}: cannot be written: {_reason(error)}{missing}") from error


def _reason(error):
    return error.strerror or str(error) or type(error).__name__


def _take_access(file, old):
    """Give a file, by its descriptor or path, the owner, group and mode that `old` (a stat result) has."""
    mode = stat.S_IMODE(old.st_mode)
    try:
        os.chown(file, old.st_uid, old.st_gid)
    except OSError:
        try:
            os.chown(file, -1, old.st_gid)
        except OSError:
            mode &= ~stat.S_IRWXG  # they were for another group
    with suppress(OSError):  # file systems without modes
        os.chmod(file, mode)


@contextmanager
def _compressed(file, path):
    ending = compression(path)
    if ending is None:
        yield file
    elif ending == ".gz":  # no name and no date inside: the same graph is the same bytes
        with gzip.GzipFile("", "wb", fileobj=file, compresslevel=6, mtime=0) as stream:
            yield stream
    else:
        with (bz2 if ending == ".bz2" else lzma).open(file, "wb") as stream:
            yield stream


def _sibling(target):
    return os.path.join(os.path.dirname(target), f".tcgpu-{secrets.token_hex(8)}.part")
