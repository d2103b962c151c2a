"""`report_auto`: our choice between the report's two kernels, by the mean number of nonzeros in a column.

Below the threshold a block's k columns are too short to be worth the barriers and the search: `naive` counts. From the
threshold on `column_block` does, with enough columns to give every thread of a block a nonzero: a single one if columns
have more nonzeros than a block has threads.

The report says that there may be such a threshold, around 7, and has no method that applies it. Nor does it give a rule
for the columns of a block: it took 27 on three graphs and 1 on the fourth, of which it names the longest column. With
`published` both kernels are the report's, and `report_columns` is a rule that gives its four numbers.
"""

from tcgpu.built_in import MAX_TILE, planner
from tcgpu.kernels.report import column_block, naive


@planner("report_auto")
def plan(graph, *, threshold, published):
    if graph.nonzeros_per_column < threshold:
        return naive.plan(graph, published=published)
    if published:
        return column_block.plan(graph, columns=report_columns(graph.max_column), published=True)
    return column_block.plan(graph, columns=max(1, round(column_block.THREADS * graph.n / max(1, graph.m))))


def report_columns(longest):
    """27 if that many columns of the longest one's length fit the 48 KiB that every GPU gives a block, else 1."""
    columns = column_block.plan.knobs["columns"]
    return columns if columns * longest <= MAX_TILE else 1
