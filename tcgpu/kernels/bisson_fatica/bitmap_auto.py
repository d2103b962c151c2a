"""`bitmap_auto`: which of the four bitmap kernels a graph is for, by Bisson & Fatica's Algorithm 5.

A thread a column where no column is longer than `longest_thread`; else a warp where the mean is below `mean_warp`; else
a block, with its bitmap in shared memory below `vertices_shared` vertices, in global memory from there on. The knobs'
defaults are the paper's constants, found on a Titan X.
"""

from tcgpu.declarations import Knob, Method
from tcgpu.kernels.bisson_fatica import bitmap_block_global, bitmap_block_shared, bitmap_thread, bitmap_warp
from tcgpu.kernels.device_graph import prepare

__all__ = ["plan", "prepare", "support_plan"]

PAPER = {"longest_thread": 12, "mean_warp": 8.0, "vertices_shared": 128 << 10}

METHOD = Method(
    name="bitmap_auto",
    source="Bisson & Fatica",
    summary="one of these four, by the mean and the longest column and the number of vertices",
    module=__name__,
    declared=(
        Knob("longest_thread", PAPER["longest_thread"], "longest column that bitmap_thread is for"),
        Knob("mean_warp", PAPER["mean_warp"], "mean column up to which it is bitmap_warp", real=True),
        Knob("vertices_shared", PAPER["vertices_shared"], "vertices up to which bits lie in shared memory"),
    ),
)


def choice(vertices, edges, longest, *, longest_thread=12, mean_warp=8.0, vertices_shared=128 << 10):
    """The name of the method for a graph of this size whose longest column is as long as that."""
    if longest <= longest_thread:
        return "bitmap_thread"
    if edges < mean_warp * vertices:
        return "bitmap_warp"
    return "bitmap_block_shared" if vertices < vertices_shared else "bitmap_block_global"


@METHOD.planner
def plan(graph, *, longest_thread, mean_warp, vertices_shared):
    fits = min(vertices_shared, bitmap_block_shared.most_vertices() + 1)
    return chosen(graph, longest_thread, mean_warp, fits).plan(graph)


@METHOD.planner
def support_plan(graph, *, longest_thread, mean_warp, vertices_shared):
    """Each edge's triangles by the one of the four that the paper's heuristic takes for them, too."""
    return chosen(graph, longest_thread, mean_warp, vertices_shared).support_plan(graph)


def chosen(graph, longest_thread, mean_warp, vertices_shared):
    """The one of FOUR that a graph is for."""
    knobs = {"longest_thread": longest_thread, "mean_warp": mean_warp, "vertices_shared": vertices_shared}
    name = choice(graph.n, graph.m, graph.max_column, **knobs)
    return {module.__name__.rpartition(".")[2]: module for module in FOUR}[name]


FOUR = (bitmap_thread, bitmap_warp, bitmap_block_shared, bitmap_block_global)
