"""Pairs of vertices, which are only read: `.npy`, an array of shape (edges, 2), and Parquet, which needs PyArrow.

The numbers are the vertices if `base` or `n` is given; else ids of those that occur, or in Parquet their names.
"""

import io

import numpy as np

from tcgpu.errors import FormatError, GraphError, needing
from tcgpu.files import contents
from tcgpu.foreign_graphs import two_columns
from tcgpu.graph import Graph


def read_npy(path, base=None, n=None):
    """The graph of the pairs that `numpy.save` wrote."""
    try:
        u, v = np.lib.format.read_array(io.BytesIO(contents(path)), allow_pickle=False).T
    except FormatError:
        raise
    except Exception:  # NumPy passes the header to Python's parser, which raises errors of many types
        raise FormatError(f"{path}: not an array of shape (edges, 2) as NumPy writes it") from None
    return _graph(path, u, v, base, n)


def read_parquet(path, base=None, n=None, columns=None):
    """The graph of two columns of a Parquet file."""
    with needing(f"{path}, a Parquet file,"):
        from pyarrow import ArrowException, parquet
    try:
        file = parquet.ParquetFile(io.BytesIO(contents(path)))
        names = file.schema_arrow.names
        a, b = (names[k] if isinstance(k, int) else k for k in columns or two_columns(names))
        table = file.read(columns=[a, b])
        return _graph(path, table[a], table[b], base, n)
    except (ArrowException, OSError, LookupError) as error:
        raise FormatError(f"{path}: not a Parquet file with such columns: {error}") from None


def _graph(path, u, v, base, n):
    try:
        u, v = (np.asarray(ends) - 1 for ends in (u, v)) if base == 1 else (u, v)
        return Graph.from_edges(u, v, n, relabel=base is None and n is None)
    except GraphError as error:
        raise FormatError(f"{path}: {error}") from None
