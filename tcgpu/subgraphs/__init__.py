"""Subgraphs beyond the count of triangles: of four vertices, cliques, sets of k vertices; triangles with values."""

from collections.abc import Callable
from typing import Any, Literal, Unpack

from tcgpu.api import Options, check_only, verb, whole
from tcgpu.declarations import CUDA
from tcgpu.progress import underway
from tcgpu.registry import choose, on_engine


@verb
def reduce_triangles(
    graph: Any,
    f: Callable,
    vertex_values: Any = None,
    edge_values: Any = None,
    *,
    bins: int | None = None,
    per: Literal["graph", "vertex", "edge"] = "graph",
    **options: Unpack[Options],
) -> Any:
    """Call a function of your own for each triangle, and add up what it returns; no list of triangles is made.

    Parameters
    ----------
    graph, options
        As in `tcgpu.count`. Without an engine it is "cpu": the kernel for GPUs has not been measured.
        There is no method to choose, and no executor.
    f
        `f(u, v, w)`, a Python function, which Numba compiles again when anything that it uses changes, or one that
        `numba.njit` made, which keeps what it used first. It is called once for each triangle u < v < w, in any order
        and by several threads. Its integers are those of compiled code: of 64 bits, beyond which they wrap around, and
        without a sign where all operands are unsigned. Where `f` only computes with numbers, some triangles are tried
        in Python, too, and integers that differ are an error. With `vertex_values` it is `f(u, v, w, x, y, z)`, and
        also takes the values of the three vertices; with `edge_values`, `f(u, v, w, uv, uw, vw)`, those of the three
        edges; with both, `f(u, v, w, x, y, z, uv, uw, vw)`. On a GPU it has fewer functions of Python and NumPy.
    vertex_values
        A number for each vertex. Several values are a structured array, whose fields `f` reads: `x.age`. On engines
        "gpu" and "sim", values are numbers and bools only.
    edge_values
        The same for each edge, in the order of `graph.edges()`.
    bins
        How many sums to make: `f` returns a bin, from 0 to `bins` - 1, and triangles are counted; or `(bin, number)`.
    per
        "graph"; or "vertex" or "edge": what `f` returns is added at the three vertices or edges of the triangle. It may
        be three numbers, one for each of u, v, w or of uv, uw, vw.

    Returns
    -------
    int or float or numpy.ndarray
        The sum; with `bins`, or per vertex or edge, an array of int64 or float64. Sums of integers and bools are exact.
        Sums of floats are rounded once, as `math.fsum` does: they are the same for any number of threads and order.
        So they are on a GPU, but there `f` itself may compute with other roundings: `a * b + c` is rounded once, not
        twice, and functions such as `math.exp` may differ in the last bit.

    Raises
    ------
    MethodError
        If `f` does not compile, or returns something else, or a bin that there is not, or if its integers overflow for
        a triangle that is tried. What `f` raises is raised; on a GPU, MethodError in its place. On engines "gpu" and
        "sim" a division by zero raises nothing: it is infinite or NaN, and 0 for integers.
    GraphError
        If there is not a value for each vertex or edge, or an integer of the array does not fit 64 bits; or, on the
        CPU, if floats differ so much that their exact sums take over 8 times the memory of the graph's columns, or of
        the bins. Floats that differ by up to 1e19 are never refused. `f` may be called again for a few triangles to
        find out.
    """
    from tcgpu.subgraphs import reductions

    check_only("reduce_triangles", {"cpu"}, (*CUDA, "cpu"), options)
    engine, order = options["engine"], options["order"] or "auto"
    choose("cpu", engine if options["method"] else None, order)
    graph = whole(graph, engine or "cpu")
    with underway(options["progress"], f"reducing triangles of {graph.m:,} edges"):
        if engine not in CUDA:
            return reductions.reduce_triangles(graph, f, vertex_values, edge_values, bins, per, order)
        from tcgpu.subgraphs import triangle_sums

        with on_engine(triangle_sums.METHOD, engine, options["max_seconds"]):
            return reductions.reduce_triangles(
                graph, f, vertex_values, edge_values, bins, per, order, triangle_sums.totals
            )
