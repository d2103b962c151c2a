"""Three kernels with something wrong in each, for notebook 10: look at their traces before you read on.

`show_clues` prints what a trace says of one, `verdict` whether it is mended.
"""

import tcgpu
from helpers.answers import GRAPH, MEASURES, kernel_verdict
from helpers.puzzles.p02_dot_product import dot as common
from helpers.puzzles.p03_stride import stride
from helpers.puzzles.p05_block_sum import block_sum
from tcgpu import cuda, int64

CLUES = ("load_requests", "sectors_per_request", "store_requests", "atomics", "shared_requests", "barriers")
MENDED = {  # number of the case -> a kernel without its fault, and what another one may request at most
    1: (stride, {"sectors_per_request": 6.2}),
    2: (stride, {"sectors_per_request": 6.2}),
    3: (block_sum, {"atomics": 2}),
}


def show_clues(case, beside):
    """Print what the traces of a case and of a right kernel say, with the same launch."""
    trace, right = (tcgpu.trace(GRAPH, method, **case.knobs) for method in (case, beside))
    print(f"{case.name}: the count is {'right' if trace.triangles == right.triangles else 'wrong'}")
    for measure in CLUES:
        print(f"{MEASURES[measure]:28} {trace.totals()[measure]:6}   {beside.name} {right.totals()[measure]:6}")


def verdict(number, mended):
    """Say whether a kernel mends case 1, 2 or 3, and if not, why; then what it requests, beside a kernel that does."""
    return kernel_verdict(mended, *MENDED[number])


@tcgpu.method(threads=32, blocks=2)
def case_1(col_ptr, row_idx, col_of, total):
    each = (row_idx.size + cuda.gridsize(1) - 1) // cuda.gridsize(1)
    begin = cuda.grid(1) * each
    count = int64(0)
    for e in range(begin, min(begin + each, row_idx.size)):
        i, j = row_idx[e], col_of[e]
        count += common(row_idx, e + 1, col_ptr[j + 1], col_ptr[i], col_ptr[i + 1])
    cuda.atomic.add(total, 0, count)


@tcgpu.method(threads=32, blocks=2)
def case_2(col_ptr, row_idx, col_of, total):
    count = int64(0)
    for e in range(cuda.grid(1), row_idx.size, cuda.gridsize(1)):
        i, j = row_idx[e], col_of[e]
        count += common(row_idx, e + 1, col_ptr[j + 1], col_ptr[i], col_ptr[i + 1])
    total[0] += count


@tcgpu.method(threads=64, blocks=2, shared="8 * threads")
def case_3(col_ptr, row_idx, col_of, total):
    count = int64(0)
    for e in range(cuda.grid(1), row_idx.size, cuda.gridsize(1)):
        i, j = row_idx[e], col_of[e]
        count += common(row_idx, e + 1, col_ptr[j + 1], col_ptr[i], col_ptr[i + 1])
    sums = cuda.shared.array(0, int64)
    sums[cuda.threadIdx.x] = count
    if cuda.threadIdx.x == 0:
        for thread in range(1, cuda.blockDim.x):
            count += sums[thread]
        cuda.atomic.add(total, 0, count)
