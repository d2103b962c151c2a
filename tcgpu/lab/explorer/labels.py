"""The controls of generators and their help texts; the names that the panel shows for orders and engines.

The help texts and choices of knobs come from the methods' own declarations.
"""

# The control of a generator's parameter, and its help text. Controls: ("scale", least, most) is a slider with the
# steps 1, 2, 5, 10, 20, ...; ("integer", least, most) and ("number", least, most, step) are even sliders;
# ("field", least, most) is a field to type a whole number into; ("choice", ...) is a list.
PARAMETERS = {
    "scale": (("integer", 1, 22), "2^scale vertices"),
    "edge_factor": (("integer", 1, 64), "edges drawn per vertex"),
    "a": (("number", 0, 1, 0.01), "probability of the upper left quarter"),
    "b": (("number", 0, 1, 0.01), "probability of the upper right quarter"),
    "c": (("number", 0, 1, 0.01), "probability of the lower left quarter"),
    "permuted": (("choice", True, False), "number the vertices at random"),
    "n": (("scale", 1, 5_000_000), "vertices"),
    "m": (("scale", 1, 20_000_000), "edges"),
    "k": (("integer", 1, 64), "neighbours that a vertex starts with"),
    "rows": (("scale", 1, 2_000), "rows of the grid"),
    "cols": (("scale", 1, 2_000), "columns of the grid"),
    "planes": (("scale", 1, 200), "planes of the grid"),
    "left": (("scale", 1, 5_000), "vertices on one side"),
    "right": (("scale", 1, 5_000), "vertices on the other side"),
    "kept": (("number", 0, 1, 0.01), "fraction of the roads that are kept"),
    "bends": (("number", 0, 20, 0.5), "mean number of vertices along a road"),
    "rewired": (("number", 0, 1, 0.01), "fraction of the edges with a random end"),
    "mean_degree": (("number", 1, 150, 0.5), "mean number of neighbours"),
    "nonzeros_per_column": (("number", 1, 64, 0.5), "mean number of nonzeros in a column"),
    "seed": (("field", 0, 2**31 - 1), "seed of the random numbers"),
    "numbering": (("choice", "multiscale", "spatial", "random"), "how the points are numbered"),
}

# The first values of each generator's controls: graphs that are small enough for the simulator.
FIRST_VALUES = {
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
WITHOUT_SEED = {"mesh", "empty", "path", "cycle", "star", "clique", "complete_bipartite", "grid"}  # it changes nothing

# label -> order or engine; DEFAULT leaves the choice to the method, or to tcgpu
DEFAULT = "default"
ORDERS = {
    "each method's own": DEFAULT,
    "natural": "natural",
    "by degree": "degree",
    "breadth first": "bfs",
    "random": "random",
    "automatic": "auto",
}
ENGINES = {"best available": DEFAULT, "GPU": "gpu", "simulator": "sim", "native threads": "cpu"}
