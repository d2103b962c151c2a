"""Find the edges that are in the most triangles."""

import tcgpu

graph = tcgpu.generate.clique(6)
triangles = tcgpu.support(graph)
rows, columns = graph.edges()
best = triangles.argmax()
print(rows[best], columns[best], triangles[best])  # prints 1 0 4
print(tcgpu.support(graph, order="degree", progress=False).tolist() == triangles.tolist())  # prints True
