"""Follow directions: clustering, and which triads there are."""

import networkx as nx

import tcgpu

u, v = [0, 1, 2, 2], [1, 2, 0, 3]
print(tcgpu.clustering((u, v), directed=True).round(3).tolist())  # prints [0.5, 0.5, 0.167, 0.0]
census = tcgpu.triad_census((u, v))
print({name: triads for name, triads in census.items() if triads})
# prints {'012': 1, '021D': 1, '021C': 1, '030C': 1}
print(census == nx.triadic_census(nx.DiGraph(zip(u, v, strict=True))))  # prints True
