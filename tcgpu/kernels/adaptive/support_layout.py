"""The arrays that `support_plan` needs besides those of `layout`.

in_edges      as in `layout`. For a hub i also, from the end of its list backwards: the heavy columns that have row i,
              by their numbers in the list of heavy columns; heavy_count is their number
edge_slots    for each in-edge (i, j): the slot of its near number, or, if i is far, its position in `row_idx`
batch_list    the hubs' lists of heavy columns in batches of BATCH. Each list is cut into PHASES equal parts, and the
              batches of the first part of all lists come first. Batch b is of phase batch_list[b] // HUBS, and of hub
              batch_list[b] % HUBS; batch_ptr says where those of each phase and hub begin
"""

import numpy as np

from tcgpu.built_in import HUBS, NEAR
from tcgpu.engines.runtime import cuda, int64, kernel, uint64
from tcgpu.kernels import Scan, launch
from tcgpu.kernels.adaptive.layout import Layout, pack_piece, slot_of_nonzero

BATCH = 512  # heavy columns of a hub that a warp takes at a time
PHASES = 8


@kernel("void(int32[::1], int64[::1], int32[::1])")
def number_heavy(heavy_columns, list_sizes, heavy_number):
    """A thread per heavy column: write its number in the list."""
    k = cuda.grid(1)
    while k < list_sizes[0]:
        heavy_number[heavy_columns[k]] = k
        k += cuda.gridsize(1)


@kernel(
    "void(int64[::1], int32[::1], int32[::1], int32[::1], int32[::1], int64, int64, int64, int64[::1],"
    " int64[::1], int32[::1], uint16[::1], uint64[::1], uint32[::1])"
)
def lay_out_nonzeros(
    col_ptr, row_idx, col_of, quad_ptr, heavy_number, first_near, first_hub, heavy_quads, in_ptr, in_end, heavy_count,
    near, in_edges, edge_slots,
):  # fmt: skip
    """As `lay_out`; also write the slot of each in-edge, and for each hub the heavy columns that have its row."""
    e = cuda.grid(1)
    while e < row_idx.size:
        i, j = row_idx[e], col_of[e]
        begin, end = int64(quad_ptr[j]), int64(quad_ptr[j + 1])
        by_hubs = i >= first_hub and end - begin > heavy_quads
        slot = e
        if i >= first_near:
            slot = slot_of_nonzero(col_ptr, quad_ptr, e, j)
            near[slot] = i - (col_ptr.size - 2 - NEAR)
            begin = (slot + 1) >> 2
        if by_hubs:
            k = cuda.atomic.add(heavy_count, i - (col_ptr.size - 1 - HUBS), 1)
            in_edges[in_ptr[i + 1] - 1 - k] = uint64(heavy_number[j])
        elif begin < end:
            k = cuda.atomic.add(in_end, i, 1)
            in_edges[k] = pack_piece(begin, end - begin)
            edge_slots[k] = slot
        e += cuda.gridsize(1)


@cuda.jit(device=True)
def batches_before(phase, columns):
    """How many batches of a list of heavy columns come before a phase."""
    return phase * ((columns + BATCH - 1) // BATCH) // PHASES


@kernel("void(int32[::1], int32[::1])")
def count_batches(heavy_count, batch_count):
    """A thread per phase and hub: count the batches of the hub's list in this phase."""
    k = cuda.grid(1)
    while k < batch_count.size:
        phase, columns = k // HUBS, heavy_count[k % HUBS]
        batch_count[k] = batches_before(phase + 1, columns) - batches_before(phase, columns)
        k += cuda.gridsize(1)


@kernel("void(int32[::1], int32[::1])")
def list_batches(batch_ptr, batch_list):
    """A thread per phase and hub: write its batches."""
    k = cuda.grid(1)
    while k < batch_ptr.size - 1:
        for batch in range(batch_ptr[k], batch_ptr[k + 1]):
            batch_list[batch] = k
        k += cuda.gridsize(1)


def batches(graph):
    """The Layout of the batches."""
    most = min(graph.n, HUBS) + graph.m // BATCH
    created = {
        "heavy_count": (HUBS, np.int32, 0),
        "batch_count": (PHASES * HUBS, np.int32, None),
        "batch_ptr": (PHASES * HUBS + 1, np.int32, None),
        "batch_list": (most, np.int32, None),
    }
    setup = [
        launch(count_batches, PHASES * HUBS, 256),
        Scan("batch_count", "batch_ptr"),
        launch(list_batches, PHASES * HUBS, 256),
    ]
    return Layout({}, created, setup)
