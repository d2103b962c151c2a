"""The triangles over some edges of a graph, added to each of their edges, or of their vertices: a warp per edge.

Contract: for each edge (i, j) among those handed in, and each row k that columns i and j share, `near` and `far` get
one more where the triangle has its three edges, or its three vertices. The edges, and the two columns that each asks
for, lie as for `warp_search_kernel`: columns of consecutive vertices, which need not be the same for i and for j.

Of the two columns the rows of the shorter are looked up in the longer, 32 at a time. A hit is added to what lies at the
two places found, atomically; what belongs to the edge (i, j) itself is added up in the warp first.
"""

from tcgpu.engines.runtime import cuda, int32, int64, kernel, uint32
from tcgpu.kernels import enough_blocks
from tcgpu.kernels.device.columns import column_at

WARP = 32
ALL_LANES = 0xFFFFFFFF
THREADS = 128
BLOCKS = 1 << 16


@cuda.jit(device=True)
def place_of(rows, begin, end, key):
    """Where `key` is among the ascending rows[begin:end], or `end` if it is not."""
    low, high = begin, end
    while low < high:
        middle = (low + high) >> 1
        if rows[middle] < key:
            low = middle + 1
        else:
            high = middle
    return low if low < end and rows[low] == key else end


_SIGNATURE = (
    "void(int64, int64, int64, int64[::1], int32[::1], int64, int64[::1], int32[::1], "
    "boolean, {0}[::1], int64, {0}[::1], int64)"
)


@kernel(_SIGNATURE.format("int32"), _SIGNATURE.format("int64"))
def part_tally(first, last, j_low, j_ptr, j_rows, i_low, i_ptr, i_rows, by_edge, near, near_base, far, far_base):
    """Edges first..last - 1 of j_rows whose row is one of the columns in i_ptr.

    by_edge: position e of j_rows counts at near[e - near_base], position q of i_rows at far[q - far_base]; else vertex
    j at near[j - near_base], and vertices i and k at far[i - far_base] and far[k - far_base].
    """
    lane = cuda.threadIdx.x & 31
    warps = cuda.gridsize(1) >> 5
    e = first + (cuda.grid(1) >> 5)
    while e < last:
        row = int64(j_rows[e])
        i = row - i_low
        if i >= 0 and i < i_ptr.size - 1:
            j = column_at(j_ptr, e)
            p, p_end = uint32(e + 1), uint32(j_ptr[j + 1])
            q, q_end = uint32(i_ptr[i]), uint32(i_ptr[i + 1])
            hits = uint32(0)
            if p_end - p <= q_end - q:
                p += lane
                while p < p_end:
                    key = j_rows[p]
                    place = place_of(i_rows, q, q_end, key)
                    if place < q_end:
                        hits += 1
                        if by_edge:
                            cuda.atomic.add(near, int64(p) - near_base, 1)
                            cuda.atomic.add(far, int64(place) - far_base, 1)
                        else:
                            cuda.atomic.add(far, int64(key) - far_base, 1)
                    p += WARP
            else:
                q += lane
                while q < q_end:
                    key = i_rows[q]
                    place = place_of(j_rows, p, p_end, key)
                    if place < p_end:
                        hits += 1
                        if by_edge:
                            cuda.atomic.add(near, int64(place) - near_base, 1)
                            cuda.atomic.add(far, int64(q) - far_base, 1)
                        else:
                            cuda.atomic.add(far, int64(key) - far_base, 1)
                    q += WARP
            step = 16
            while step:
                hits += uint32(cuda.shfl_xor_sync(ALL_LANES, int32(hits), step))
                step >>= 1
            if lane == 0 and hits:
                if by_edge:
                    cuda.atomic.add(near, e - near_base, hits)
                else:
                    cuda.atomic.add(near, j + j_low - near_base, hits)
                    cuda.atomic.add(far, row - far_base, hits)
        e += warps


def shape(edges):
    """(blocks, threads) to launch it with on so many edges."""
    return enough_blocks(BLOCKS, edges, THREADS // WARP), THREADS
