"""Arrays in files: `.npz` archives, those of tcgpu and of SciPy, and folders of memory-mapped arrays.

Nothing is unpickled, and the size in a header is compared with the bytes in the file before any memory is allocated.
"""

import io
import json
import math
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

from tcgpu.arrays import locked
from tcgpu.errors import FormatError, GraphError, needing
from tcgpu.files import GivenFile, changed, compression, contents, map_file, open_plain
from tcgpu.formats.scan import check_count, check_memory
from tcgpu.graph import Graph

DESCRIPTION = "graph.json"  # the file that makes a folder a graph folder
MADE_BY = "tcgpu folder 2"  # in the description of a folder that we wrote
MAX_DEFLATE = 1032  # a deflated byte stands for at most this many bytes
MAX_COPIED = 1 << 22  # bytes; a larger array of a folder is mapped
MAX_DESCRIPTION = MAX_HEADER = 1 << 16  # bytes
END_RECORD = b"PK\5\6"  # begins the last record of an archive: 22 bytes and the archive's comment

_OUR_ARRAYS = ("col_ptr", "row_idx", "labels")
_SCIPY_ARRAYS = ("format", "shape", "data", "indptr", "indices", "row", "col")
_INTEGER_ARRAYS = ("shape", "indptr", "indices", "row", "col")  # SciPy would silently cast fractions in these
_CORRUPT = (zipfile.BadZipFile, zlib.error, struct.error, EOFError, OSError, RuntimeError, ValueError, IndexError)


def read_npz(path, base=None, n=None):
    """The graph in an archive that `write_npz` or `scipy.sparse.save_npz` wrote."""
    arrays = read_archive(path, (*_OUR_ARRAYS, *_SCIPY_ARRAYS), "no graph of tcgpu and no SciPy matrix in it")
    graph = _from_scipy_arrays(arrays, path, n) if "format" in arrays else _from_columns(arrays, path)
    check_count(n, graph.n, path)
    return graph


def write_npz(graph, stream):
    """Write the columns and labels of a graph."""
    write_archive(_arrays(graph), stream)


def write_archive(arrays, stream, compression=zipfile.ZIP_STORED):
    """As `numpy.savez`, but without seeking, which a compressed stream cannot do."""
    sink = SimpleNamespace(write=stream.write, flush=stream.flush)
    with zipfile.ZipFile(sink, "w", compression) as archive:
        for name, array in arrays.items():
            info = zipfile.ZipInfo(f"{name}.npy")
            info.compress_type = compression
            with archive.open(info, "w", force_zip64=True) as member:
                np.lib.format.write_array(member, array, allow_pickle=False)


def read_folder(path, base=None, n=None, validate=True):
    """The graph in a folder that `write_folder` wrote; large arrays are mapped from their files.

    While the graph is in use these files must not change: if one is truncated, the system ends the process.

    validate: False does not read and check the columns, for a folder that was checked before.
    """
    folder = Path(path)
    state = file_state(path)
    description = _read_description(folder / DESCRIPTION)
    files = {name: folder / f"{name}.npy" for name in _OUR_ARRAYS}
    arrays = {name: _map_array(file) for name, file in files.items() if file.is_file()}
    if file_state(path) != state:
        raise changed(path)
    graph = _from_columns(arrays, path, validate)
    graph.folder, graph.folder_state = folder.absolute(), state
    if (graph.n, graph.m) != (description["vertices"], description["edges"]):
        promise = f"promises {description['vertices']} vertices and {description['edges']} edges"
        raise FormatError(f"{folder / DESCRIPTION}: {promise}, the arrays hold {graph.n} and {graph.m}")
    check_count(n, graph.n, path)
    return graph


def file_state(path):
    """What changes if a file, or a file of a graph's folder, is replaced or written to: of each, its inode, size, time
    of modification and change time, in nanoseconds. The system alone sets the last one.

    It is the same on all machines that share a file system, so the number of the device is not in it.
    """
    files = [path]
    if os.path.isdir(path):
        names = DESCRIPTION, *(f"{name}.npy" for name in _OUR_ARRAYS)
        files = [file for file in (os.path.join(path, name) for name in names) if os.path.exists(file)]
    found = [os.stat(file) for file in files]
    return tuple((each.st_ino, each.st_size, each.st_mtime_ns, each.st_ctime_ns) for each in found)


def write_folder(graph, folder):
    """Write one `.npy` file for each array, and a description by which `is_ours` recognizes the folder."""
    sizes = {}
    for name, array in _arrays(graph).items():
        path = folder / f"{name}.npy"
        np.save(path, array, allow_pickle=False)
        sizes[path.name] = path.stat().st_size
    description = {"vertices": graph.n, "edges": graph.m}
    description |= {"made_by": MADE_BY, "token": secrets.token_hex(16), "bytes": sizes}
    (folder / DESCRIPTION).write_text(json.dumps(description) + "\n", encoding="utf-8")


def is_ours(folder):
    """Whether `write_folder` wrote a folder and all that is in it, so that it may be replaced."""
    folder = Path(folder)
    entries = {entry.name: entry for entry in os.scandir(folder)}
    if DESCRIPTION not in entries or not all(entry.is_file(follow_symlinks=False) for entry in entries.values()):
        return False
    try:
        description = _read_description(folder / DESCRIPTION)
    except FormatError:
        return False
    sizes = {name: entry.stat().st_size for name, entry in entries.items() if name != DESCRIPTION}
    if len(description) == 2:  # older versions wrote only two entries
        return {"col_ptr.npy", "row_idx.npy"} <= sizes.keys() <= {f"{name}.npy" for name in _OUR_ARRAYS}
    token = re.fullmatch(r"[0-9a-f]{32}", str(description.get("token")))
    return description.get("made_by") == MADE_BY and token is not None and description.get("bytes") == sizes


def _arrays(graph):
    """The arrays to store. GraphError if labels would be different after they are stored in an array."""
    arrays = {"col_ptr": graph.col_ptr, "row_idx": graph.row_idx}
    if graph.labels is None:
        return arrays
    try:
        labels = np.asarray(graph.labels)
        same = labels.ndim == 1 and labels.dtype.kind in "iufU" and labels.tolist() == list(graph.labels)
    except (ValueError, OverflowError):
        same = False
    if not same:
        raise GraphError("labels can be stored if all are numbers or all are text; a text format leaves them out")
    return arrays | {"labels": labels}


def _from_columns(arrays, path, validate=True):
    arrays = {name: locked(array) for name, array in arrays.items()}
    try:
        return Graph(arrays["col_ptr"], arrays["row_idx"], labels=arrays.get("labels"), validate=validate)
    except KeyError as missing:
        raise FormatError(f"{path}: no array {missing} in it") from None
    except GraphError as error:
        raise FormatError(f"{path}: {error}") from None


def _from_scipy_arrays(arrays, path, n):
    """The graph of a SciPy matrix, as `Graph.from_scipy` makes it."""
    with needing(f"{path}, a SciPy matrix,"):
        from scipy import sparse

    for name in _INTEGER_ARRAYS:
        if name in arrays and arrays[name].dtype.kind not in "iu":
            raise FormatError(f"{path}: {name} must hold whole numbers, not {arrays[name].dtype}")
    try:
        kind = str(arrays["format"].astype(str))
        shape = tuple(arrays["shape"].tolist())
        values = arrays["data"]
        if kind == "coo":
            matrix = sparse.coo_array((values, (arrays["row"], arrays["col"])), shape=shape)
        elif kind in ("csr", "csc"):  # columns read as rows give the same graph
            matrix = sparse.csr_array((values, arrays["indices"], arrays["indptr"]), shape=shape)
            matrix.check_format(full_check=True)
        else:
            raise GraphError(f"a SciPy matrix of format {kind!r}; save matrix.tocsr() instead")
        if n is None:
            check_memory(shape[0], values.size, path)
        return Graph.from_scipy(matrix)
    except KeyError as missing:
        raise FormatError(f"{path}: a SciPy matrix without its array {missing}") from None
    except FormatError:
        raise
    except (ValueError, TypeError, IndexError, OverflowError) as error:
        raise FormatError(f"{path}: {error}") from None


def read_archive(path, names, missing):
    """Those arrays of an archive that have these names: name -> array; FormatError, `missing`, if there is none."""
    plain = os.path.isfile(path) and not compression(path) and not isinstance(path, GivenFile)
    with open_plain(path) if plain else io.BytesIO(contents(path)) as file:
        size = file.seek(0, os.SEEK_END)
        try:
            with zipfile.ZipFile(file) as archive:
                file.seek(size - len(END_RECORD) - 18 - len(archive.comment))
                if file.read(len(END_RECORD)) != END_RECORD:
                    raise FormatError(f"{path}: not a whole .npz archive: there are bytes after its end")
                members = {info.filename: info for info in archive.infolist()}
                known = [name for name in names if f"{name}.npy" in members]
                if not known:
                    raise FormatError(f"{path}: {missing}")
                return {name: _read_member(archive, members[f"{name}.npy"], size, path) for name in known}
        except FormatError:
            raise
        except _CORRUPT as error:
            raise FormatError(f"{path}: not a whole .npz archive: {error}") from None


def _read_member(archive, info, size, path):
    what = f"{path}, {info.filename}"
    deflated = info.compress_type == zipfile.ZIP_DEFLATED
    if not deflated and info.compress_type != zipfile.ZIP_STORED:
        raise FormatError(f"{what}: compressed in a way that NumPy does not use")
    if info.compress_size > size or info.file_size > info.compress_size * (MAX_DEFLATE if deflated else 1):
        raise FormatError(f"{what}: promises {info.file_size} bytes, more than the archive can hold")
    with archive.open(info) as member:
        _read_header(member, info.file_size, what)
    with archive.open(info) as member:
        return np.lib.format.read_array(member, allow_pickle=False)


def _map_array(path):
    """The array in a .npy file: a small one is copied, a large one mapped."""
    with open_plain(path) as file:
        size = os.fstat(file.fileno()).st_size
        dtype, count, offset = _read_header(file, size, path)
        if size <= MAX_COPIED:
            file.seek(0)
            pages = bytearray(size)
            if file.readinto(pages) < size:
                raise changed(path)
        else:
            pages = map_file(file, size, path)
    return np.require(np.frombuffer(pages, dtype, count, offset), requirements="A")


def _read_header(file, size, what):
    """`(dtype, entries, offset of the data)` of a .npy file of `size` bytes with at most one dimension."""
    start = io.BytesIO(file.read(MAX_HEADER))  # NumPy would read a header of any length that the file claims
    readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    try:
        with warnings.catch_warnings(action="error"):  # NumPy warns of what only Python 2 wrote
            shape, _, dtype = readers[np.lib.format.read_magic(start)](start)
    except Exception:  # NumPy passes the header to Python's parser, which raises errors of many types
        raise FormatError(f"{what}: not an array as NumPy writes it") from None
    if len(shape) > 1 or dtype.kind not in "biufcSU" or dtype.itemsize == 0:
        raise FormatError(f"{what}: not a one-dimensional array of plain numbers or text")
    count, offset = math.prod(shape), start.tell()
    if count < 0 or offset + count * dtype.itemsize != size:
        raise FormatError(f"{what}: promises {count * dtype.itemsize} bytes of data, there are {size - offset}")
    return dtype, count, offset


def _read_description(path):
    """A folder's description, a dict with at least the numbers of vertices and edges."""
    try:
        with open_plain(path) as file:
            description = json.loads(file.read(MAX_DESCRIPTION))
        if all(type(description[key]) is int for key in ("vertices", "edges")):
            return description
    except FileNotFoundError:
        raise FormatError(f"{path.parent} is a folder, but not of a graph: no {DESCRIPTION} in it") from None
    except (ValueError, KeyError, TypeError, RecursionError):
        pass
    raise FormatError(f"{path}: expected a JSON object with 'vertices' and 'edges'")
