"""Call a compiled function of the caller for each triangle, and add up what it returns, on all cores.

As in `edge_tally`, triangles u < v < w are found at each edge (u, v), in the columns of an order that is fast; values
are put into this order, too. A worker needs an int32 for each vertex and two for each row of the longest column. If
there are many workers and many sums, workers share one array of sums.
"""

import functools
import inspect
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from tcgpu.arrays import blocks, unmasked
from tcgpu.cpu.edges import all_edges, workers_for
from tcgpu.cpu.finding import chunk_bounds, chunks
from tcgpu.cpu.orders import in_order
from tcgpu.cpu.per_vertex import MAX_COPIES, in_edge_order_of, positions_in
from tcgpu.cpu_costs import FEW_SUMS, MUCH_LONGER
from tcgpu.engines import native
from tcgpu.engines.kernel_language import names_of
from tcgpu.engines.meaning import all_names
from tcgpu.engines.native import CACHE_LINE, I64, STOPPED, U64, fetch_add, jit, stopped, uncached, uncounted
from tcgpu.errors import GraphError, MethodError
from tcgpu.subgraphs import exact_sums
from tcgpu.suggest import check_known

PLACES = "graph", "vertex", "edge"
MOST_BINS = 2**31 - 1
SAMPLE_EDGES, SAMPLE_ROWS = 16, 64  # edges whose first triangle is looked at, and how many rows for it
ARITHMETIC = {"abs", "bool", "divmod", "float", "int", "len", "max", "min", "pow", "range", "round", "sum"}
MOST_SUMS = 8  # times the columns or the bins: the most memory for sums of floats, and what is beside them


class Reduction(NamedTuple):
    """What to add up; vertices and edges are those of the order to work in."""

    f: Callable  # what Numba made of the caller's function
    results: tuple  # the dtypes of what it returns: a number, or a tuple of several
    floats: bool  # whether floats are added up
    bins: int | None
    per: str
    size: int  # how many sums
    number: np.ndarray | None  # of each vertex for the caller; None if it is the vertex
    vertex_values: np.ndarray | None
    edge_values: np.ndarray | None

    @property
    def returns(self):
        """What `putting` has to know."""
        return self.results, self.floats, self.bins is not None, self.per

    def no_bin(self, triangle, found):
        """The error for a bin that there is not; found: its number, as an int64."""
        if self.results[0] == np.uint64:
            found %= 1 << 64
        return MethodError(f"f returns bin {found} for the triangle {tuple(triangle)}; bins are 0 to {self.size - 1}")


def reduce_triangles(graph, f, vertex_values=None, edge_values=None, bins=None, per="graph", order="auto", totals=None):
    """As `tcgpu.reduce_triangles`, for a Graph.

    totals: the function of a Graph and a Reduction that adds up, if not this module's.
    """
    check_known("value of per", per, PLACES, GraphError)
    if bins is not None:
        if isinstance(bins, bool) or not isinstance(bins, (int, np.integer)) or not 1 <= bins <= MOST_BINS:
            raise GraphError(f"bins is the number of bins, from 1 to {MOST_BINS:,}, not {bins!r}")
        if per != "graph":
            raise GraphError(f"bins are of the whole graph: leave bins= or per={per!r} out")
        bins = int(bins)
    vertex_values = _checked("vertex_values", vertex_values, graph.n, "vertices")
    edge_values = _checked("edge_values", edge_values, graph.m, "edges")
    function, results = _typed(f, vertex_values, edge_values, bins, per)
    _check_for_overflow(graph, function, vertex_values, edge_values)
    floats = any(kind.kind == "f" for kind in results[bins is not None :])
    ordered = in_order(graph, order, "triangles" if edge_values is None and per != "edge" else "support")
    number = None
    if ordered is not graph:
        number = np.argsort(ordered.rank).astype(np.int32)
        vertex_values = None if vertex_values is None else vertex_values[number]
        if edge_values is not None:
            given, edge_values, at = edge_values, np.empty_like(edge_values), positions_in(ordered, graph)
            for block in blocks(graph.m):
                edge_values[at[block]] = given[block]
    size = {"graph": 1 if bins is None else bins, "vertex": graph.n, "edge": graph.m}[per]
    reduction = Reduction(function, results, floats, bins, per, size, number, vertex_values, edge_values)
    totals = (totals or _totals)(ordered, reduction)
    del edge_values, vertex_values, reduction
    if per == "graph" and bins is None:
        return float(totals[0]) if floats else (int(totals[1][0]) << 64) + int(totals[0][0])
    totals = totals if floats else _within_int64(*totals)
    if ordered is graph or per == "graph":
        return totals.copy()  # they may be in the memory of all words
    return totals[ordered.rank] if per == "vertex" else in_edge_order_of(graph, ordered, totals)


def _checked(what, values, many, of):
    """The values as a contiguous array in the machine's byte order, one for each vertex or edge."""
    if values is None:
        return None
    try:
        values = np.asarray(unmasked(values, what))
    except ValueError as error:
        raise GraphError(f"{what} has one value for each of {many:,} {of}, in an array: {error}") from None
    if values.shape != (many,):
        raise GraphError(f"{what} has one value for each of {many:,} {of}, not the shape {values.shape}")
    if values.dtype.hasobject or values.dtype.char in "egG":  # float16 and long floats
        raise GraphError(f"{what} is of {values.dtype}, which compiled functions do not read: convert it")
    return np.ascontiguousarray(values, values.dtype.newbyteorder("="))


def _typed(f, vertex_values, edge_values, bins, per):
    """The compiled function, and the dtypes of what it returns."""
    values = [*([vertex_values.dtype] * 3 if vertex_values is not None else ())]
    values += [edge_values.dtype] * 3 if edge_values is not None else []
    given = "the vertices u, v and w"
    given += ", their values" if vertex_values is not None else ""
    given += ", and the values of the edges uv, uw and vw" if edge_values is not None else ""
    try:
        function = native.compiled(f)
        inspect.signature(function.py_func).bind(*range(3 + len(values)))
    except TypeError as error:
        raise MethodError(f"f is a Python function of {3 + len(values)} numbers, {given}: {error}") from None
    try:
        result = native.result_types(function, *[np.dtype(np.int64)] * 3, *values)
    except TypeError as error:
        raise MethodError(f"f does not compile: {error}") from None
    several = isinstance(result, tuple)
    results = result if several else (result,)
    kinds = "".join(kind.kind if isinstance(kind, np.dtype) else "?" for kind in results)
    if bins is None:
        right, expected = len(kinds) in (1, 3 if per != "graph" else 1), "a number"
        expected += f", or three, one for each {per}" if per != "graph" else ""
    else:
        right, expected = len(kinds) in (1, 2) and kinds[0] in "biu", "a bin, a whole number, or (bin, number)"
    if not right or kinds.strip("biuf") or several and len(kinds) == 1:
        named = ", ".join(map(str, results))
        raise MethodError(f"f has to return {expected}; it returns {f'({named})' if several else named}")
    return function, results


def _check_for_overflow(graph, function, vertex_values, edge_values):
    """MethodError if f returns other integers for some triangles than Python, whose integers do not overflow.

    Only where f computes with numbers alone: NumPy's functions, for example, have rules of their own.
    """
    f, tried = function.py_func, _tried(function)
    dtypes = [np.dtype(int) if values is None else values.dtype for values in (vertex_values, edge_values)]
    if tuple(dtypes) in tried or any(dtype.kind not in "biu" and dtype != np.float64 for dtype in dtypes):
        return
    names = names_of(f)
    if not all(isinstance(names.get(name), (int, float)) or name in ARITHMETIC for name in all_names(f.__code__)):
        return
    for u, v, w, uv, uw, vw in _some_triangles(graph):
        values = [] if vertex_values is None else [*vertex_values[[u, v, w]]]
        values += [] if edge_values is None else [*edge_values[[uv, uw, vw]]]
        try:
            found = function(u, v, w, *values)
            expected = f(u, v, w, *(value.item() for value in values))
        except Exception:  # is raised again, or f is not called for this triangle any more
            continue
        pairs = zip(found, expected, strict=True) if isinstance(found, tuple) else [(found, expected)]
        if any(isinstance(one, (int, np.integer)) and one != other for one, other in pairs):
            raise MethodError(
                f"f returns {found} for the triangle {(u, v, w)}, and {expected} in Python: integers of compiled code "
                "have 64 bits, and no sign if all are unsigned. Let f compute with floats, or give int64 for unsigned"
            )
        tried.add(tuple(dtypes))


@functools.lru_cache(maxsize=native.MOST_COMPILED)
def _tried(function):
    """A set of the dtypes of values with which a function has been tried in Python."""
    return set()


def _some_triangles(graph):
    """Triangles (u, v, w, uv, uw, vw) at some edges (u, v), evenly spaced, and near them; uv is the edge's position."""
    for uv in np.linspace(0, graph.m - 1, min(graph.m, SAMPLE_EDGES), dtype=np.int64).tolist():
        u, v = int(np.searchsorted(graph.col_ptr, uv, "right")) - 1, int(graph.row_idx[uv])
        at_u, at_v, ends = uv + 1, int(graph.col_ptr[v]), graph.col_ptr[[u + 1, v + 1]].tolist()
        rows_u = graph.row_idx[at_u : min(at_u + SAMPLE_ROWS, ends[0])].tolist()
        rows_v = graph.row_idx[at_v : min(at_v + SAMPLE_ROWS, ends[1])].tolist()
        for w in sorted({*rows_u} & {*rows_v})[:1]:
            yield u, v, w, uv, at_u + rows_u.index(w), at_v + rows_v.index(w)


def _totals(graph, reduction):
    """The sums of a Reduction: floats, each rounded once, or the low and the high words of integers."""
    part, size = all_edges(graph), reduction.size
    workers = workers_for(part)
    bounds = chunk_bounds(graph, part, workers)
    marks = np.zeros((workers, graph.n), np.int32)
    hits = np.empty((workers, graph.max_column, 2), np.int32)
    fault = np.zeros(5, np.int64)  # how many, and of the first: u, v, w, and the bin
    take_vertex = _no_values if reduction.vertex_values is None else _values
    take_edge = _no_values if reduction.edge_values is None else _values

    def added(copies, first, last, most):
        """Sums `first` to `last` - 1, of which the floats of each copy may take `most` words; None if they take more"""
        sums = exact_sums.zero_sums(copies, last - first, reduction.floats)
        how, add = (None if copies == workers else True), exact_sums.add_float
        if last - first < size:
            how, add = first, exact_sums.add_float_from
        put = putting(_decorate(reduction.f), (exact_sums.add_integer, add), *reduction.returns)
        queue = np.array([0, bounds.size - 1], np.int64)
        if graph.max_column > 1:  # always by other threads: Numba swallows an interrupt while it finds the type of f
            loop = _loop_for(reduction.f, put, take_vertex, take_edge)
            native.run_threads(loop, graph.col_ptr, graph.row_idx, queue, bounds, reduction.vertex_values,
                               reduction.edge_values, reduction.number, marks, hits, size, how, most, sums, fault,
                               workers=workers, queue=queue)  # fmt: skip
        if fault[0]:
            *triangle, found = fault[1:].tolist()
            raise reduction.no_bin(triangle, found)
        return sums if most is None or max(map(exact_sums.words_in_use, sums)) <= most else None

    copies = 1 if workers > MAX_COPIES and size > FEW_SUMS else workers
    if not reduction.floats:
        return exact_sums.integer_totals(added(copies, 0, size, None))
    if size <= FEW_SUMS:
        return exact_sums.float_totals(added(copies, 0, size, None))
    beside = (8 + 4 + 4) * graph.m  # the rows and the values in the order to work in, and the places of edges there
    most = MOST_SUMS * max(graph.nbytes, 8 * (reduction.bins or 0))  # there may be more bins than edges
    return _in_pieces(graph, size, copies, max(most - beside - marks.nbytes - hits.nbytes, most // 2), added)


def _in_pieces(graph, size, copies, room, added):
    """Sums of floats: all at once if they take at most `room` bytes, else a piece at a time.

    added: as in `_totals`. It finds the triangles again for each piece.
    """
    totals, first, pieces = None, 0, 1
    while first < size:
        last = min(first - (-size // pieces), size)
        sums = added(copies, first, last, room // (8 * copies * (last - first)))
        if sums is not None and pieces == 1:
            return exact_sums.float_totals(sums)
        if sums is not None:
            exact_sums.float_totals(sums, totals[first:last])
            first = last
        elif copies > 1:
            copies = 1
        elif pieces < 12:  # each takes as long as one count
            pieces += 1
            if totals is None:
                totals, room = np.empty(size), room - 8 * size
        else:
            needs = 8e-6 * size * (room // (8 * -(-size // pieces)) + 1)
            raise GraphError(
                f"the exact sums of these floats take {needs:,.0f} MB or more, and the columns of the graph "
                f"{graph.nbytes / 1e6:,.0f} MB: some floats are too small beside others. Let f return 0.0 for those "
                "below 1e-19 times the largest"
            )
        del sums
    return totals


def _within_int64(low, high):
    """Sums of integers as int64; GraphError if one is larger."""
    totals = low.view(np.int64)
    if not np.array_equal(high, totals >> 63):
        raise GraphError(f"sum {np.argmax(high != totals >> 63)} does not fit 64 bits; let f return floats")
    return totals


@functools.cache
def putting(decorate, adders, results, floats, binned, per):
    """The compiled function that adds a result of the caller's function to sums.

    decorate: compiles it. adders: for integers and for floats, called with (sums, at, value, how). The other arguments
    are those of a Reduction.
    """
    add, several, per_graph, per_vertex = adders[floats], len(results) > 1, per == "graph", per == "vertex"
    kinds = [U64 if dtype == U64 else I64 for dtype in results]
    if floats:
        kinds[binned:] = [np.float64] * (len(kinds) - binned)
    a, b, c = (3 * kinds)[:3]

    @decorate
    def put(result, vertices, edges, size, sums, how):
        """Returns the bin if there is no such bin, else 0. Only one of the branches is compiled."""
        if binned:
            bin = a(result[0]) if several else a(result)
            if bin < 0 or bin >= size:
                return I64(bin)
            add(sums, I64(bin), b(result[1]) if several else I64(1), how)
        elif per_graph:
            add(sums, 0, a(result), how)
        else:
            at = vertices if per_vertex else edges
            add(sums, at[0], a(result[0]) if several else a(result), how)
            add(sums, at[1], b(result[1]) if several else b(result), how)
            add(sums, at[2], c(result[2]) if several else c(result), how)
        return 0

    return put


@jit
def _no_values(values, at):
    return ()


@jit
def _values(values, at):
    return values[U64(at[0])], values[U64(at[1])], values[U64(at[2])]


@functools.cache
def fixed(f):
    """A function of this package, compiled: its loop is kept on disk, too. A caller's function may change."""
    found = jit(f)
    found.fixed = True
    return found


@functools.lru_cache(maxsize=native.MOST_COMPILED)
def _loop_for(f, put, take_vertex, take_edge):
    """The compiled loop for a function: each has one of its own, which is freed with it.

    It finds the triangles of each edge (u, v): it lists its hits without a branch, then calls `f` and `put` for each.
    A hit is the offsets of w in the columns of u and of v. number: the number of each vertex for the caller, by which
    vertices are sorted, without a branch on w; None if it is the vertex. how: as `put` needs it; None if each worker
    has sums of its own. most: how many words of sums of floats may be used; None for integers.
    """

    @_decorate(f)
    def reduce(
        worker, workers, col_ptr, row_idx, queue, bounds, vertex_values, edge_values, number, all_marks, all_hits, size,
        how, most, all_sums, fault,
    ):  # fmt: skip
        marks, hit = all_marks[worker], all_hits[worker]
        sums = uncounted(all_sums[worker if how is None else 0])
        begun = U64(0)  # words of sums of floats
        for _, u, at, stop in chunks(queue, bounds, col_ptr):
            while at < stop and not stopped(queue):
                u += 1
                begin, end = at, col_ptr[U64(u + 1)]
                at = end
                marked = end  # rows from this position on are marked: 1 is the first of them
                for k in range(begin, min(stop, end - 1)):
                    if most is not None and sums[0, U64(sums.shape[1] - CACHE_LINE + 1)] != begun:
                        begun = sums[0, U64(sums.shape[1] - CACHE_LINE + 1)]
                        if exact_sums.words_in_use(sums) > most:
                            queue[0] = STOPPED
                            break
                    v = I64(row_idx[U64(k)])
                    first, v_end = col_ptr[U64(v)], col_ptr[U64(v + 1)]
                    hits = I64(0)
                    if (end - k) * MUCH_LONGER < v_end - first:
                        q = first
                        for i in range(k + 1, end):
                            row, left = row_idx[U64(i)], v_end - q
                            while left > 1:  # no branch depends on the rows: it could not be predicted
                                half = left >> 1
                                q += half * I64(row_idx[U64(q + half - 1)] < row)
                                left -= half
                            hit[U64(hits), 0], hit[U64(hits), 1] = i - k, q - first
                            hits += row_idx[U64(q)] == row
                    elif first < v_end:
                        if marked == end:
                            marked = k + 1
                            for i in range(marked, end):
                                marks[U64(row_idx[U64(i)])] = i - k
                        for j in range(first, v_end):
                            place = marks[U64(row_idx[U64(j)])]
                            hit[U64(hits), 0], hit[U64(hits), 1] = marked - 1 - k + place, j - first
                            hits += place != 0
                    a, b = u, v
                    if number is not None and number[U64(u)] > number[U64(v)]:
                        a, b = v, u
                    low, high = (a, b) if number is None else (I64(number[U64(a)]), I64(number[U64(b)]))
                    for x in range(hits):
                        aw, bw = k + I64(hit[U64(x), 0]), first + I64(hit[U64(x), 1])
                        w = I64(row_idx[U64(aw)])
                        if a != u:
                            aw, bw = bw, aw
                        name = w if number is None else I64(number[U64(w)])
                        before, after = name < low, name > high
                        numbers = min(name, low), max(low, min(name, high)), max(name, high)
                        vertices = w if before else a, a if before else b if after else w, w if after else b
                        edges = k if after else aw, bw if before else aw if after else k, k if before else bw
                        of_vertices, of_edges = take_vertex(vertex_values, vertices), take_edge(edge_values, edges)
                        result = f(*numbers, *of_vertices, *of_edges)
                        wrong = put(result, vertices, edges, size, sums, how)
                        if wrong and fetch_add(fault, 0, 1) == 0:
                            fault[1], fault[2], fault[3] = numbers
                            fault[4] = wrong
                            queue[0] = STOPPED
                for k in range(marked, end):
                    marks[U64(row_idx[U64(k)])] = 0

    return reduce


def _decorate(f):
    return jit if getattr(f, "fixed", False) else uncached
