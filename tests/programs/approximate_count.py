"""Estimate the number of triangles, and see how far the estimate may be off."""

import tcgpu

graph = tcgpu.generate.watts_strogatz(20_000, 30, seed=1)
triangles = tcgpu.count(graph, approximate=0.05, seed=7)
exact: int = tcgpu.count(graph)
print(triangles.exact, triangles.confidence, triangles.low <= exact <= triangles.high)  # prints False 0.95 True
print(abs(triangles - exact) < 0.05 * exact, triangles.samples < graph.m)  # prints True True
small = tcgpu.count(tcgpu.generate.clique(5), approximate=0.05, order="degree")
print(small, small.exact, repr(small))  # prints 10 True <10 triangles: exact>


def found(error: float | None) -> int:
    """The triangles of the graph, or about that many."""
    return tcgpu.count(graph, approximate=error) if error else tcgpu.count(graph)


print(found(None) == exact, found(0.01) != found(0.02))  # prints True True
