"""The methods of the package: source, summary and knobs of each, and the module with its kernels.

That module is imported when the method first prepares or plans something; `planner` there names the function for it.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from tcgpu.declarations import GPU, USUAL_KNOBS, Knob, Method
from tcgpu.graph import as_graph

REPORT, BISSON_FATICA, TRICORE, BASELINE = "report", "Bisson & Fatica", "TriCore", "TriCore's baseline"

# Defaults of knobs that kernels are made for: of `adaptive`,
NEAR = 65535  # the last vertices, which have a 16-bit number
HUBS = 8192  # the last vertices in degree order
HEAVY = 64  # near rows from which on a column is heavy
CROWD = 512  # in-edges
SHORT = 32  # rows from which on a column may be local
LONG = 1024  # rows of two columns together, from which on those of the shorter are looked up
NEVER = 2**30  # a value of `crowd`, `short` and `long` that nothing reaches
# of `column_block`, `report_auto`, `bitmap_auto`,
MAX_TILE = (48 << 10) // 4  # rows in the shared memory that every GPU gives a block
THRESHOLD = 7.0  # nonzeros per column where the report's two kernels took the same time
LONGEST_THREAD, MEAN_WARP, VERTICES_SHARED = 12, 8.0, 128 << 10
# and the choices that `levels` has
APPROACHES, LAYOUTS, SCHEDULES = ("A", "B", "C", "D"), ("matrix", "utm", "s-utm"), ("longest", "given")

PUBLISHED = Knob(False, "as the paper has it, without what is ours", choices=(False, True))
SHARE_COLUMN, WORD = "threads on a column that is looked up", Knob(32, "bits of a word", choices=(32, 64))


def planner(name: str, prepare: Callable[[Any, str], Any] = as_graph) -> Callable[[Callable], Method]:
    """Decorate the function that plans a built-in method; what is decorated becomes the Method.

    prepare: makes the graph that the function takes, of whatever `as_graph` takes and an order.
    """
    return lambda function: METHODS[name].with_plan(function, prepare)


def _method(home, name, source, summary, tasks=None, order="natural", shares=False, **knobs):
    """A Method whose kernels are in `tcgpu.<home>`; a knob is a Knob, or the default of `threads` or `blocks`."""
    for key, knob in knobs.items():
        knobs[key] = replace(knob if isinstance(knob, Knob) else replace(USUAL_KNOBS[key], default=knob), name=key)
    engines = ("cpu",) if home == "cpu" else GPU
    return Method(name, source, summary, order, engines, tasks, (*knobs.values(),), shares=shares, home=f"tcgpu.{home}")


METHODS: dict[str, Method] = {method.name: method for method in (
    _method(
        "kernels.report.naive", "naive", REPORT,
        "a thread per nonzero, two-pointer dot product of two columns", ("nonzeros", "merge"),
        threads=512, blocks=256, published=PUBLISHED,
    ),
    _method(
        "kernels.report.column_block", "column_block", REPORT,
        "a block per k consecutive columns, kept in shared memory; a thread per nonzero",
        ("columns", "merge", "nonzeros"),
        threads=128, blocks=1024,
        columns=Knob(27, "columns that a block takes at a time", 1),
        tile=Knob(2048, "rows that fit the shared memory of a block", 1, MAX_TILE),
        published=PUBLISHED,
    ),
    _method(
        "kernels.report.bitmap", "bitmap", REPORT,
        "a block per column, kept as an array of bits in global memory", ("columns", "lookups"),
        threads=128, blocks=1024,
        lanes=Knob(8, SHARE_COLUMN, 1, 1024),
    ),
    _method(
        "kernels.report.report_auto", "report_auto", "ours",
        "our choice of the report's kernels: naive, or column_block from a threshold of nonzeros per column on",
        threshold=Knob(THRESHOLD, "nonzeros per column that are for column_block", real=True),
        published=PUBLISHED,
    ),
    _method(
        "kernels.bisson_fatica.bitmap_thread", "bitmap_thread", BISSON_FATICA,
        "a thread per column; of at most 12 rows, in registers", ("columns", "lookups by search", "columns"),
        threads=128, blocks=1 << 16,
    ),
    _method(
        "kernels.bisson_fatica.bitmap_warp", "bitmap_warp", BISSON_FATICA,
        "a warp per column, kept as bits in global memory", ("columns", "lookups"),
        threads=128, blocks=None,
        lanes=Knob(8, SHARE_COLUMN, 1, 1024),
        fold=Knob(11, "2^fold bits of a fold in shared memory", 5, 20),
        word=WORD,
        published=PUBLISHED,
    ),
    _method(
        "kernels.bisson_fatica.bitmap_block_shared", "bitmap_block_shared", BISSON_FATICA,
        "a block per column, kept as bits in shared memory", ("columns, long ones first", "lookups"),
        threads=256, blocks=None,
        lanes=Knob(16, SHARE_COLUMN, 1, 1024),
        published=PUBLISHED,
    ),
    _method(
        "kernels.bisson_fatica.bitmap_block_global", "bitmap_block_global", BISSON_FATICA,
        "a block per column, kept as bits in global memory, with a fold of them in shared memory",
        ("columns, long ones first", "lookups"),
        threads=256, blocks=None,
        lanes=Knob(32, SHARE_COLUMN, 1, 1024),
        fold=Knob(17, "2^fold bits of a fold in shared memory", 5, 20),
        word=WORD,
        published=PUBLISHED,
    ),
    _method(
        "kernels.bisson_fatica.bitmap_auto", "bitmap_auto", BISSON_FATICA,
        "one of these four, by the mean and the longest column and the number of vertices",
        longest_thread=Knob(LONGEST_THREAD, "longest column that bitmap_thread is for"),
        mean_warp=Knob(MEAN_WARP, "mean column up to which it is bitmap_warp", real=True),
        vertices_shared=Knob(VERTICES_SHARED, "vertices up to which bits lie in shared memory"),
        published=PUBLISHED,
    ),
    _method(
        "kernels.tricore.merge_path", "merge_path", BASELINE,
        "several lanes per edge; the merge of its two columns cut by diagonals into equal parts",
        ("nonzeros", "merge"), "degree",
        threads=128, blocks=1 << 16,
        lanes=Knob(32, "threads that share an edge", 1, 1024),
    ),
    _method(
        "kernels.tricore.thread_search", "thread_search", BASELINE,
        "a thread per edge; each row of the shorter column looked up in the longer by binary search",
        ("nonzeros", "search"), "degree",
        threads=128, blocks=1 << 16,
    ),
    _method(
        "kernels.tricore.warp_search", "warp_search", TRICORE,
        "a warp per edge; 32 binary searches at a time, the top of the tree in shared memory",
        ("nonzeros", "search"), "degree",
        threads=64, blocks=None,
        cached=Knob(True, "top of the search tree in shared memory", choices=(False, True)),
        published=PUBLISHED,
    ),
    _method(
        "kernels.chatterjee.levels", "levels", "Chatterjee et al.",
        "two adjacent levels of a breadth-first search as a bit matrix; every combination tested, by index",
        threads=None, blocks=1024,
        lanes=Knob(32, "threads that take neighbouring combinations", 1, 32),
        approach=Knob("D", "which thread takes which combinations", choices=APPROACHES),
        memory=Knob("auto", "where the bits of a chunk lie", choices=("auto", "shared", "global")),
        layout=Knob("s-utm", "how a symmetric matrix of bits is stored", choices=LAYOUTS),
        arrangement=Knob("redundant", "a matrix for each chunk, or one for all", choices=("redundant", "one")),
        schedule=Knob("longest", "which tasks go first", choices=SCHEDULES),
        piece=Knob(0, "most combinations of a task; 0: what suits", 0, 2**62),
        roots=Knob(256, "roots that are tried for a component", 1),
        skip=Knob(False, "pass over pairs that are not joined", choices=(False, True)),
        published=PUBLISHED,
    ),
    _method(
        "kernels.adaptive", "adaptive", "ours",
        "for each vertex what suits it: rows of bits, windows, hash tables, merges; cleans on the GPU",
        order="auto", shares=True,
        near=Knob(NEAR, "last vertices that have a 16-bit number", 0, NEAR),
        hubs=Knob(HUBS, "last vertices that are hubs", 0, HUBS),
        heavy=Knob(HEAVY, "a column with more near rows is heavy", 0, NEVER),
        crowd=Knob(CROWD, "in-edges from which on a vertex is for crowd_kernel; 2^30 for none", 1, NEVER),
        short=Knob(SHORT, "rows of a local column, at least; 2^30 for none", 2, NEVER),
        long=Knob(LONG, "rows of two columns from which on the fewer are always looked up", 1, NEVER),
        words=Knob(None, "words of 64 vertices that a local column may reach over; 0 for none", 0, 1024),
        merge=Knob(None, "in degree order: 1 to merge all columns, 0 for hubs, windows and tables", 0, 1),
    ),
    _method(
        "cpu", "cpu", "ours",
        "rows of bits for hubs; compared rows, packed words or bitmaps for the rest; without Numba, NumPy",
        order="auto",
    ),
)}  # fmt: skip
K_TRUSS = _method("truss.peeling", "k_truss", "ours",
                  "weak edges are peeled off from a queue, and each triangle is broken once")  # fmt: skip
