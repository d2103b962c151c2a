"""Few raw edges, counted without a sort: a hash table of the edges says which are new, and which triangles they close.

In degree order column a has a row b for each edge from vertex a to a vertex b that comes later. Rows are written to
their columns as they come. A triangle a, b, c is found once, at edge (a, b): either the rows c of column b are looked
up as edges (a, c), or those of column a as edges (b, c), whichever are fewer. So columns need not be sorted.

Where many rows are looked up, most edges are between hubs. These are not in the table, but bits: hub h has a row of
bits, number h.
"""

import numpy as np

from tcgpu.engines.runtime import cuda, int32, int64, kernel, uint32, uint64
from tcgpu.kernels import Plan, edge_sums, launch, prefix_sum
from tcgpu.kernels.adaptive.look_ups import LANES, THREADS, list_piece
from tcgpu.kernels.adaptive.tables import HASH_FACTOR
from tcgpu.kernels.device.warp import ALL_LANES, WARP, add_warps_to, sum_up_to
from tcgpu.kernels.orientation import ENDS, lower, pack, upper
from tcgpu.kernels.prefix_sum import share_of_warp, sum_of_share

NEIGHBOURS, MOST_HUBS = 128, 1 << 14  # of a hub, at least; and hubs
EMPTY = 0  # an entry without an edge: no edge is from vertex 0 to itself
HUBS, PLACED = 2, 3  # in `sizes`, behind those of both lists: how many hubs there are, and rows that have a place
OTHER_FACTOR = 2246822507  # of MurmurHash3


@kernel("void(int32[::1], int64, int64[::1], uint64[::1])")
def number_hubs(degrees, least, sizes, vertices):
    """A thread per vertex: pack its degree, which is set to 0, and its number, to which n is added if it is a hub's.

    Packed vertices ascend in degree order.
    """
    for v in range(cuda.grid(1), vertices.size, cuda.gridsize(1)):
        number = v
        if degrees[v] >= least:
            number = vertices.size + cuda.atomic.add(sizes, HUBS, 1)
        vertices[v], degrees[v] = pack(degrees[v], number), 0


@cuda.jit(device=True)
def ends_in_order(vertices, u, v):
    """The numbers of vertices u and v in degree order."""
    return lower(min(vertices[u], vertices[v]), 32), lower(max(vertices[u], vertices[v]), 32)


@cuda.jit(device=True)
def entry_of(a, b, shift):
    """The entry of edge (a, b) in a table of 2^(32 - shift), unless others have it."""
    mixed = a * HASH_FACTOR + (b * OTHER_FACTOR >> uint32(9))
    return (mixed ^ (mixed >> uint32(15))) * HASH_FACTOR >> uint32(shift)


@cuda.jit(device=True)
def take(table, entry, key):
    """Write a key to an entry if it is empty. Returns what the entry had before."""
    before = table[entry]
    if before == uint64(EMPTY):
        before = cuda.atomic.cas(table, entry, uint64(EMPTY), key)
    return before


@cuda.jit(device=True)
def insert(table, shift, a, b):
    """Insert edge (a, b) in the table. Returns whether it is new."""
    entry, key = entry_of(a, b, shift), pack(a, b)
    before = take(table, entry, key)
    while before != uint64(EMPTY) and before != key:
        entry = (entry + uint32(1)) & uint32(table.size - 1)
        before = take(table, entry, key)
    return before == uint64(EMPTY)


@cuda.jit(device=True)
def has(table, shift, a, b):
    """Whether the table has edge (a, b)."""
    entry, key = entry_of(a, b, shift), pack(a, b)
    there = table[entry]
    while there != uint64(EMPTY) and there != key:
        entry = (entry + uint32(1)) & uint32(table.size - 1)
        there = table[entry]
    return there != uint64(EMPTY)


INSERT_TYPES = "uint64[::1], int64, uint64[::1], int64, uint32[::1], int32[::1], int32[::1]"


@kernel(*(f"void({ends}, {INSERT_TYPES})" for ends in ENDS))
def insert_edges(u, v, vertices, shift, table, words, bits, lengths, places):
    """A thread per raw edge: insert it in the table, or set its bit if it is between hubs, whose rows have `words`
    words. Write the place of its row in its column, -1 if it is not new."""
    n = uint32(vertices.size)
    for e in range(cuda.grid(1), u.size, cuda.gridsize(1)):
        place = int32(-1)
        if u[e] != v[e]:
            a, b = ends_in_order(vertices, u[e], v[e])
            if a >= n and b >= n:
                bit = uint32(1) << (b - n & uint32(31))
                new = cuda.atomic.or_(bits, words * (a - n) + (b - n >> uint32(5)), bit) & bit == 0
            else:
                new = insert(table, shift, a, b)
            if new:
                place = cuda.atomic.add(lengths, a, 1)
        places[e] = place


@kernel("void(int32[::1], int64[::1], uint64[::1])")
def place_columns(lengths, sizes, columns):
    """A warp per share of the columns, which come anywhere in `rows`: pack where each begins, and its length."""
    lane, (begin, end) = cuda.threadIdx.x % WARP, share_of_warp(lengths.size)
    start, k = sum_of_share(lengths, begin, end), begin + lane
    if lane == 0:
        start = cuda.atomic.add(sizes, PLACED, start)
    start = cuda.shfl_sync(ALL_LANES, start, 0)
    while k - lane < end:  # whole warps
        length = int64(lengths[k]) if k < end else int64(0)
        up_to = sum_up_to(length)
        if k < end:
            columns[k] = pack(start + up_to - length, length)
        start += cuda.shfl_sync(ALL_LANES, up_to, WARP - 1)
        k += WARP


LIST_TYPES = "uint64[::1], uint64[::1], int32[::1], uint32[::1], uint64[::1], uint32[::1], int64[::1]"


@kernel(*(f"void({ends}, {LIST_TYPES})" for ends in ENDS))
def list_rows(u, v, vertices, columns, places, rows, pieces, others, sizes):
    """A thread per new edge: write its row, and list the piece of `rows` to look up, if there is one, and the vertex to
    which these rows may have edges. sizes: of the two lists, 0 before."""
    counts, starts = cuda.shared.array((2, THREADS // WARP), int32), cuda.shared.array(2, int64)
    for e in range(cuda.grid(1), u.size + cuda.threadIdx.x, cuda.gridsize(1)):  # whole blocks
        begin, length, other = uint32(0), uint32(0), uint32(0)
        if e < u.size and places[e] >= 0:
            a, b = ends_in_order(vertices, u[e], v[e])
            begin, length, other = upper(columns[a], 32), lower(columns[a], 32), b
            rows[begin + places[e]] = b
            if length == 1:  # the row is b itself
                length = uint32(0)
            elif lower(columns[b], 32) < length:
                begin, length, other = upper(columns[b], 32), lower(columns[b], 32), a
        list_piece(begin, length, other, pieces, others, counts, starts, sizes)


@cuda.jit(device=True)
def look_up(n, table, shift, words, bits, rows, piece, a, turn, lanes):
    """To how many rows of a piece vertex a has an edge, of every `lanes`-th row from number `turn` on."""
    found, begin, length = int64(0), upper(piece, 32), lower(piece, 32)
    while turn < length:
        b = rows[begin + turn]
        if a >= n and b >= n:
            found += (bits[words * (a - n) + (b - n >> uint32(5))] >> (b - n & uint32(31))) & uint32(1)
        else:
            found += has(table, shift, a, b)
        turn += lanes
    return found


FIND_TYPES = "uint64[::1], int64, uint64[::1], int64, uint32[::1], uint32[::1], uint64[::1], uint32[::1]"


@kernel(f"void({FIND_TYPES}, int64[::1], int64[::1])")
def find_edges(vertices, shift, table, words, bits, rows, pieces, others, sizes, total):
    """A thread per piece with few rows, then LANES threads per piece with many."""
    few, many, thread, found, n = sizes[0], sizes[1], cuda.grid(1), int64(0), uint32(vertices.size)
    turn = uint32(thread % LANES)
    for at in range(thread, few, cuda.gridsize(1)):
        found += look_up(n, table, shift, words, bits, rows, pieces[at], others[at], uint32(0), uint32(1))
    at = pieces.size - 1 - thread // LANES
    while at >= pieces.size - many:
        found += look_up(n, table, shift, words, bits, rows, pieces[at], others[at], turn, uint32(LANES))
        at -= cuda.gridsize(1) // LANES
    add_warps_to(total, found)


def plan(u, v, n):
    """The count of raw edges on the device, with vertices 0 to n - 1."""
    bits = max(1, u.size - 1).bit_length() + 1  # of a table that is half full at most
    least = max(NEIGHBOURS, -(-2 * u.size // MOST_HUBS))
    hubs = 2 * u.size // least  # at most
    known = {"shift": 32 - bits, "words": -(-hubs // 32)}
    return Plan(
        method="adaptive",
        copied={"u": u, "v": v},
        created={
            "lengths": (n + hubs, np.int32, 0),
            "vertices": (n, np.uint64, None),
            "table": (1 << bits, np.uint64, EMPTY),
            "bits": (hubs * known["words"], np.uint32, 0),
            "columns": (n + hubs, np.uint64, None),
            "places": (u.size, np.int32, None),
            "rows": (u.size, np.uint32, None),
            "pieces": (u.size, np.uint64, None),
            "others": (u.size, np.uint32, None),
            "sizes": (4, np.int64, 0),
        },
        setup=[
            edge_sums.degrees_step(u.size, n, "lengths"),
            launch(number_hubs, n, 256, least=least, degrees="lengths"),
            launch(insert_edges, u.size, 256, **known),
            launch(place_columns, n // 8, prefix_sum.THREADS, 512),
            launch(list_rows, u.size, THREADS),
        ],
        steps=[launch(find_edges, LANES * u.size, 128, 2112, **known)],
    )
