"""What may be set in the panel, and in which words: the parameters of generators, the knobs of methods, the orders."""

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

# Of a knob: a sentence, and the values there are where these are few. Under "method.knob" where methods differ.
KNOBS = {
    "threads": ("threads of a block", ()),
    "blocks": ("blocks of a launch, at most", ()),
    "column_block.columns": ("columns that a block takes at a time", ()),
    "column_block.tile": ("rows that fit the shared memory of a block", ()),
    "lanes": ("threads on a column that is looked up", ()),
    "merge_path.lanes": ("threads that share an edge", ()),
    "warp_search.cached": ("top of the search tree in shared memory", (True, False)),
    "levels.lanes": ("threads that take neighbouring combinations", ()),
    "report_auto.threshold": ("nonzeros per column that are for column_block", ()),
    "fold": ("2^fold bits of a fold in shared memory", ()),
    "word": ("bits of a word", (32, 64)),
    "bitmap_auto.longest_thread": ("longest column that bitmap_thread is for", ()),
    "bitmap_auto.mean_warp": ("mean column up to which it is bitmap_warp", ()),
    "bitmap_auto.vertices_shared": ("vertices up to which bits lie in shared memory", ()),
    "levels.approach": ("which thread takes which combinations", ("A", "B", "C", "D")),
    "levels.memory": ("where the bits of a chunk lie", ("auto", "shared", "global")),
    "levels.layout": ("how a symmetric matrix of bits is stored", ("matrix", "utm", "s-utm")),
    "levels.arrangement": ("a matrix for each chunk, or one for all", ("redundant", "one")),
    "levels.schedule": ("which tasks go first", ("longest", "given")),
    "levels.piece": ("most combinations of a task; 0: what suits", ()),
    "levels.roots": ("roots that are tried for a component", ()),
    "levels.skip": ("pass over pairs that are not joined", (False, True)),
    "adaptive.near": ("last vertices that have a 16-bit number", ()),
    "adaptive.hubs": ("last vertices that are hubs", ()),
    "adaptive.heavy": ("near rows from which on a column is heavy", ()),
    "adaptive.crowd": ("in-edges from which on a vertex is for a block", ()),
    "adaptive.short": ("rows up to which a column is short", ()),
    "adaptive.words": ("words of 64 that a local column reaches over", ()),
}


def knob(method, name):
    """(sentence, values) of a knob; values are empty where there are many."""
    return KNOBS.get(f"{method}.{name}") or KNOBS.get(name) or (name.replace("_", " "), ())
