"""The kernels of TriCore: a warp per edge and binary search (`warp_search`), and the two it is compared with
(`merge_path`, `thread_search`). They work on ranges of edges (`edge_slices`), so that a graph may be counted in parts;
`part_tally` finds the triangles of each edge or vertex of a part."""
