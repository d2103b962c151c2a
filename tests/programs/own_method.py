"""Count by a kernel of one's own."""

from typing import Any

import tcgpu
from tcgpu import cuda


@tcgpu.method
def mine(col_ptr: Any, row_idx: Any, total: Any) -> None:
    """Each thread takes a column and merges it with those of its rows."""
    for j in range(cuda.grid(1), col_ptr.size - 1, cuda.gridsize(1)):
        for k in range(col_ptr[j], col_ptr[j + 1]):
            for p in range(col_ptr[j], col_ptr[j + 1]):
                for q in range(col_ptr[row_idx[k]], col_ptr[row_idx[k] + 1]):
                    if row_idx[p] == row_idx[q]:
                        cuda.atomic.add(total, 0, 1)


print(tcgpu.count(tcgpu.generate.clique(5), mine, engine="sim"))  # prints 10
