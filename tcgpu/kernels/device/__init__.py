"""What kernels share: the merge of two columns, rows of bits, sums over a block, the column of a nonzero."""
