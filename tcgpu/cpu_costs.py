"""Every number of the native engine that says which of two ways is faster, or what something costs.

They were fitted to one machine, and change no result. Costs are in look-ups: 1 is the time to test one row in a bitmap,
.4 ns of processor time on that machine. The record `data/measured/families-amd-epyc.csv` has what the
choices lead to on the graphs of `benchmarks/kinds.py`; `benchmarks/families.py` measures it again.
"""

MANY = 50_000  # elements: for fewer, a second thread does not pay

# Sorting (`cpu.cleaning`): a bucket is sorted by insertion if no column has more rows than this, and the mean none over
INSERTED_ROWS, INSERTED_MEAN = 24, 4

# The loops (`cpu.finding`)
FEW_ROWS = 24  # if u's column has no more rows than this, they are compared
MUCH_LONGER = 48  # v's column is searched if it is longer than this number of times the rest of u's
LATER_ROWS = 64  # an edge is counted later if v's column has this many rows, and u's has no more left
LATER_EDGES = 1 << 23  # of fewer edges, no edge is counted later: caches have most columns
FEW_HUBS = 12  # for a column with no more hubs than this, single bits are tested instead of ANDing rows
CLOSE = 1 << 14  # no prefetch pays if no more nonzeros than this are between most edges and v's column

# Designs (`cpu.choose`)
SHORT_COLUMN = 32  # "short" counts graphs without longer columns, unless "words" counts them,
SHORTEST = 8  # and all graphs without columns over SHORTEST
# "words" counts graphs with
WORDS_COLUMN = 12  # at least this many nonzeros per column, not all of them short,
WORDS_PER_NONZERO = 0.5  # and at most this many non-zero words per nonzero;
DENSE_WORDS = 1 / 8, 1 / 64  # or no hubs, at most this many, and this many for each row in the mean column of v;
NEIGHBOURS = 1 << 18  # and at most this many nonzeros between most edges (u, v) and the end of v's column,
CACHED_WORDS = 1 << 17  # or no hubs and at most this many words; not in parts
# "hubs" has hubs if
LONG_COLUMN = 64  # some column has at least this many rows,
EDGES_PER_HUB = 16  # each hub is the v of at least this many edges,
HUBS_SAVE = 4  # and together they save at least this many look-ups for each edge of the graph

# What edges cost
EDGE = 8  # an edge, besides the following
COMPARISON = 2  # of a row with LANES others
SEARCH = 18  # of a row in a column, for each doubling of the column's length
LOOKUP_EDGE = 28  # an edge where rows are looked up, besides the look-ups
LATER_EDGE = 60  # the same if it is counted later
FAR_EDGE = 18  # an edge (u, v) if the columns of u and v are far apart; half of it where rows are looked up meanwhile
DISTANT = 1 << 17  # nonzeros between columns that are far apart
HOT = 1 << 12  # columns of vertices with more neighbours than one in so many edges stay in the caches
HUB_EDGE = 12  # an edge to a hub, besides the words of its row
HUB_WORD = 0.7  # a word of a hub's row, if most of the row is ANDed
AND_WORDS = 4  # an AND and popcount of two words of hubs' rows
PART_EDGE, BITMAP_EDGE = 16, 40  # an edge, besides its look-ups, in a count in parts; the same if it needs u's bitmap
SHORT = 0.7  # a count of a graph that has only short columns, in counts of others
WORDS_EDGE, WORD = 12, 1  # an edge in a graph of packed words, and each word

# Tallies
TALLIED = 1.3  # a tally at edges, in counts without hubs,
TRIANGLE = 3, 12  # and each triangle of it, at vertices and at edges
PACKED_EDGE = 16  # an edge in two neighbourhoods that are packed into words
WEDGES_EDGE, WEDGE = 70, 5  # an edge in a tally of wedges, and each wedge
DENSE = 3  # a look-up in the costs of dense vertices,
DENSE_EDGE, DENSE_WORD = 4, 1 / 6  # and there an edge, and the AND and popcount of two words

# Orders (`cpu.orders`)
SORTED_EDGE, SORTED_VERTEX = 25, 20  # an edge and a vertex when a graph is sorted
FOUND_EDGE, MOVED = 80, 10  # an edge that is found in another order; moving a number to its place in that
SKEWED = 1.4  # degree order may pay if some vertex has this number of times the mean number of neighbours
# Raw edges are sorted by degree at once if the three quantities of `sampled_order` exceed these
RELATIVE_DISTANCE, DEGREE_SKEW, LOOKUPS_PER_EDGE = 1 / 64, 2.5, 4

# Trusses
SHRINK = 0.5  # the edges are renumbered when no more than this fraction is left
FEW_WEAK = 0.3  # for a smaller fraction of weak edges, breaking their triangles is faster than counting all supports
RECOUNT = 20  # with more look-ups than these for each remaining edge, the supports of those are counted again
LARGE_ROUND = 100_000  # a round with at least this many look-ups is shared by all threads
SOME_TRIANGLES = 64  # the mean support from which on a graph may be dense,
WORTH = 16  # and is if an edge is in n / WORTH triangles on average: breaking these takes longer

# Subgraphs and sums
MANY_BITS = 4  # a hub's row of bits is used as it is if at least one in MANY_BITS is set
FEW_WORDS = 4  # words: so few or fewer are intersected one by one
FEW_SUMS = 1 << 12  # every worker has an array of its own, of any size, for no more sums than these

# Other work of the host
LARGE_COPY = 1 << 22  # bytes of an array from which on several threads copy it faster to or from a GPU
MIN_SHARE = 1 / 50  # for a smaller share of the nodes, their neighbourhoods are less work than the graph

# The NetworkX backend: microseconds for an edge of a graph with five a node, by NetworkX's functions and by those here
NETWORKX_US = {
    "all_triangles": 1, "average_clustering": 5, "clustering": 5, "generalized_degree": 7, "k_truss": 8,
    "square_clustering": 12, "transitivity": 5, "triadic_census": 50, "triangles": 1.5,
}  # fmt: skip
EDGE_US = dict.fromkeys(NETWORKX_US, 0.3) | {"all_triangles": 0.8, "generalized_degree": 1, "k_truss": 2}
CONVERTED_US, WEIGHED = 0.4, 3  # to convert an edge; with a weight, it and NetworkX's functions take this times as long
CALL_US, IMPORT_US, NUMBA_US = 800, 150_000, 1_500_000  # a call; what a first one imports, without Numba and with it
