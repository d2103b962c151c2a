"""Make graphs of several kinds."""

import tcgpu

graph = tcgpu.generate.rmat(10, seed=1)
print(graph.m, graph.name)  # prints 10523 rmat(scale=10, seed=1)
print(max(tcgpu.generate.delaunay(500).degrees) > 5)  # prints True
for made in (tcgpu.generate.clique(5), tcgpu.generate.grid(3, 3), tcgpu.generate.road(9, 9, kept=1.0)):
    print(made.n, tcgpu.count(made))
# prints 5 10
# prints 9 0
# prints 81 18
u, v, n = tcgpu.generate.edges("random", 10, 20)
print(u.size, v.size, n)  # prints 20 20 10
