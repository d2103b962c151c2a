"""Find trusses: the part of a graph whose edges are in many triangles."""

import tcgpu

u = [0, 0, 0, 1, 1, 2, 3, 4]
v = [1, 2, 3, 2, 3, 3, 4, 5]
graph = tcgpu.Graph.from_edges(u, v, labels=["a", "b", "c", "d", "e", "f"])
inner = tcgpu.k_truss(graph, 4)
print(inner.n, inner.m, inner.labels)  # prints 4 6 ['a', 'b', 'c', 'd']
print(tcgpu.truss_numbers(graph).max())  # prints 4
