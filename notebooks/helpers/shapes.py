"""The graphs on four vertices, graphs that are alike but for their cycles and cliques, and random graphs to compare."""

from collections import Counter
from itertools import chain, combinations

import networkx as nx

import tcgpu


def _pairs(text):
    return [(int(pair[0]), int(pair[1])) for pair in text.split()]


# shape -> its edges, pairs of the vertices 0 to 3
APART = {name: _pairs(text) for name, text in {
    "empty": "", "edge": "01", "two edges": "01 23", "path of 3": "01 12", "triangle": "01 12 02",
}.items()}  # fmt: skip
CONNECTED = {name: _pairs(text) for name, text in {
    "path": "01 12 23", "star": "01 02 03", "cycle": "01 12 23 03", "paw": "01 02 12 03",
    "diamond": "01 12 23 03 02", "clique": "01 12 23 03 02 13",
}.items()}  # fmt: skip


def degrees(pairs):
    """The degrees of the vertices that are in some pair, sorted: no two shapes have the same."""
    return tuple(sorted(Counter(chain(*pairs)).values()))


BY_DEGREES = {degrees(pairs): name for name, pairs in (APART | CONNECTED).items()}


def shape_of(pairs):
    """The name of the shape that some edges among four vertices have."""
    return BY_DEGREES[degrees(pairs)]


def parts_of(pairs):
    """How many of the parts of some edges among four vertices have each shape."""
    every = chain(*(combinations(pairs, size) for size in range(len(pairs) + 1)))
    return Counter(map(shape_of, every))


# the orbits of a vertex: shape and degree in it -> the name of `tcgpu.motifs`
ORBITS = {
    ("path", 1): "path end", ("path", 2): "path middle", ("star", 1): "star leaf", ("star", 3): "star centre",
    ("cycle", 2): "cycle", ("paw", 1): "paw tail", ("paw", 2): "paw base", ("paw", 3): "paw centre",
    ("diamond", 2): "diamond tip", ("diamond", 3): "diamond middle", ("clique", 3): "clique",
}  # fmt: skip


def orbits_at(graph, vertex):
    """How often a vertex of a NetworkX graph is in each orbit, by a look at all sets of four that contain it."""
    found = Counter()
    for three in combinations(set(graph) - {vertex}, 3):
        pairs = [pair for pair in combinations((vertex, *three), 2) if graph.has_edge(*pair)]
        found[ORBITS.get((shape_of(pairs), sum(vertex in pair for pair in pairs)))] += 1
    return found


def cubes():
    """The cube, and the cube with a twist: two of its edges are cut and their ends joined crosswise."""
    cube = nx.circular_ladder_graph(4)
    twisted = cube.copy()
    twisted.remove_edges_from([(0, 3), (4, 7)])
    twisted.add_edges_from([(3, 4), (7, 0)])
    return tcgpu.Graph.from_networkx(cube), tcgpu.Graph.from_networkx(twisted)


def on_board(*steps):
    """The fields of a board of 4 x 4 that goes on at the opposite side, each joined to those that `steps` lead to.

    steps: pairs of how far to the right and how far up. Field (x, y) is vertex 4 x + y.
    """
    fields = [(x, y) for x in range(4) for y in range(4)]
    return tcgpu.Graph.from_edges(*zip(*(
        (4 * x + y, 4 * ((x + right) % 4) + (y + up) % 4) for x, y in fields for right, up in steps
    ), strict=True))  # fmt: skip


def swapped(graph, seed):
    """A random NetworkX graph with the degrees of another one: ten times as many swaps as it has edges."""
    random = graph.copy()
    return nx.double_edge_swap(random, 10 * random.size(), max_tries=1_000_000, seed=seed)


def profile(graph, tries=10):
    """How often a NetworkX graph has each motif, against random graphs of the same degrees: motif -> number.

    The number is (a - b) / (a + b), where a is how many motifs the graph has, and b the mean of `tries` random ones. A
    motif that none of them has is left out.
    """
    real, random = tcgpu.motifs(graph), Counter()
    for seed in range(tries):
        random.update(tcgpu.motifs(swapped(graph, seed)))
    return {
        name: (real[name] - random[name] / tries) / (real[name] + random[name] / tries)
        for name in CONNECTED
        if real[name] + random[name]
    }


def networks():
    """Small networks to compare: kind -> name -> NetworkX graph."""
    make = tcgpu.generate
    return {
        "people": {
            "karate club": nx.karate_club_graph(),
            "Les Misérables": nx.les_miserables_graph(),
            "Davis": nx.davis_southern_women_graph(),
        },
        "generated": {
            "mesh": make.mesh(12, 12).to_networkx(),
            "small world": make.watts_strogatz(150, 6, seed=1).to_networkx(),
            "R-MAT": make.rmat(7, 4, seed=1).to_networkx(),
        },
    }
