"""Count cliques, and connected and independent sets of vertices."""

import tcgpu

graph = tcgpu.generate.mesh(4, 4)
print(tcgpu.cliques(graph, 3), tcgpu.cliques(graph, 4, engine="cpu"))  # prints 18 0
print(tcgpu.count_subgraphs(graph, 3, "connected"))  # prints 80
print(tcgpu.count_subgraphs(graph, 3, kind="independent"))  # prints 196
