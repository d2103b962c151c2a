"""Count the subgraphs of four vertices, of a graph and at each edge."""

import tcgpu

graph = tcgpu.generate.clique(5)
print(tcgpu.motifs(graph)["clique"])  # prints 5
print(tcgpu.motifs([(0, 1), (1, 2), (2, 3)], connected=False)["path"])  # prints 1
for name, count in tcgpu.motifs(graph, per="edge").items():
    if count.any():
        print(name, count.shape)
# prints triangle (10,)
# prints clique (10,)
