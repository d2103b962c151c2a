"""Count in parts by several threads, with a progress report."""

from concurrent.futures import ThreadPoolExecutor

import tcgpu

graph = tcgpu.generate.rmat(8, seed=5)
seen: list[float] = []
with ThreadPoolExecutor(2) as pool:
    found = tcgpu.count(graph, executor=pool, parts=3, progress=lambda done, total: seen.append(done / total))
print(found == tcgpu.count(graph), seen[-1])  # prints True 1.0
