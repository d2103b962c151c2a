"""The triangles of a part of a graph, added to each of their edges or vertices: a warp per edge.

Contract: for each edge (i, j) of a range, and each row k that columns i and j share, `near` and `far` are increased by
one for the three edges of the triangle, or for its three vertices. Edges and columns are stored as for
`warp_search_kernel`: columns of consecutive vertices, which need not be the same for i and for j.

A warp looks up the rows of the shorter column in the longer one, 32 at a time, and adds hits atomically; for the edge
(i, j) itself it sums its hits first.
"""

from tcgpu.engines.runtime import cuda, kernel, uint32
from tcgpu.kernels import enough_blocks
from tcgpu.kernels.device.columns import column_bounds
from tcgpu.kernels.device.search import first_from, last_up_to
from tcgpu.kernels.device.warp import WARP, sum_of_warp

THREADS = 128
BLOCKS = 1 << 16


@cuda.jit(device=True)
def count_common(keys, p, p_end, key_counts, rows, q, q_end, row_counts, lane, by_edge, vertex_counts):
    """The number of keys[p:p_end] that this lane finds in rows[q:q_end]; it takes every 32nd.

    Adds each hit to two edges, or to its vertex. Counts are pairs: an array, the edge or vertex that element 0 is for.
    """
    hits = uint32(0)
    p += lane
    while p < p_end:
        key = keys[p]
        place = first_from(rows, q, q_end, key)
        if place < q_end and rows[place] == key:
            hits += 1
            if by_edge:
                cuda.atomic.add(key_counts[0], p - key_counts[1], 1)
                cuda.atomic.add(row_counts[0], place - row_counts[1], 1)
            else:
                cuda.atomic.add(vertex_counts[0], key - vertex_counts[1], 1)
        p += WARP
    return hits


_SIGNATURE = (
    "void(int64, int64, int64, int64[::1], int32[::1], int64, int64[::1], int32[::1], "
    "boolean, {0}[::1], int64, {0}[::1], int64)"
)


@kernel(_SIGNATURE.format("int32"), _SIGNATURE.format("int64"))
def part_tally(first, last, j_low, j_ptr, j_rows, i_low, i_ptr, i_rows, by_edge, near, near_base, far, far_base):
    """Count for the edges first..last - 1 of j_rows whose column i is one of those in i_ptr.

    by_edge: position e of j_rows is counted at near[e - near_base], position q of i_rows at far[q - far_base]; else
    vertex j at near[j - near_base], and vertices i and k at far[i - far_base] and far[k - far_base].
    """
    lane = cuda.threadIdx.x & 31
    of_j, of_i = (near, near_base), (far, far_base)
    for e in range(first + (cuda.grid(1) >> 5), last, cuda.gridsize(1) >> 5):
        i = j_rows[e] - i_low
        if 0 <= i < i_ptr.size - 1:
            j = last_up_to(j_ptr, 0, j_ptr.size - 1, e)
            p, p_end = uint32(e + 1), uint32(j_ptr[j + 1])
            q, q_end = column_bounds(i_ptr, i)
            if p_end - p <= q_end - q:
                hits = count_common(j_rows, p, p_end, of_j, i_rows, q, q_end, of_i, lane, by_edge, of_i)
            else:
                hits = count_common(i_rows, q, q_end, of_i, j_rows, p, p_end, of_j, lane, by_edge, of_i)
            hits = sum_of_warp(hits)
            if lane == 0 and hits:
                if by_edge:
                    cuda.atomic.add(near, e - near_base, hits)
                else:
                    cuda.atomic.add(near, j + j_low - near_base, hits)
                    cuda.atomic.add(far, i + i_low - far_base, hits)


def shape(edges):
    """(blocks, threads) of the launch of `part_tally` for this number of edges."""
    return enough_blocks(BLOCKS, edges, THREADS // WARP), THREADS
