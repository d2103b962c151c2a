"""Trace a count: which line of the kernel takes most time, and how even the work is."""

import tcgpu

trace = tcgpu.trace(tcgpu.generate.mesh(5, 5), "naive", threads=32)
print(trace.triangles, trace.totals()["atomics"] > 0)  # prints 32 True
slowest = max(trace.lines(), key=lambda line: line["share"])
print(slowest["function"].isidentifier())  # prints True
print(trace.balance(per="warp", of="steps").sum() > 0)  # prints True
trace.save("trace.npz")
print(tcgpu.load_trace("trace.npz").triangles)  # prints 32
