"""Add up the products of the weights of each triangle's edges."""

import tcgpu


def product(u: int, v: int, w: int, uv: float, uw: float, vw: float) -> float:
    """The product of the weights of a triangle's edges."""
    return uv * uw * vw


graph = tcgpu.Graph.from_edges([0, 1, 2], [1, 2, 0])
print(tcgpu.reduce_triangles(graph, product, edge_values=[1.0, 2.0, 3.0]))  # prints 6.0
print(tcgpu.reduce_triangles(graph, lambda u, v, w: 1, per="vertex", progress=False))  # prints [1 1 1]
