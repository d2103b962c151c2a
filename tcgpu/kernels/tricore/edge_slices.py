"""An edge list of its own: which edges to work on, and where the two columns lie that each edge asks for (TriCore).

The edges first..last-1 are nonzeros of columns of consecutive vertices j; the columns of the vertices i that they name
may lie in other arrays. In memory both are the columns of the whole graph. A graph too large for the device is counted
in pieces: edges one stretch after the other, or pairs of ranges of vertices, one for j and one for i. What a kernel of
this kind takes, by position:

    cols        the column j of edge e at cols[e - first]; empty where it is to be searched for in `j_ptr`
    first, last the edges: positions in `j_rows`
    j_low       the first vertex j at hand
    j_ptr       where column j begins in `j_rows`: j_ptr[j - j_low]; one more than there are columns
    j_rows      their rows: j_rows[e] is the row i of edge e
    i_low, i_ptr, i_rows    the same of the columns i; an edge whose row i is not among these vertices is stepped over

Positions have 32 bits: no array of rows may have 2^32 - 2^13 rows or more.
"""

from tcgpu.engines.runtime import cuda, int64, uint32
from tcgpu.kernels import Plan, Step, simulated
from tcgpu.kernels.device.bits import check_edges
from tcgpu.kernels.device.search import last_up_to

ARGUMENTS = "int32[::1], int64, int64, int64, int64[::1], int32[::1], int64, int64[::1], int32[::1]"


@cuda.jit(device=True)
def columns_of(e, cols, first, j_low, j_ptr, j_rows, i_low, i_ptr):
    """The two stretches that edge e = (i, j) asks for: where the rows of column j after row i begin and how many there
    are, then the same of all rows of column i. Nothing, four times 0, where column i is not at hand.

    Column i has no rows up to i, so that no others of column j can be in both.
    """
    at = place_at_hand(j_rows[e], i_low, i_ptr)
    if at < 0:
        nothing = uint32(0)
        return nothing, nothing, nothing, nothing
    return stretches(e, at, cols, first, j_low, j_ptr, i_ptr)


@cuda.jit(device=True)
def place_at_hand(i, i_low, i_ptr):
    """Which of the columns from i_low on is column i: it begins at i_ptr[that]; -1 if it is not at hand."""
    at = int64(i) - i_low
    return at if 0 <= at < i_ptr.size - 1 else int64(-1)


@cuda.jit(device=True)
def stretches(e, at, cols, first, j_low, j_ptr, i_ptr):
    """What `columns_of` says of an edge whose column i is at hand, the one that begins at i_ptr[at]."""
    column, end = i_ptr[at], i_ptr[at + 1]
    rest = column_end(e, cols, first, j_low, j_ptr) - e - 1
    return uint32(e + 1), uint32(rest), uint32(column), uint32(end - column)


@cuda.jit(device=True)
def column_end(e, cols, first, j_low, j_ptr):
    """Where the column of nonzero e ends: that of the vertex which `cols` names; without `cols` it is searched for."""
    if cols.size:
        return j_ptr[cols[e - first] - j_low + 1]
    return j_ptr[last_up_to(j_ptr, 0, j_ptr.size - 1, e) + 1]


def plan(method, graph, kernel, shape, *knobs, edge_us, step_us):
    """The Plan of a kernel that takes the edges of the whole graph, its knobs and `total`; shape: (blocks, threads,
    bytes of shared memory).

    edge_us, step_us: microseconds in the simulator of an edge, and of a step of the binary searches that it takes.
    """
    check_edges(method, graph)
    blocks, threads, shared = shape
    columns = ("col_ptr", "row_idx")
    args = ("col_of", 0, graph.m, 0, *columns, 0, *columns, *knobs, "total")
    return Plan(
        method=method,
        copied={"col_ptr": graph.col_ptr, "row_idx": graph.row_idx, "col_of": graph.col_of},
        created={},
        steps=[Step(kernel, blocks, threads, args, shared)],
        work=simulated.search_work(graph, edge_us, step_us),
    )
