"""`report_auto`: the report's choice between its two kernels, by the mean number of nonzeros in a column.

Below the threshold a block's k columns are too short to be worth the barriers and the search: `naive`. From it on,
`column_block`, with as many columns as it takes to give every thread of a block a nonzero; on columns longer than a
block, that is one at a time.
"""

from tcgpu.kernels import check_nonzeros
from tcgpu.kernels.report import column_block, naive

THRESHOLD = 7.0  # where the report's two kernels took the same time


def plan(graph, *, threshold=THRESHOLD):
    if graph.nonzeros_per_column < check_nonzeros("threshold", threshold):
        return naive.plan(graph)
    return column_block.plan(graph, columns=max(1, round(column_block.THREADS * graph.n / max(1, graph.m))))
