"""Compute clustering coefficients: of each vertex, their mean, and of the whole graph."""

import tcgpu

graph = [(0, 1), (1, 2), (2, 0), (2, 3)]
print(tcgpu.clustering(graph).round(2).tolist())  # prints [1.0, 1.0, 0.33, 0.0]
print(round(tcgpu.average_clustering(graph, method="cpu"), 3))  # prints 0.583
print(tcgpu.transitivity(graph, engine="cpu"))  # prints 0.6
