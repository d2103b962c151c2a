"""List triangles, a chunk of rows at a time."""

import tcgpu

graph = tcgpu.generate.clique(5)
listed: list[tuple[int, ...]] = []
for chunk in tcgpu.list_triangles(graph, chunk=4):
    assert len(chunk) <= 4
    listed.extend(tuple(row) for row in chunk.tolist())
print(len(listed), sorted(listed)[0])  # prints 10 (0, 1, 2)
