"""Count the triangles of edge arrays, and look at the graph that they make."""

import numpy as np

import tcgpu

u = np.array([0, 1, 2, 2, 2])
v = np.array([1, 2, 0, 0, 2])
graph = tcgpu.Graph.from_edges(u, v, name="mine")
print(graph.n, graph.m, graph.cleaned)  # prints 3 3 dropped 1 loop, 1 duplicate
print(tcgpu.count((u, v)), tcgpu.count(graph))  # prints 1 1
