"""Count by several methods, with knobs, in the simulator, and compare the counts."""

import tcgpu

graph = tcgpu.generate.mesh(8, 8)
counts = {name: tcgpu.count(graph, name, engine="sim") for name in ("naive", "bitmap", "warp_search")}
counts["cpu"] = tcgpu.count(graph, "cpu", order="degree")
counts["64 threads"] = tcgpu.count(graph, "naive", engine="sim", threads=64, blocks=2)
print(sorted(set(counts.values())))  # prints [98]
