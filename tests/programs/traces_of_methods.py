"""Trace several methods on one graph, and compare them."""

import tcgpu

traces = tcgpu.trace(tcgpu.generate.mesh(5, 5), ["naive", "warp_search"])
for row in traces.totals():
    print(row["method"], row["triangles"])
# prints naive 32
# prints warp_search 32
print(traces.mistakes, traces[0].main().kernel)  # prints [] naive_kernel
