"""What may be set in the panel, and in which words: the parameters of generators, the knobs of methods, the orders."""

from tcgpu.registry import METHODS

# A parameter of a generator is set by a control of one of these kinds: ("sizes", smallest, largest) steps 1, 2, 5, 10,
# 20, ...; ("whole", smallest, largest), ("any", smallest, largest), ("share",) and ("number", smallest, largest, step)
# are even; ("one of", ...) is a list.
PARAMETERS = {
    "scale": (("whole", 1, 22), "2^scale vertices"),
    "edge_factor": (("whole", 1, 64), "edges drawn for each vertex"),
    "a": (("share",), "chance of the upper left quarter"),
    "b": (("share",), "chance of the upper right quarter"),
    "c": (("share",), "chance of the lower left quarter"),
    "permuted": (("one of", True, False), "hubs anywhere, or in front"),
    "n": (("sizes", 1, 5_000_000), "vertices"),
    "m": (("sizes", 1, 20_000_000), "edges"),
    "k": (("whole", 1, 64), "neighbours that each vertex begins with"),
    "rows": (("sizes", 1, 2_000), "rows of the grid"),
    "cols": (("sizes", 1, 2_000), "columns of the grid"),
    "planes": (("sizes", 1, 200), "planes of the grid"),
    "left": (("sizes", 1, 5_000), "vertices of one side"),
    "right": (("sizes", 1, 5_000), "vertices of the other side"),
    "kept": (("share",), "share of the roads that are there"),
    "bends": (("number", 0, 20, 0.5), "vertices along a road, in the mean"),
    "rewired": (("share",), "share of the edges that lead anywhere"),
    "mean_degree": (("number", 1, 150, 0.5), "neighbours of a vertex, in the mean"),
    "nonzeros_per_column": (("number", 1, 64, 0.5), "nonzeros of a column, in the mean"),
    "seed": (("any", 0, 2**31 - 1), "another graph of the kind"),
    "numbering": (("one of", "multiscale", "spatial", "random"), "how the points are numbered"),
}

# Where the controls of a generator begin: small enough for the simulator.
START = {
    "rmat": {"scale": 8, "edge_factor": 6},
    "delaunay": {"n": 500},
    "mesh": {"rows": 20, "cols": 20},
    "mesh3d": {"planes": 5, "rows": 5, "cols": 10, "nonzeros_per_column": 7.5},
    "road": {"rows": 20, "cols": 20, "bends": 1},
    "copapers": {"n": 200, "mean_degree": 16},
    "by_nonzeros": {"m": 1_000, "nonzeros_per_column": 5},
    "random": {"n": 100, "m": 1_000},
    "barabasi_albert": {"n": 200, "k": 5},
    "watts_strogatz": {"n": 200, "k": 8},
    "empty": {"n": 100},
    "path": {"n": 500},
    "cycle": {"n": 500},
    "star": {"n": 500},
    "clique": {"n": 20},
    "complete_bipartite": {"left": 20, "right": 20},
    "grid": {"rows": 20, "cols": 20},
}
BY_CHANCE = {  # generators whose graphs differ by their seed
    "rmat", "delaunay", "mesh3d", "road", "copapers", "by_nonzeros", "random", "barabasi_albert", "watts_strogatz",
}  # fmt: skip

# Orders and engines by what a person calls them; OWN is that of the method's source, BEST what this machine has.
OWN, BEST = "own", "best"
ORDERS = {
    "each method's own": OWN,
    "natural": "natural",
    "by degree": "degree",
    "breadth first": "bfs",
    "random": "random",
    "automatic": "auto",
}
ENGINES = {"best here": BEST, "GPU": "gpu", "simulator": "sim", "native threads": "cpu"}


def knob(method, name):
    """(help, choices) of a knob, as its method declares them; choices are empty for a number."""
    declared = next(knob for knob in METHODS[method].declared if knob.name == name)
    return declared.help, declared.choices
