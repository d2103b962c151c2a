"""Recommend a friend: the pair without an edge that is most alike."""

from itertools import combinations

import tcgpu

edges = [(0, 1), (0, 2), (1, 2), (1, 3), (2, 3), (3, 4)]
missing = [pair for pair in combinations(range(5), 2) if pair not in edges]
alike = tcgpu.similarity(edges, pairs=missing)
print(missing[alike.argmax()], alike.max().round(2))  # prints (0, 3) 0.67
print(tcgpu.similarity(edges, "common").tolist())  # prints [1, 1, 2, 1, 1, 0]
print(tcgpu.similarity(edges, kind="overlap", pairs=([0], [3])))  # prints [1.]
