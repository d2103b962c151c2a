"""Number the vertices of a graph in other orders."""

import tcgpu

graph = tcgpu.generate.star(6)
for order in ("natural", "degree", "bfs"):
    print(order, graph.ordered(order).max_column)
# prints natural 5
# prints degree 1
# prints bfs 5
print(graph.ordered("random", seed=3).rank is None)  # prints False
print(graph._repr_html_()[:6])  # prints <table
