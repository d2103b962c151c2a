"""Write a graph as text and read it again."""

from pathlib import Path

import tcgpu

path = Path("edges.txt")
path.write_text("# a comment\n10 20\n20 30\n30 10\n")
graph = tcgpu.read(path, relabel=True)
print(graph.ids, tcgpu.count(graph))  # prints [10 20 30] 1
tcgpu.write(graph, "graph.mtx")
print(tcgpu.count("graph.mtx"), tcgpu.read("graph.mtx").n)  # prints 1 3
