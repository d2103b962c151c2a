"""Other triangles j < i < k with a near k: column i in shared memory, in-edges looked up in it.

A block takes a task: vertex i and some of its in-edges. It writes the near rows of column i to shared memory, a bit or
a byte for each near number. Then threads read the pieces of the in-edges, a quad at a time, and look up each near
number. A piece may begin up to three numbers too early, with zeros or with rows up to i. Column i has none of these, so
the kernel masks no number and a look-up has no branch.
"""

from tcgpu.built_in import NEAR
from tcgpu.engines.runtime import cuda, int64, kernel, uint8, uint32, uint64
from tcgpu.kernels.adaptive.layout import near_number, near_part, slots, unpack_piece, unpack_quad
from tcgpu.kernels.device.reduction import add_block_to
from tcgpu.kernels.device.shared_memory import clear_counters

WINDOW_WORDS = (NEAR + 1) // 32  # of 32 bits: a bit for each near number
WINDOW_BYTES = 4 * WINDOW_WORDS  # of shared memory
CROWD_WORDS = (NEAR + 1) // 4  # of 32 bits: a byte for each near number
CROWD_BYTES = 4 * CROWD_WORDS


@cuda.jit(device=True)
def bit_of(bits, x):
    """1 if the bit of near number x is set, else 0."""
    return (bits[x >> 5] >> (x & 31)) & 1


@cuda.jit(device=True)
def bits_set(bits, quad):
    """How many of a quad's four near numbers have their bit set."""
    a, b, c, d = unpack_quad(quad)
    return bit_of(bits, a) + bit_of(bits, b) + bit_of(bits, c) + bit_of(bits, d)


@cuda.jit(device=True)
def bytes_set(present, quad):
    """How many of a quad's four near numbers have a byte that is 1."""
    a, b, c, d = unpack_quad(quad)
    return present[a] + present[b] + present[c] + present[d]


@cuda.jit(device=True)
def look_up_tasks(near, quads, columns, pieces, in_edges, task_ptr, lanes, bits, present, by_bytes):
    """A block per task: it writes column i as bits, or `by_bytes`, to memory that is 0. The last tasks, which have most
    work, come first.

    `lanes` threads share an in-edge. If it were a constant, the compiler would unroll the loop over quads, which mostly
    has one iteration. Returns how many rows this thread finds.
    """
    thread, threads, lanes = cuda.threadIdx.x, cuda.blockDim.x, uint32(lanes)
    count = int64(0)
    task = task_ptr[task_ptr.size - 1] - 1 - cuda.blockIdx.x
    while task >= 0:
        begin, end = slots(*unpack_piece(columns[task]))
        p = begin + thread
        while p < end:
            x = near_number(near, p)
            if x != 0 and by_bytes:
                present[x] = 1
            elif x != 0:
                cuda.atomic.or_(bits, x >> 5, 1 << (x & 31))
            p += threads
        at, at_end = unpack_piece(pieces[task])
        at, piece = at + thread // lanes, uint64(0)
        if at < at_end:
            piece = in_edges[at]
        cuda.syncthreads()
        found = uint32(0)
        while at < at_end:
            q, q_end = near_part(piece)
            q += thread % lanes
            at += threads // lanes
            if at < at_end:
                piece = in_edges[at]  # is read while this one is looked up
            while q < q_end:
                if by_bytes:  # two quads at a time
                    first, second = quads[q], uint64(0)
                    if q + lanes < q_end:
                        second = quads[q + lanes]
                    found += bytes_set(present, first) + bytes_set(present, second)
                    q += 2 * lanes
                else:
                    found += bits_set(bits, quads[q])
                    q += lanes
        count += found
        cuda.syncthreads()
        p = begin + thread
        while p < end:
            if by_bytes:
                present[near[p]] = 0
            else:
                bits[near_number(near, p) >> 5] = 0
            p += threads
        cuda.syncthreads()
        task -= cuda.gridDim.x
    return count


ARRAYS = "uint16[::1], uint64[::1], uint64[::1], uint64[::1], uint64[::1], int32[::1], int64, int64[::1]"


@kernel(f"void({ARRAYS})")
def window_kernel(near, quads, columns, pieces, in_edges, task_ptr, lanes, total):
    """A bit for each near number."""
    bits, present = cuda.shared.array(0, uint32), cuda.shared.array(0, uint8)  # the same memory
    clear_counters(bits, WINDOW_WORDS)
    count = look_up_tasks(near, quads, columns, pieces, in_edges, task_ptr, lanes, bits, present, False)
    add_block_to(total, count)


@kernel(f"void({ARRAYS})")
def crowd_kernel(near, quads, columns, pieces, in_edges, task_ptr, lanes, total):
    """For vertices with many in-edges: a byte takes half the instructions of a bit, eight times the memory, and a large
    block."""
    bits, present = cuda.shared.array(0, uint32), cuda.shared.array(0, uint8)  # the same memory
    clear_counters(bits, CROWD_WORDS)
    count = look_up_tasks(near, quads, columns, pieces, in_edges, task_ptr, lanes, bits, present, True)
    add_block_to(total, count)
