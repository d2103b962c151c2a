"""The kernels of Bisson and Fatica: a column as an array of bits, for a thread, a warp or a block; a choice of these
(`bitmap_auto`); the triangles of each edge (`support`), and the k-truss (`k_truss`)."""
