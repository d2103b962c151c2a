"""What NetworkX asks of this backend whenever it is imported; in a module of its own that imports nothing."""

FUNCTIONS = {
    "all_triangles": "The triangles come in another order, each one once. Multigraphs, too.",
    "average_clustering": "Directed or not; weights are finite numbers.",
    "clustering": "Directed or not; weights are finite numbers.",
    "generalized_degree": "Undirected graphs.",
    "k_truss": "Undirected graphs; k is a whole number. Unasked where `backend_priority.generators` names tcgpu.",
    "square_clustering": "Undirected graphs; multigraphs, too.",
    "transitivity": "Undirected graphs.",
    "triadic_census": "Directed multigraphs, too. With a nodelist, graphs without loops.",
    "triangles": "Undirected graphs; multigraphs, too, if no nodes are given.",
}


def get_info():
    """The facts behind the entry point `networkx.backend_info`."""
    return {
        "backend_name": "tcgpu",
        "project": "tcgpu",
        "package": "tcgpu",
        "short_summary": "Exact triangle counts on a GPU, or on all cores of a CPU.",
        "functions": {name: {"additional_docs": note} for name, note in FUNCTIONS.items()},
    }
