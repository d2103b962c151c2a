"""`report_auto`: the report's choice between its two kernels, by the mean number of nonzeros in a column.

Below the threshold a block's k columns are too short to be worth the barriers and the search: `naive` counts. From the
threshold on `column_block` does, with enough columns to give every thread of a block a nonzero: a single one if columns
have more nonzeros than a block has threads.
"""

from tcgpu.declarations import Knob
from tcgpu.kernels.method import method
from tcgpu.kernels.report import column_block, naive

THRESHOLD = 7.0  # where the report's two kernels took the same time


@method(
    "report_auto",
    source="report",
    summary="naive for short columns, column_block from a threshold of nonzeros per column on",
    threshold=Knob(THRESHOLD, "nonzeros per column that are for column_block", real=True),
)
def plan(graph, *, threshold):
    if graph.nonzeros_per_column < threshold:
        return naive.plan(graph)
    return column_block.plan(graph, columns=max(1, round(column_block.THREADS * graph.n / max(1, graph.m))))
