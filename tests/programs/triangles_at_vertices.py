"""Find the vertex that is in the most triangles."""

import numpy as np

import tcgpu

graph = tcgpu.generate.barabasi_albert(200, 4, seed=2)
at_each = tcgpu.triangles(graph, engine="cpu")
busiest = int(np.argmax(at_each))
print(busiest, at_each[busiest])  # prints 0 97
print(int(at_each.sum()) == 3 * tcgpu.count(graph))  # prints True
