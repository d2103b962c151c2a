"""Choose how `adaptive` counts a graph, by what each way costs: OrderCosts, from sums over the graph's edges.

There are five ways. In natural order, local columns are rows of bits, the others are merged. In degree order, all are
merged, rows are looked up (`look_ups`), or there are classes of columns: hubs, windows, tables. In any order, all
columns are rows of bits, if there are few (`dense`). `edge_sums` computes the sums. Each of them has a cost in
nanoseconds, fitted to the times of an H200 on graphs of many kinds (`benchmarks/orders.py`).
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
    "looked up",  # rows of an edge's shorter column that are looked up in the longer,
    "far steps",  # and the steps of a search for each of them, if that is a column of none of the last vertices
)  # fmt: skip
# The most rows that a thread merges for an edge that is added up, or steps that its searches take, which the lanes of
# its warp do in turn: in a column that is not local, in one of those that reach over 32, 64, 128 words, and in degree
# order.
LONGEST = ("longest", "longest 32", "longest 64", "longest 128", "longest by degree")

# Columns are short if the longest has SHORT_ROWS rows at most, or SHORT_NEARBY_ROWS if most edges are nearby. A thread
# merges each of them in turn, if there are more than MANY_EDGES edges.
SHORT_ROWS, SHORT_NEARBY_ROWS, MANY_EDGES = 6, 12, 1 << 17
LITTLE, LITTLE_NS = 1.05, 1_000  # natural order is chosen if it takes LITTLE times as long and LITTLE_NS more, or less
SURE = 1.5  # times as long as degree order: where natural order takes more by estimated degrees, it is not the faster
LONGEST_SEARCH_NS = 20  # more than an edge takes in natural order for each row of the longest column

# Nanoseconds for each of a sum, on an H200. "merged", "idle" and "searched" are those of columns that are not local;
# "merged nearby" instead if most edges are near or columns short. "begin" and "local begin" are taken once: always, and
# if there are rows of bits.
NATURAL_NS = {
    "merged": 0.00175, "merged nearby": 0.000965, "idle": 0.000099, "searched": 0.000798, "distant": 0.0102,
    "longest": 53.9, "begin": 5_380, "local begin": 17_400, "words": 0.0211, "local words": 0.00447,
}  # fmt: skip
MERGED_NS = {
    "merged": 0.00109, "idle": 0.000578, "searched": NATURAL_NS["searched"], "longest": 77.8, "begin": 3_860,
}  # fmt: skip
DEGREE_NS = {"all pairs": 0.0002, "hub rows": 0.0355, "nonzeros": 0.0468, "begin": 50_700}
LOOKED_NS = {"looked up": 0.00161, "far steps": 0.0034, "nonzeros": 0.00372, "begin": 8_100}
TILES_NS = {"cubes": 1.66e-06, "squares": 0.0054}  # of the number of vertices; besides the "begin" of natural order

# The same for the triangles of each edge or vertex.
NATURAL_TALLY_NS = {
    "merged": 0.00263, "merged nearby": 0.00197, "idle": 0.00315, "searched": 0.00155,
    "longest": 124, "begin": 4_820, "local begin": 28_000, "words": 0.0403,
    "local nonzeros": 0.0697, "local words": 0.00973,
}  # fmt: skip
MERGED_TALLY_NS = {"merged": 0.00482, "idle": 0.00155, "searched": 0.00289, "longest": 156, "begin": 3_930}
DEGREE_TALLY_NS = {"pairs": 0.00223, "heavy pairs": 0.00165, "nonzeros": 0.0936, "begin": 31_000}


@dataclass(frozen=True)
class OrderCosts:
    """The sums of a graph, and what a count of it takes in each way: `*_ns` are nanoseconds."""

    n: int
    m: int
    max_column: int  # rows of the longest column in natural order
    sums: dict  # of NATURAL, DEGREE and LONGEST
    max_degree: int = 0  # neighbours of the vertex that has most
    sampled: bool = False  # whether the lengths of columns in degree order are estimated from a sample
    no_triangles: bool = False  # whether it is known that there are none: no edge has rows to look up

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
        nearby = self.nearby or self.short_columns and not words
        return {
            "merged": 0 if nearby else merged,
            "merged nearby": merged if nearby else 0,
            "idle": self.sums["idle"] * merged / max(1, self.sums["merged"]),
            "searched": searched,
            "distant": self.sums["distant"],
            "longest": max(self.sums[name] for name in others),
            "begin": 1,
            "local begin": words > 0,
            "words": local["words"],
            "local nonzeros": self.m if words else 0,
            "local words": self.n * words,
        }

    def merged_counts(self):
        """How often each of MERGED_NS is taken."""
        names = "merged", "idle", "searched", "longest"
        return {name: self.sums[f"{name} by degree"] for name in names} | {"begin": 1}

    def looked_counts(self):
        """How often each of LOOKED_NS is taken."""
        sums = {name: self.sums[name] for name in ("looked up", "far steps")}
        return sums | {"nonzeros": self.m, "begin": 1}

    def degree_counts(self):
        """How often each of DEGREE_NS is taken."""
        sums = {name: self.sums[name] for name in ("pairs", "heavy pairs", "hub rows")}
        return sums | {"all pairs": sums["pairs"] + sums["heavy pairs"], "nonzeros": self.m, "begin": 1}

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
    def looked_ns(self):
        """Nanoseconds of a count in degree order that looks up rows."""
        return _total(LOOKED_NS, self.looked_counts())

    @cached_property
    def degree_ns(self):
        """Nanoseconds of a count in degree order with classes of columns."""
        return _total(DEGREE_NS, self.degree_counts())

    def suits_tiles(self):
        """Whether a count is fastest if all columns are rows of bits."""
        tiles_ns = NATURAL_NS["begin"] + _total(TILES_NS, {"cubes": self.n**3, "squares": self.n**2})
        return tiles_ns < min(*self.natural_ns.values(), self.merged_ns, self.looked_ns, self.degree_ns)

    def best_words(self, room=math.inf):
        """The `words` of the fastest count in natural order whose rows of bits take at most `room` bytes."""
        return min((words for words in self.natural_ns if 8 * words * self.n <= room), key=self.natural_ns.get)

    def best(self, little=LITTLE):
        """The order of the fastest count; the natural one if that takes little longer: vertices keep their numbers.

        It does not depend on how much memory is free: workers that count one share each have to choose alike.
        """
        by_degree = min(self.merged_ns, self.looked_ns, self.degree_ns)
        return "natural" if min(self.natural_ns.values()) <= little * by_degree + LITTLE_NS else "degree"

    def may_miss(self):
        """Whether an edge that is not in the sample might take a tenth of a count in natural order."""
        return 10 * LONGEST_SEARCH_NS * self.max_column > min(self.natural_ns.values())

    def merges(self):
        """Whether a count in degree order is faster if it merges all columns than by classes."""
        return self.merged_ns <= self.degree_ns

    def looks_up(self):
        """Whether a count in degree order is fastest if it looks up rows; not if there are none to look up."""
        return not self.no_triangles and self.looked_ns < min(self.merged_ns, self.degree_ns)

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
    return sum(each * counts[name] for name, each in nanoseconds.items())
