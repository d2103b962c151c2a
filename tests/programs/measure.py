"""Time methods on a graph, and keep the record."""

import tcgpu

rows = tcgpu.measure(tcgpu.generate.mesh(20, 20), "cpu", repeats=2, name="mesh")
print(rows[0]["triangles"], rows[0]["kernel_ms"] <= rows[0]["total_ms"])  # prints 722 True
rows.write_csv("record.csv")
print(len(open("record.csv").readlines()))  # prints 2
