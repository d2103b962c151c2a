"""Write a graph to a folder, and count it from there with little memory."""

import tcgpu

tcgpu.write(tcgpu.generate.watts_strogatz(1000, 6, seed=3), "ring", "folder")
graph = tcgpu.read("ring")
print(graph.folder is not None, graph.nbytes)  # prints True 19996
print(tcgpu.count("ring", device_memory="1MB", engine="cpu") == tcgpu.count(graph))  # prints True
