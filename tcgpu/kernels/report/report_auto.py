"""`report_auto`: the report's choice between its two kernels, by the mean number of nonzeros in a column.

Below the threshold a block's k columns are too short to be worth the barriers and the search: `naive` counts. From the
threshold on `column_block` does, with enough columns to give every thread of a block a nonzero: a single one if columns
have more nonzeros than a block has threads.
"""

from tcgpu.built_in import planner
from tcgpu.kernels.report import column_block, naive


@planner("report_auto")
def plan(graph, *, threshold):
    if graph.nonzeros_per_column < threshold:
        return naive.plan(graph)
    return column_block.plan(graph, columns=max(1, round(column_block.THREADS * graph.n / max(1, graph.m))))
