"""The kernels of TriCore: a warp per edge and binary search (`warp_search`), and the two it is compared with
(`merge_path`, `thread_search`). `warp_search` also counts parts of a graph."""
