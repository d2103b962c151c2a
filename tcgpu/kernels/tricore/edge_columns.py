"""What the methods of TriCore share: the two columns of an edge, and a plan that takes all edges of a graph."""

from tcgpu.engines.runtime import cuda, uint32
from tcgpu.kernels import Plan, check_positions, simulated
from tcgpu.kernels.device.columns import column_bounds


@cuda.jit(device=True)
def columns_of(e, col_ptr, row_idx, col_of):
    """Offset and length of the two ranges to intersect for edge e = (i, j), as uint32: the rows of column j after row
    i, then column i, which has no rows up to i."""
    q, q_end = column_bounds(col_ptr, row_idx[e])
    return uint32(e + 1), uint32(col_ptr[col_of[e] + 1] - e - 1), q, q_end - q


def plan(method, graph, step, *, edge_us, step_us):
    """The Plan of one launch over all edges.

    edge_us, step_us: microseconds in the simulator for each edge, and for each step of its binary searches.
    """
    check_positions(graph, method)
    return Plan(
        method=method,
        copied={"col_ptr": graph.col_ptr, "row_idx": graph.row_idx, "col_of": graph.col_of},
        created={},
        steps=[step],
        work=simulated.search_work(graph, edge_us, step_us),
    )
