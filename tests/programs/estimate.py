"""Estimate how long methods take on a GPU that is not here."""

import tcgpu

graph = tcgpu.generate.mesh(40, 40)
one = tcgpu.estimate(graph, "naive", lane_steps=20_000)
print(0 < one.ms < 1, one.kernels[0].bounds.limit != "")  # prints True True
several = tcgpu.estimate(graph, ["naive", "warp_search"], gpu="Tesla T4", fill=True, lane_steps=20_000)
print(several[0].ms > 0, [row["method"] for row in several.rows()])  # prints True ['naive', 'warp_search']
