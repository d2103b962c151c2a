"""Count the triangles of a list of pairs."""

import tcgpu

pairs = [(0, 1), (1, 2), (2, 0), (2, 3)]
triangles: int = tcgpu.count(pairs)
print(triangles)  # prints 1
print(tcgpu.is_triangle_free(pairs))  # prints False
