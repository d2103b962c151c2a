"""Files as bytes: read, decompress or memory-map them; replace them in one step when writing.

A file of at most MAX_COPIED bytes, and every compressed one, is copied into memory, and refused if it changes
meanwhile. A larger one is mapped. A mapped file must not change until it is read: changes are not detected, and if the
file is truncated, the system ends the process (SIGBUS). To replace such a file, write another one and rename it.
"""

import bz2
import gzip
import io
import mmap
import os
import re
import secrets
import shutil
import stat
import sys
import zlib
from contextlib import contextmanager, nullcontext, suppress
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from tcgpu.errors import FormatError, GraphError, needing

try:
    import lzma
except ImportError:  # Python in a browser has none
    lzma = None

COMPRESSIONS = (".gz", ".bz2", ".xz", ".zst")
NEWLINE = ord("\n")
MAX_COPIED = 1 << 28  # bytes; a larger file is mapped
BLOCK = 1 << 20  # compressed bytes read at a time

# ending -> (factory of a decompressor of one stream, padding: zero bytes may follow in multiples of it; None: never)
_STREAMS = {
    ".gz": (lambda: zlib.decompressobj(zlib.MAX_WBITS | 16), 1),
    ".bz2": (bz2.BZ2Decompressor, None),
    ".xz": (lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ), 4),
    ".zst": (lambda: zstandard().ZstdDecompressor().decompressobj(), None),
}
_BEGINNINGS = {b"\x1f\x8b": ".gz", b"BZh91AY": ".bz2", b"\xfd7zXZ\0": ".xz", b"\x28\xb5\x2f\xfd": ".zst"}  # of a file
_CORRUPT = (OSError, EOFError, zlib.error, *([lzma.LZMAError] if lzma else []))
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_EXCERPT = 60  # characters of a wrong line that a message shows


class GivenFile(str):
    """The name of an open file that a caller gave, in place of a path; `content` has the bytes that were left in it."""


def given_file(file):
    """A GivenFile of an open file, of text or bytes. A file without a name is called by its type."""
    name, content = getattr(file, "name", None), file.read()
    given = GivenFile(name if isinstance(name, str) else f"<{type(file).__name__}>")
    given.content = content.encode() if isinstance(content, str) else content
    return given


def zstandard():
    with needing("a file that ends in .zst"):
        import zstandard
    return zstandard


def as_text(path):
    """A path as text; GraphError if it cannot be the path of a file."""
    if isinstance(path, GivenFile):
        return path
    path = os.fsdecode(path)
    if "\0" in path:
        raise GraphError(f"{path!r} is not the path of a file: there is a zero byte in it")
    return path


def compression(path):
    """The ending that names the compression of a file, or None."""
    ending = Path(os.fsdecode(path)).suffix.lower()
    if ending == ".xz" and lzma is None:
        raise FormatError(f"{path}: this Python has no lzma, which .xz needs: compress with gzip")
    return ending if ending in COMPRESSIONS else None


def contents(path):
    """All bytes of a file, decompressed; a large uncompressed file is mapped instead of read.

    Where no ending says so, as of a pipe, the first bytes tell that a file is compressed.
    """
    given = isinstance(path, GivenFile)
    ending = None if given else compression(path)
    with nullcontext() if given else open_plain(path) as file:
        try:
            if ending is None:
                content = path.content if given else _read_or_map(file, path)
                ending = next((name for begin, name in _BEGINNINGS.items() if content[: len(begin)] == begin), None)
                if ending is None:
                    return content
                file = io.BytesIO(content)
            return _decompress(file, *_STREAMS[ending])
        except (*_CORRUPT, getattr(sys.modules.get("zstandard"), "ZstdError", OSError)) as error:
            problem = f"not a whole {ending} file: {error}" if ending else f"cannot be read: {_reason(error)}"
            raise FormatError(f"{path}: {problem}") from None


def open_plain(path):
    """A file to read and seek in, not decompressed."""
    try:
        return open(path, "rb")
    except IsADirectoryError:
        raise FormatError(f"{path} is a folder, not a file") from None


def map_file(file, size, path):
    """The first `size` bytes of an open file, 0 for all, as mapped memory; FormatError if it has become shorter."""
    try:
        return mmap.mmap(file.fileno(), size, access=mmap.ACCESS_READ)
    except ValueError:
        raise changed(path) from None


def changed(path):
    """The error about a file that changes while it is read."""
    return FormatError(f"{path}: the file changed while it was read")


def _read_or_map(file, path):
    before = os.fstat(file.fileno())
    if not stat.S_ISREG(before.st_mode) or before.st_size == 0:
        return file.read()
    if before.st_size > MAX_COPIED:
        return map_file(file, before.st_size, path)
    content = file.read()
    after = os.fstat(file.fileno())
    if len(content) != before.st_size or (after.st_size, after.st_mtime_ns) != (before.st_size, before.st_mtime_ns):
        raise changed(path)
    return content


def _decompress(file, new_stream, padding):
    """The content of the compressed streams that a file consists of; other bytes than `padding` are refused.

    Python's own readers ignore what follows the last stream of a .bz2 or .xz file.
    """
    content, rest = bytearray(), file.read(BLOCK)
    while True:
        stream = new_stream()
        while not stream.eof:
            if not rest:
                raise EOFError("it ends in the middle of a stream")
            content += stream.decompress(rest)
            rest = stream.unused_data or file.read(BLOCK)
        zeros = 0
        while padding and rest[:1] == b"\0":
            stripped = rest.lstrip(b"\0")
            zeros += len(rest) - len(stripped)
            rest = stripped or file.read(BLOCK)
        if padding and zeros % padding:
            raise EOFError(f"{zeros} zero bytes after a stream, not a multiple of {padding}")
        if not rest:
            return content


class Text:
    """The lines of a text file, for compiled scanners and for messages about a line.

    `data` (uint8) holds the whole text and always ends with a newline, so that a scanner which stops at newlines needs
    no other check for the end. `start` is the offset of the text; `ends_with_newline` says whether the file does.
    An offset `at` below is always that of the first byte of a line.
    """

    def __init__(self, path):
        self.path = path
        self._buffer = contents(path)
        if len(self._buffer) == 0:
            raise FormatError(f"{path}, line 1: the file is empty")
        self.ends_with_newline = self._buffer[-1:] == b"\n"
        if not self.ends_with_newline:
            self._buffer = self._buffer[:] + b"\n"
        self.data = np.frombuffer(self._buffer, np.uint8)
        self.data.flags.writeable = False  # one type of array for the scanners, whatever the buffer is
        self.start = len(_BYTE_ORDER_MARK) if self._buffer[:3] == _BYTE_ORDER_MARK else 0

    def __len__(self):
        return len(self._buffer)

    def line(self, at, strip=None):
        """`(the line without white space around it, or without the bytes in strip; the offset of the next line)`."""
        end = self._buffer.find(b"\n", at)
        return self._buffer[at:end].strip(strip), end + 1

    def lines(self, at):
        """All lines from offset `at` on, as (offset, bytes)."""
        while at < len(self):
            line, following = self.line(at)
            yield at, line
            at = following

    def first_line(self, at, what):
        """The first line from offset `at` on that is neither blank nor a comment (`%`); an error says `what` it is."""
        for place, line in self.lines(at):
            if line and not line.startswith(b"%"):
                return place, line
        raise self.error_at_end(f"the file ends before its {what}")

    def chunk_bounds(self, first, size):
        """Ends of lines (offsets, int64) that cut the text from `first` on into chunks of about `size` bytes."""
        bounds = [first]
        while bounds[-1] < len(self):
            bounds.append(self._buffer.find(b"\n", min(bounds[-1] + size, len(self)) - 1) + 1)
        return np.array(bounds, np.int64)

    def error(self, at, message):
        """A FormatError about a line."""
        number = 1 + int(np.count_nonzero(self.data[:at] == NEWLINE))
        shown = self._buffer[at : self._buffer.find(b"\n", at)][: 4 * _EXCERPT].decode("utf-8", "backslashreplace")
        shown = shown.strip() if len(shown) <= _EXCERPT else shown[:_EXCERPT].strip() + "..."
        return FormatError(f"{self.path}, line {number}: {message}; found {shown!r}")

    def error_at_end(self, message):
        """A FormatError about a text that ends too early."""
        return FormatError(f"{self.path}, line {np.count_nonzero(self.data == NEWLINE)}: {message}")


@contextmanager
def replacing(path):
    """A binary stream, compressed as the name says, whose content becomes the file `path` if no error is raised.

    Until then it is a file without a name, or with a temporary one, in the same folder, so that no program reads half a
    file. The new file has the mode and, if the system allows it, the owner and group of the old one. A pipe, a device
    and a file that this process has open (/dev/stdout, /dev/fd/3, or the open file itself) are written to directly.
    """
    if hasattr(path, "write"):  # an open file, of bytes or text
        text = SimpleNamespace(write=lambda data: path.write(bytes(data).decode()))
        yield text if hasattr(path, "encoding") else path
        return
    path = as_text(path)
    with _naming_the_file(path):
        target, number = os.path.realpath(path), _open_file(path)
        if number is not None or os.path.exists(target) and not os.path.isfile(target):
            if os.path.isdir(target):
                raise GraphError(f"{path} is a folder, not a file")
            with open(path if number is None else os.dup(number), "wb") as file, _compressed(file, path) as stream:
                yield stream
            return
        old = os.stat(target) if os.path.exists(target) else None
        part = _temporary_name(target)
        try:
            with _new_file(part, 0o600 if old else 0o666) as file:
                with _compressed(file, path) as stream:
                    yield stream
                if old:
                    _copy_access(file.fileno(), old)
                    file.flush()
                    os.fsync(file.fileno())  # the new content must be on the disk before the old is replaced
                if not os.path.exists(part):
                    file.flush()
                    _name(file, part)
            os.replace(part, target)
        except BaseException:
            Path(part).unlink(missing_ok=True)
            raise


def _open_file(path):
    """The number of the open file of this process that a path such as /dev/stdout or /dev/fd/3 stands for, or None."""
    for _ in range(40):  # links
        folder, name = os.path.split(os.path.abspath(path))
        if name.isdecimal() and os.path.realpath(folder) in ("/dev/fd", os.path.realpath("/proc/self/fd")):
            return int(name)
        if not os.path.islink(path):
            break
        path = os.path.join(folder, os.readlink(path))
    return None


def _new_file(part, mode):
    """A new file to write to, which the system removes if this process is killed; where it cannot, with this name."""
    if hasattr(os, "O_TMPFILE") and os.path.isdir("/proc/self/fd"):
        with suppress(OSError):  # file systems without such files
            return open(os.open(os.path.dirname(part), os.O_TMPFILE | os.O_RDWR, mode), "wb")
    return open(part, "xb", opener=lambda name, flags: os.open(name, flags, mode))


def _name(file, part):
    """Give a file without a name this one."""
    number = file.fileno()
    try:
        os.link(f"/proc/self/fd/{number}", part, src_dir_fd=number)  # with a src_dir_fd it follows the link
    except OSError:  # not on all file systems
        shutil.copy(f"/proc/self/fd/{number}", part)


@contextmanager
def replacing_folder(path, is_ours):
    """A new empty folder that becomes `path` if no error is raised.

    An existing folder is replaced only if it is empty, or if `is_ours(folder)` says that tcgpu wrote it and everything
    in it.
    """
    target = Path(os.path.realpath(path))
    with _naming_the_file(path):
        old = target.stat() if target.exists() else None
        if old and not (target.is_dir() and (not any(target.iterdir()) or is_ours(target))):
            raise GraphError(f"{path} exists and holds other things than a graph of tcgpu; it is left as it is")
        part, aside = Path(_temporary_name(target)), Path(_temporary_name(target))
        part.mkdir()
        try:
            yield part
            if old:
                _copy_access(part, old)
                target.rename(aside)
            part.rename(target)
        except BaseException:
            if aside.exists() and not target.exists():
                aside.rename(target)
            shutil.rmtree(part, ignore_errors=True)
            raise
        if old:
            names = [entry.name for entry in aside.iterdir()]
            if names and not is_ours(aside):
                raise GraphError(f"{path} is written; what was put into the old folder meanwhile is in {aside}")
            for name in names:  # by name, not the whole tree: files that another process adds now are kept
                (aside / name).unlink()
            aside.rmdir()


@contextmanager
def _naming_the_file(path):
    """Turn an OSError of a write into a GraphError that names the file as the user does."""
    try:
        yield
    except BrokenPipeError:  # the reader of a pipe has closed it: not an error of the file
        raise
    except OSError as error:
        folder = os.path.dirname(os.path.realpath(path))
        lacking = "" if os.access(folder, os.W_OK) else f": {folder}"
        raise GraphError(f"{path}: cannot be written: {_reason(error)}{lacking}") from error


def _reason(error):
    said = str(error)
    if re.search(r"\d+ requested and \d+ written", said):  # NumPy does not say why
        return "no space left, or a limit on the size of files"
    return getattr(error, "strerror", None) or said or type(error).__name__


def _copy_access(file, old):
    """Give a file, by its descriptor or path, the owner, group and mode that `old` (a stat result) has."""
    mode = stat.S_IMODE(old.st_mode)
    try:
        os.chown(file, old.st_uid, old.st_gid)
    except OSError:
        try:
            os.chown(file, -1, old.st_gid)
        except OSError:
            mode &= ~stat.S_IRWXG  # these rights were for another group
    with suppress(OSError):  # file systems without modes
        os.chmod(file, mode)


def _compressed(file, path):
    """A context: the stream that compresses into an open file as the ending of `path` says."""
    ending = compression(path)
    if ending == ".gz":  # no name and no date inside: the same graph gives the same bytes
        return gzip.GzipFile("", "wb", fileobj=file, compresslevel=6, mtime=0)
    if ending == ".zst":
        return zstandard().ZstdCompressor().stream_writer(file, closefd=False)
    return {".bz2": bz2.open, ".xz": lzma.open}[ending](file, "wb") if ending else nullcontext(file)


def _temporary_name(target):
    return os.path.join(os.path.dirname(target), f".tcgpu-{secrets.token_hex(8)}.part")
