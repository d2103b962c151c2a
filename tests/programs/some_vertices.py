"""Look at some vertices only: their triangles, and their clustering."""

import tcgpu

graph = tcgpu.generate.watts_strogatz(500, 6, seed=2)
nodes = [7, 3]
at_each = tcgpu.triangles(graph, nodes=nodes)
print(at_each.tolist() == tcgpu.triangles(graph)[nodes].tolist())  # prints True
print(sum(len(rows) for rows in tcgpu.list_triangles(graph, nodes=7)) == at_each[0])  # prints True
print(tcgpu.clustering([(0, 1), (1, 2), (2, 0), (2, 3)], nodes=2).round(2))  # prints [0.33]
