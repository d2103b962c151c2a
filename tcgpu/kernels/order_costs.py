"""Choose how `adaptive` counts a graph, by what each way costs: OrderCosts, from sums over the graph's edges.

There are three ways. In natural order, local columns are rows of bits, the others are merged. In degree order, all are
merged, or there are classes of columns: hubs, windows, tables. `edge_sums` computes the sums. Each of them has a cost
in nanoseconds, fitted to the times of an H200 on graphs of many kinds (`benchmarks/orders.py`).
"""

import math
from dataclasses import dataclass
from functools import cached_property

# The classes of columns that `adaptive` has by default
MAY_SEARCH = 128  # rows of the longest column from which on any are looked up
WORDS = (32, 64, 128)  # of 64 vertices, that a local column may reach over

# The sums
NATURAL = (
    "merged",  # rows to merge
    "idle",  # rows that lanes wait for while another lane of their warp merges
    "searched",  # rows to look up, times the steps of a search
    "distant",  # edges between vertices whose columns are far apart
    # of columns with at least `short` rows that reach over at most 32, 64 or 128 words of 64 vertices
    "merged 32", "searched 32", "words 32",
    "merged 64", "searched 64", "words 64",
    "merged 128", "searched 128", "words 128",
)  # fmt: skip
DEGREE = (
    "pairs",  # of rows in columns that are not heavy, each twice
    "heavy pairs",  # of rows in heavy columns, the first of them no hub
    "hub rows",  # rows of heavy columns that are hubs
    "merged by degree", "idle by degree", "searched by degree",  # as in natural order
)  # fmt: skip
# The most rows that a thread merges for an edge that is added up: in a column that is not local, in one of those that
# reach over 32, 64, 128 words, and in degree order.
LONGEST = ("longest", "longest 32", "longest 64", "longest 128", "longest by degree")

# Columns are short if the longest has SHORT_ROWS rows at most, or SHORT_NEARBY_ROWS if most edges are nearby. A thread
# merges each of them in turn, if there are more than MANY_EDGES edges.
SHORT_ROWS, SHORT_NEARBY_ROWS, MANY_EDGES = 6, 12, 1 << 17
LITTLE, LITTLE_NS = 1.05, 1_000  # natural order is chosen if it takes LITTLE times as long and LITTLE_NS more, or less
LONGEST_SEARCH_NS = 0.025  # more than an edge costs in natural order for each row of the longest column

# Nanoseconds for each of a sum, on an H200. "merged", "idle" and "searched" are those of columns that are not local;
# "merged nearby" instead if most edges are near, "merged by column" if columns are short. "begin", "searches" and
# "local begin" are taken once: always, if there may be searches, if there are rows of bits.
NATURAL_NS = {
    "merged": 0.0017, "merged nearby": 0.00115, "merged by column": 6.82e-4, "idle": 2.6e-4, "searched": 0.00132,
    "distant": 0.0087, "nonzeros": 0, "longest": 96.4, "begin": 5_210, "searches": 5_430, "local begin": 9_100,
    "words": 0.0329, "local nonzeros": 0.0177, "local words": 5.19e-4,
}  # fmt: skip
MERGED_NS = {
    "merged": 0.00148, "idle": 3.75e-4, "searched": 8.84e-4, "nonzeros": 8.04e-4, "longest": 92.9, "begin": 4_330,
}  # fmt: skip
DEGREE_NS = {
    "pairs": 0.00101, "heavy pairs": 1.7e-4, "hub rows": 0.0861, "nonzeros": 0.0526, "longest": 0, "begin": 46_100,
}  # fmt: skip

# The same for the triangles of each edge or vertex. "merged by column" was fitted before a thread merged a column: it
# may now be half as large, so that natural order is fastest a little more often than it is chosen.
NATURAL_TALLY_NS = {
    "merged": 0.00205, "merged nearby": 0.0016, "merged by column": 0.00216, "idle": 0.00214, "searched": 0.00131,
    "distant": 0.00948, "nonzeros": 0.00243, "longest": 208, "begin": 4_440, "searches": 6_510, "local begin": 17_800,
    "words": 0.0807, "local nonzeros": 0.00187, "local words": 0.0405,
}  # fmt: skip
MERGED_TALLY_NS = {
    "merged": 0.00291, "idle": 9.17e-4, "searched": 0.00274, "nonzeros": 0.00829, "longest": 218, "begin": 4_360,
}  # fmt: skip
DEGREE_TALLY_NS = {
    "pairs": 0.00342, "heavy pairs": 0.00116, "hub rows": 0.124, "nonzeros": 0.0356, "longest": 105, "begin": 65_200,
}  # fmt: skip


@dataclass(frozen=True)
class OrderCosts:
    """The sums of a graph, and what a count of it takes in each way: `*_ns` are nanoseconds."""

    n: int
    m: int
    max_column: int  # rows of the longest column in natural order
    sums: dict  # of NATURAL, DEGREE and LONGEST
    max_degree: int = 0  # neighbours of the vertex that has most
    sampled: bool = False  # whether the lengths of columns in degree order are estimated from a sample

    @property
    def nearby(self):
        """Whether most edges are between vertices whose columns are close to each other."""
        return 8 * self.sums["distant"] <= self.m

    @property
    def short_columns(self):
        """Whether the columns in natural order are so short that a thread merges each of them in turn."""
        return self.m > MANY_EDGES and self.max_column <= (SHORT_NEARBY_ROWS if self.nearby else SHORT_ROWS)

    def natural_counts(self, words=0):
        """How often each of NATURAL_NS is taken, if local columns reach over at most `words` words."""
        widths, names = [width for width in WORDS if width <= words], ("merged", "searched", "words")
        local = {name: sum(self.sums[f"{name} {width}"] for width in widths) for name in names}
        merged, searched = self.sums["merged"] - local["merged"], self.sums["searched"] - local["searched"]
        others = ["longest", *(f"longest {width}" for width in WORDS if width > words)]
        how = "merged by column" if self.short_columns and not words else "merged nearby" if self.nearby else "merged"
        return dict.fromkeys(("merged", "merged nearby", "merged by column"), 0) | {
            how: merged,
            "idle": self.sums["idle"] * merged / max(1, self.sums["merged"]),
            "searched": searched,
            "distant": self.sums["distant"],
            "nonzeros": self.m,
            "longest": max(self.sums[name] for name in others),
            "begin": 1,
            "searches": self.max_column > MAY_SEARCH,
            "local begin": words > 0,
            "words": local["words"],
            "local nonzeros": self.m if words else 0,
            "local words": self.n * words,
        }

    def merged_counts(self):
        """How often each of MERGED_NS is taken."""
        sums = {name: self.sums[f"{name} by degree"] for name in ("merged", "idle", "searched", "longest")}
        return sums | {"nonzeros": self.m, "begin": 1}

    def degree_counts(self):
        """How often each of DEGREE_NS is taken."""
        sums = {name: self.sums[name] for name in ("pairs", "heavy pairs", "hub rows")}
        return sums | {"nonzeros": self.m, "longest": self.sums["longest by degree"], "begin": 1}

    @cached_property
    def natural_ns(self):
        """Nanoseconds of a count in natural order, by the most words that local columns reach over: of WORDS, or 0.
        Without those of WORDS that no column reaches over."""
        reached = [width for width in WORDS if self.sums[f"words {width}"]]
        return {words: _total(NATURAL_NS, self.natural_counts(words)) for words in (0, *reached)}

    @cached_property
    def merged_ns(self):
        """Nanoseconds of a count in degree order that merges all columns."""
        return _total(MERGED_NS, self.merged_counts())

    @cached_property
    def degree_ns(self):
        """Nanoseconds of a count in degree order with classes of columns."""
        return _total(DEGREE_NS, self.degree_counts())

    def best_words(self, room=math.inf):
        """The `words` of the fastest count in natural order whose rows of bits take at most `room` bytes."""
        return min((words for words in self.natural_ns if 8 * words * self.n <= room), key=self.natural_ns.get)

    def best(self):
        """The order of the fastest count; the natural one if that takes little longer: vertices keep their numbers.

        It does not depend on how much memory is free: workers that count one share each have to choose alike.
        """
        by_degree = min(self.merged_ns, self.degree_ns)
        return "natural" if min(self.natural_ns.values()) <= LITTLE * by_degree + LITTLE_NS else "degree"

    def may_miss(self, stride):
        """Whether a few edges that are not among one in `stride` might cost a tenth of a count in natural order."""
        return 10 * stride * LONGEST_SEARCH_NS * self.max_column > min(self.natural_ns.values())

    def merges(self):
        """Whether a count in degree order is faster if it merges all columns."""
        return self.merged_ns <= self.degree_ns

    def best_for_tallies(self):
        """The order of the fastest count of each edge's or vertex's triangles."""
        natural = _total(NATURAL_TALLY_NS, self.natural_counts(self.best_words()))
        return "natural" if natural <= min(self._tallies_by_degree()) else "degree"

    def merges_for_tallies(self):
        """Whether the same in degree order is faster if it merges all columns."""
        merged, classes = self._tallies_by_degree()
        return merged <= classes

    def _tallies_by_degree(self):
        return _total(MERGED_TALLY_NS, self.merged_counts()), _total(DEGREE_TALLY_NS, self.degree_counts())


def _total(nanoseconds, counts):
    return sum(nanoseconds[name] * count for name, count in counts.items())
