"""The kernels of the report: a dot product of two columns for each nonzero (`naive`), the same with a block of columns
in shared memory (`column_block`), a column as an array of bits (`bitmap`); and our choice of the first two
(`report_auto`)."""
