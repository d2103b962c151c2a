"""Arrays in files: `.npz` archives, ours and SciPy's, and the memory-mapped folder.

Nothing here is ever unpickled. The size that an array's header promises is compared with the bytes that are there
before memory is allocated.
"""

import io
import json
import math
import mmap
import os
import re
import secrets
import struct
import warnings
import zipfile
import zlib
from pathlib import Path
from types import SimpleNamespace

import numpy as np

from tcgpu.errors import GraphError
from tcgpu.formats.files import changed, mapped, opened, opened_as_is
from tcgpu.formats.vertices import checked_against, checked_memory
from tcgpu.graph import Graph

MARKER = "graph.json"  # the file that makes a folder a graph folder
DEFLATE = 1032  # a deflated byte stands for no more bytes than these
END = b"PK\5\6"  # begins the last record of an archive, of 22 bytes and the archive's comment
PIECE = 1 << 24  # bytes read at a time
SHORT = 1 << 16  # no header or description is longer
SMALL = 1 << 22  # bytes; an array in a file that is larger is mapped, a smaller one copied

MADE_BY = "tcgpu folder 2"  # in the description of a folder that we wrote

_OURS = ("col_ptr", "row_idx", "labels")
_SCIPY = ("format", "shape", "data", "indptr", "indices", "row", "col")
_WHOLE = ("shape", "indptr", "indices", "row", "col")  # of a SciPy matrix: what SciPy would cast to integers unasked
_HEADERS = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
_ZIP_FAULTS = (zipfile.BadZipFile, zlib.error, struct.error, EOFError, OSError, RuntimeError, ValueError, IndexError)


def read_npz(path, base=None, n=None):
    """A graph that `write_npz` or `scipy.sparse.save_npz` wrote."""
    arrays = _archive(path)
    if "format" in arrays:
        graph = _of_scipy_matrix(arrays, path, n)
    else:
        graph = _of_columns(arrays, path)
    checked_against(n, graph.n, path)
    return graph


def write_npz(graph, stream):
    """As `numpy.savez` would, but front to back: a compressed stream cannot seek."""
    sink = SimpleNamespace(write=stream.write, flush=stream.flush)
    with zipfile.ZipFile(sink, "w") as archive:
        for name, array in _arrays(graph).items():
            with archive.open(zipfile.ZipInfo(f"{name}.npy"), "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)


def read_folder(path, base=None, n=None, validate=True):
    """A graph that `write_folder` wrote; large arrays stay in their files, which are mapped into memory.

    While the graph is in use these files have to stay as they are: where one is cut off, the system ends the process.

    validate: False leaves the columns unread, for who knows that they were checked before.
    """
    folder = Path(path)
    vertices, edges = _promise(folder / MARKER)
    arrays = {name: _mapped(folder / f"{name}.npy") for name in _OURS if (folder / f"{name}.npy").is_file()}
    graph = _of_columns(arrays, path, validate)
    graph.folder = folder.absolute()
    if (graph.n, graph.m) != (vertices, edges):
        promise = f"promises {vertices} vertices and {edges} edges"
        raise GraphError(f"{folder / MARKER}: {promise}, the arrays hold {graph.n} and {graph.m}")
    checked_against(n, graph.n, path)
    return graph


def write_folder(graph, folder):
    sizes = {}
    for name, array in _arrays(graph).items():
        path = folder / f"{name}.npy"
        np.save(path, array, allow_pickle=False)
        sizes[path.name] = path.stat().st_size
    promise = {"vertices": graph.n, "edges": graph.m}
    promise |= {"made_by": MADE_BY, "token": secrets.token_hex(16), "bytes": sizes}
    (folder / MARKER).write_text(json.dumps(promise) + "\n", encoding="utf-8")


def is_ours(folder):
    """Whether `write_folder` wrote a folder and all that is in it: then it may be replaced."""
    folder = Path(folder)
    entries = {entry.name: entry for entry in os.scandir(folder)}
    if MARKER not in entries or not all(entry.is_file(follow_symlinks=False) for entry in entries.values()):
        return False
    try:
        promise = json.loads((folder / MARKER).read_bytes()[:SHORT])
    except (ValueError, RecursionError):
        return False
    if not isinstance(promise, dict) or not all(type(promise.get(key)) is int for key in ("vertices", "edges")):
        return False
    sizes = {name: entry.stat().st_size for name, entry in entries.items() if name != MARKER}
    if len(promise) == 2:  # what former versions wrote
        return {"col_ptr.npy", "row_idx.npy"} <= sizes.keys() <= {f"{name}.npy" for name in _OURS}
    token = promise.get("token")
    written = promise.get("made_by") == MADE_BY and isinstance(token, str) and re.fullmatch(r"[0-9a-f]{32}", token)
    return bool(written) and promise.get("bytes") == sizes


def _arrays(graph):
    arrays = {"col_ptr": graph.col_ptr, "row_idx": graph.row_idx}
    if graph.labels is not None:
        arrays["labels"] = _storable(graph.labels)
    return arrays


def _storable(labels):
    """Labels as an array of numbers or of text; GraphError where that would not bring the same ones back."""
    try:
        array = np.asarray(labels)
        same = array.ndim == 1 and array.dtype.kind in "iufU" and array.tolist() == list(labels)
    except (ValueError, OverflowError):
        same = False
    if not same:
        raise GraphError("labels can be stored where all are numbers or all are text; a text format leaves them out")
    return array


def _of_columns(arrays, path, validate=True):
    """The Graph of stored columns, every one of them checked."""
    try:
        return Graph(arrays["col_ptr"], arrays["row_idx"], labels=arrays.get("labels"), validate=validate)
    except KeyError as missing:
        raise GraphError(f"{path}: no array {missing} in it") from None
    except GraphError as error:
        raise GraphError(f"{path}: {error}") from None


def _of_scipy_matrix(arrays, path, n):
    """The Graph of a SciPy matrix, as `Graph.from_scipy` makes it."""
    from scipy import sparse

    fractions = [name for name in _WHOLE if name in arrays and arrays[name].dtype.kind not in "iu"]
    if fractions:
        raise GraphError(f"{path}: {fractions[0]} must hold whole numbers, not {arrays[fractions[0]].dtype}")
    try:
        kind = str(arrays["format"][0].astype(str))
        shape = tuple(arrays["shape"].tolist())
        values = arrays["data"]
        if kind == "coo":
            matrix = sparse.coo_array((values, (arrays["row"], arrays["col"])), shape=shape)
        elif kind in ("csr", "csc"):  # read by the other direction it is the same graph
            matrix = sparse.csr_array((values, arrays["indices"], arrays["indptr"]), shape=shape)
            matrix.check_format(full_check=True)
        else:
            raise GraphError(f"a SciPy matrix of format {kind!r}; save matrix.tocsr() instead")
        if n is None:
            checked_memory(shape[0], values.size, path)
        return Graph.from_scipy(matrix)
    except KeyError as missing:
        raise GraphError(f"{path}: a SciPy matrix without its array {missing}") from None
    except (ValueError, TypeError, IndexError, OverflowError) as error:
        raise GraphError(f"{path}: {error}") from None


def _archive(path):
    """The arrays in an archive that are ours or SciPy's, by name."""
    with opened(path) as file:
        size = file.seek(0, os.SEEK_END)
        try:
            with zipfile.ZipFile(file) as archive:
                file.seek(size - len(END) - 18 - len(archive.comment))
                if file.read(len(END)) != END:
                    raise GraphError(f"{path}: not a whole .npz archive: there are bytes behind its end")
                members = {info.filename: info for info in archive.infolist()}
                known = [name for name in (*_OURS, *_SCIPY) if f"{name}.npy" in members]
                if not known:
                    raise GraphError(f"{path}: no graph of tcgpu and no SciPy matrix in it")
                return {name: _member(archive, members[f"{name}.npy"], size, path) for name in known}
        except GraphError:
            raise
        except _ZIP_FAULTS as error:
            raise GraphError(f"{path}: not a whole .npz archive: {error}") from None


def _member(archive, info, size, path):
    what = f"{path}, {info.filename}"
    deflated = info.compress_type == zipfile.ZIP_DEFLATED
    if not deflated and info.compress_type != zipfile.ZIP_STORED:
        raise GraphError(f"{what}: compressed in a way that NumPy does not use")
    if info.compress_size > size or info.file_size > info.compress_size * (DEFLATE if deflated else 1):
        raise GraphError(f"{what}: promises {info.file_size} bytes, more than the archive can hold")
    with archive.open(info) as member:
        dtype, count, offset = _npy_header(member, info.file_size, what)
    with archive.open(info) as member:  # anew: a seek back would end the check of its checksum
        member.read(offset)
        array = np.empty(count, dtype)
        put, room = 0, array.view(np.uint8)
        while got := member.readinto(room[put : put + PIECE]):
            put += got
        if put < room.size:
            raise EOFError("it ends too early")
        return array


def _mapped(path):
    """The array of a .npy file: a copy of a small one, a large one mapped."""
    with opened_as_is(path) as file:
        size = os.fstat(file.fileno()).st_size
        dtype, count, offset = _npy_header(file, size, path)
        if size <= SMALL:
            file.seek(0)
            pages = bytearray(size)
            if file.readinto(pages) < size:
                raise changed(path)
        else:
            pages = mapped_pages(file, size)
    return np.require(np.frombuffer(pages, dtype, count, offset), requirements="A")


def mapped_pages(file, size=0):
    """The first `size` bytes of an open file, 0 for all, as mapped memory. Pages are private to this process, so that a
    kernel may be given them as any other array; where the system has too little memory to promise that, they are
    read-only."""
    try:
        return mapped(file, size, file.name, mmap.ACCESS_COPY)
    except OSError:
        return mapped(file, size, file.name)


def _npy_header(file, size, what):
    """`(dtype, count, offset of the data)` of a one-dimensional .npy file of `size` bytes, read from its beginning."""
    start = io.BytesIO(file.read(SHORT))  # NumPy would read as long a header as the file promises
    try:
        with warnings.catch_warnings(action="error"):  # NumPy warns of what only Python 2 wrote
            shape, _, dtype = _HEADERS[np.lib.format.read_magic(start)](start)
    except Exception as error:  # a damaged header makes its parser raise nearly anything
        raise GraphError(f"{what}: not an array as NumPy writes it: {error}") from None
    if len(shape) > 1 or dtype.kind not in "biufcSU" or not dtype.itemsize:
        raise GraphError(f"{what}: not a one-dimensional array of plain numbers or text")
    count, offset = math.prod(shape), start.tell()
    if count < 0 or offset + count * dtype.itemsize != size:
        raise GraphError(f"{what}: promises {count * dtype.itemsize} bytes of data, there are {size - offset}")
    return dtype, count, offset


def _promise(path):
    """The numbers of vertices and edges that a folder's description names."""
    try:
        with opened_as_is(path) as file:
            promise = json.loads(file.read(SHORT))
        vertices, edges = promise["vertices"], promise["edges"]
    except FileNotFoundError:
        raise GraphError(f"{path.parent} is a folder, but not of a graph: no {MARKER} in it") from None
    except (ValueError, KeyError, TypeError, RecursionError):
        raise GraphError(f"{path}: expected a JSON object with 'vertices' and 'edges'") from None
    return vertices, edges
