"""Take a graph from NetworkX, and give one back."""

import networkx as nx

import tcgpu

karate = nx.karate_club_graph()
print(tcgpu.count(karate))  # prints 45
graph = tcgpu.Graph.from_networkx(karate)
print(graph.n, graph.m, graph.to_networkx().number_of_edges())  # prints 34 78 78
