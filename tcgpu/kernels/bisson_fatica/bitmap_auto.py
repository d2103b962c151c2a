"""`bitmap_auto`: the bitmap kernel that Bisson & Fatica's Algorithm 5 chooses for a graph.

A thread per column if no column is longer than `longest_thread`; else a warp if the mean length is below `mean_warp`;
else a block, with its bitmap in shared memory for fewer than `vertices_shared` vertices, else in global memory. The
defaults of the knobs are the paper's constants, found on a Titan X.
"""

from tcgpu.built_in import planner
from tcgpu.kernels.bisson_fatica import bitmap_block_global, bitmap_block_shared, bitmap_thread, bitmap_warp
from tcgpu.kernels.device_graph import prepare

MODULES = {
    module.plan.name: module for module in (bitmap_thread, bitmap_warp, bitmap_block_shared, bitmap_block_global)
}


def choice(vertices, edges, longest, *, longest_thread=12, mean_warp=8.0, vertices_shared=128 << 10):
    """The name of the method for a graph of this size whose longest column has `longest` rows."""
    if longest <= longest_thread:
        return "bitmap_thread"
    if edges < mean_warp * vertices:
        return "bitmap_warp"
    return "bitmap_block_shared" if vertices < vertices_shared else "bitmap_block_global"


@planner("bitmap_auto", prepare)
def plan(graph, *, longest_thread, mean_warp, vertices_shared, published):
    fits = min(vertices_shared, bitmap_block_shared.most_vertices() + 1)
    constants = {"longest_thread": longest_thread, "mean_warp": mean_warp, "vertices_shared": fits}
    chosen = MODULES[choice(graph.n, graph.m, graph.max_column, **constants)].plan
    return chosen(graph, **{"published": published} if "published" in chosen.knobs else {})


@plan.for_edges
def support_plan(graph, published=False, **constants):
    constants = {name: value for name, value in plan.settings(constants).items() if name != "published"}
    constants["vertices_shared"] = min(constants["vertices_shared"], bitmap_block_shared.most_for_support() + 1)
    return MODULES[choice(graph.n, graph.m, graph.max_column, **constants)].support_plan(graph, published)
