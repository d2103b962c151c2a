"""Let NetworkX's own functions run in tcgpu."""

import networkx as nx

graph = nx.gnp_random_graph(60, 0.3, seed=4)
fast = nx.triangles(graph, backend="tcgpu")
print(fast == nx.triangles(graph, backend="networkx"))  # prints True
square = nx.square_clustering(nx.cycle_graph(4), backend="tcgpu")
print(square)  # prints {0: 1.0, 1: 1.0, 2: 1.0, 3: 1.0}
