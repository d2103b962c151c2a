"""`adaptive`: each triangle is counted by the kernel that suits its vertices. Our own, from the ideas of four papers.

The idea
--------
A triangle j < i < k is found at nonzero (i, j): k is a row of both columns i and j. No single way to find the common
rows is fast for all columns. So vertices and columns are put into classes, and each class has a kernel. The classes
cover every triangle exactly once, for any values of the knobs.

Skewed graphs are counted in degree order: the later a vertex, the more neighbours it has, and the shorter its column.
In many of them, as in web crawls, columns are then so short that merging them is fastest. In others nearly all
triangles have their largest vertex k among the last few thousand. So the last 65,535 vertices have numbers of 16 bits,
and the last 8,192 have rows of bits. Other graphs stay in natural order, where neighbours often have close numbers:
there a column's rows fit into a few words of bits that begin at the column's own vertex. Which of these ways costs
least is computed from the edges (`order_costs`). If there are few vertices, all columns may be rows of bits (`dense`).
These take raw edges without a sort, and so does a hash table of a few million edges (`edge_table`). docs/glossary.md
has the words, docs/adaptive.md all launches.

Who counts a triangle j < i < k
-------------------------------
Degree order, unless merging all columns costs less, or looking up rows (`look_ups`: most graphs of few edges):

    is k near? ------------------------------ no --> far_kernel      a thread per nonzero (i, j): two pointers
        |
       yes
        |
    is i a hub, j heavy? ------------------- yes --> hub_kernel      a warp per j: word AND word, 64 hubs at a time
        |
        no
        |
    has i at least 512 in-edges? ----------- yes --> crowd_kernel    a block of 512 per i: column i as bytes
        |
        no -----------------------------------------> window_kernel   a block of 96 per i: column i as bits

In large graphs far_window_kernel has all triangles with a far k: a block per i, column i's far rows as a hash table.

Natural order; degree order if merging costs less, and then no column is local:

    is column j local? --- yes --> local_kernel     a warp per 64 nonzeros (i, j): word AND word, 64 vertices at a time
        |
        no
        |
    does one of columns i and j have many times as many rows as the other, or do both have over 1,024 together?
        |                  |
        no                yes --> merge_short_kernel   a warp per 32 nonzeros: binary search for each row of the shorter
        |
        --------> merge_short_kernel   a thread per nonzero (i, j): two pointers
                  (if no column has over 128 rows, merge_kernel; if most columns i and j are far apart, too,
                  merge_filtered_kernel; if all columns are very short, merge_columns_kernel, a thread per column j)

notebooks/08_adaptive.ipynb goes there from `naive`, a step at a time.
"""

from tcgpu.kernels.adaptive.plan import plan, prepare
from tcgpu.kernels.adaptive.support_plan import support_plan, triangles_plan

plan.for_edges(support_plan)
plan.for_vertices(triangles_plan)

__all__ = ["plan", "prepare", "support_plan", "triangles_plan"]
