"""Weigh triangles by their edges."""

import networkx as nx

import tcgpu

u, v, weights = [0, 1, 2, 2], [1, 2, 0, 3], [1.0, 8.0, 8.0, 4.0]
print(tcgpu.clustering((u, v), weights=weights).round(3).tolist())  # prints [0.5, 0.5, 0.167, 0.0]
graph = nx.Graph()
graph.add_weighted_edges_from(zip(u, v, weights, strict=True))
print(tcgpu.average_clustering(graph, weights="weight").__round__(4))  # prints 0.2917
