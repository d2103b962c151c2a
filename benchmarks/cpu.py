"""The native engine against every peer that pip can install, in one run, on the same raw edges.

Two times for each: `raw`, from two arrays of vertex numbers to the count, cleaning, ordering and building included;
and `count`, a second count of the graph that the library has built. The ratio is a peer's median over tcgpu's, of runs
taken in turns, so that other load of the machine affects both. Every count is checked.

    python benchmarks/cpu.py [--graph NAME ...] [--peer NAME ...] [--threads 2] [--repeats 5] [--output FILE.csv]

A peer is left out, with the reason, where it is not installed, or where it is not done within `--patience` seconds
when it is first tried, in a process of its own.
"""

import argparse
import contextlib
import importlib
import importlib.metadata
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import tcgpu
from tcgpu import cpu, generate, measurement, records
from tcgpu.engines import native

GRAPHS = {
    "R-MAT scale 18, ef 16": ("rmat", {"scale": 18, "edge_factor": 16}),
    "Delaunay, 2^20 random points": ("delaunay", {"n": 1 << 20, "numbering": "random"}),
    "road-like, 1024 x 1024": ("road", {"rows": 1024, "cols": 1024}),
    "co-papers-like, 200k, degree 60": ("copapers", {"n": 200_000, "mean_degree": 60}),
    "Barabasi-Albert, 500k x 8": ("barabasi_albert", {"n": 500_000, "k": 8}),
}

REST = 0.2  # seconds before a run: OpenMP's threads spin for a while after the work that they were started for
SLOW = 5  # seconds for a run from which on a peer is not made to repeat it; tcgpu's first run may compile


@dataclass(frozen=True)
class Peer:
    """A library: `build(u, v, n)` makes its graph from raw edges, `count(built)` counts that."""

    name: str
    package: str
    build: callable
    count: callable


def simple(u, v):
    """Each edge once, smaller vertex first: for libraries that do not clean their input."""
    keep = u != v
    low, high = np.minimum(u, v)[keep], np.maximum(u, v)[keep]
    keys = np.unique(low.astype(np.int64) << 32 | high)
    return keys >> 32, keys & 0xFFFFFFFF


def graphblas_build(u, v, n):
    """L of the vertices ranked by descending degree; duplicates fall together in the matrix."""
    import graphblas

    keep = u != v
    u, v = u[keep], v[keep]
    rank = np.empty(n, np.int64)
    rank[np.argsort(-(np.bincount(u, minlength=n) + np.bincount(v, minlength=n)), kind="stable")] = np.arange(n)
    u, v = rank[u], rank[v]
    return graphblas.Matrix.from_coo(np.maximum(u, v), np.minimum(u, v), True, nrows=n, ncols=n, dtype=bool)


def graphblas_count(lower):
    from graphblas import Matrix, semiring

    found = Matrix(int, lower.nrows, lower.ncols)
    found(lower.S) << semiring.plus_pair(lower @ lower)
    return found.reduce_scalar().get(0)


def scipy_build(u, v, n):
    from scipy.sparse import csr_array

    low, high = simple(u, v)
    return csr_array((np.ones(low.size, np.int64), (high, low)), shape=(n, n))


def scipy_count(lower):
    return (lower @ lower).multiply(lower).sum()


def igraph_build(u, v, n):
    import igraph

    return igraph.Graph(n, np.stack([u, v], axis=1)).simplify()


def igraph_count(graph):
    return closed_paths(graph.transitivity_undirected(mode="zero"), graph.degree())


def closed_paths(transitivity, degrees):
    """The count behind a transitivity: three paths of two edges for every triangle."""
    degrees = np.asarray(degrees, np.int64)
    return round(transitivity * int((degrees * (degrees - 1) // 2).sum()) / 3)


def networkit_build(u, v, n):
    import networkit

    low, high = simple(u, v)
    graph = networkit.GraphFromCoo((low.astype(np.uint64), high.astype(np.uint64)), n=n)
    graph.sortEdges()
    return graph


def networkit_count(graph):
    import networkit

    local = np.asarray(networkit.centrality.LocalClusteringCoefficient(graph, True).run().scores())
    degrees = np.asarray(networkit.centrality.DegreeCentrality(graph).run().scores())
    return round(float((local * degrees * (degrees - 1) / 2).sum()) / 3)


def rustworkx_build(u, v, n):
    import rustworkx

    graph = rustworkx.PyGraph(multigraph=False)
    graph.add_nodes_from(range(n))
    low, high = simple(u, v)
    graph.extend_from_edge_list(list(zip(low.tolist(), high.tolist(), strict=True)))
    return graph


def rustworkx_count(graph):
    import rustworkx

    return closed_paths(rustworkx.transitivity(graph), [graph.degree(v) for v in graph.node_indices()])


def scikit_network_build(u, v, n):
    from scipy.sparse import csr_matrix

    low, high = simple(u, v)
    ends = np.concatenate([low, high]), np.concatenate([high, low])
    return csr_matrix((np.ones(ends[0].size, bool), ends), shape=(n, n))


def scikit_network_count(adjacency):
    from sknetwork.topology import count_triangles

    return count_triangles(adjacency, parallelize=native.threads() > 1)


def networkx_build(u, v, n):
    import networkx

    graph = networkx.empty_graph(n)
    graph.add_edges_from(zip(u.tolist(), v.tolist(), strict=True))
    return graph


def networkx_count(graph):
    import networkx

    return sum(networkx.triangles(graph, backend="networkx").values()) // 3


OURS = Peer("tcgpu", "tcgpu", lambda u, v, n: tcgpu.Graph.from_edges(u, v, n, order="auto"), cpu.count)
PEERS = [
    Peer("python-graphblas", "graphblas", graphblas_build, graphblas_count),
    Peer("networkit", "networkit", networkit_build, networkit_count),
    Peer("igraph", "igraph", igraph_build, igraph_count),
    Peer("scikit-network", "sknetwork", scikit_network_build, scikit_network_count),
    Peer("SciPy", "scipy", scipy_build, scipy_count),
    Peer("rustworkx", "rustworkx", rustworkx_build, rustworkx_count),
    Peer("NetworkX", "networkx", networkx_build, networkx_count),
]


def set_threads(count):
    """Set the same number of threads for every library that has threads."""
    native.set_threads(count)
    with contextlib.suppress(ImportError):
        import graphblas

        graphblas.ss.config["nthreads"] = count
    with contextlib.suppress(ImportError):
        import networkit

        networkit.setNumberOfThreads(count)


def timed(peer, u, v, n):
    """One run: the seconds from raw edges to the count, the seconds of counting once more, the count."""
    time.sleep(REST)
    begin = time.perf_counter()
    built = peer.build(u, v, n)
    found = int(peer.count(built))
    middle = time.perf_counter()
    peer.count(built)
    return middle - begin, time.perf_counter() - middle, found


def why_not(peer, u, v, n, patience):
    """The reason why a peer is left out on a graph, or None. It is tried in another process, which may be stopped."""
    if importlib.util.find_spec(peer.package) is None:
        return "not installed"
    with tempfile.TemporaryDirectory() as folder:
        edges = Path(folder, "edges.npy")
        np.save(edges, np.stack([u, v]))
        command = [sys.executable, __file__, "--try", peer.name, str(n), str(edges)]
        try:
            done = subprocess.run(command, timeout=patience, capture_output=True, text=True)
        except subprocess.TimeoutExpired:
            return f"not done within {patience:g} s"
        return None if done.returncode == 0 else f"it failed: {(done.stderr.strip() or 'killed').splitlines()[-1]}"


def attempt(name, n, edges):
    """Runs in the process of `why_not`."""
    u, v = np.load(edges)
    timed(next(peer for peer in PEERS if peer.name == name), u, v, int(n))


def compare(graph, u, v, n, peers, repeats):
    """Rows of one graph: tcgpu and all peers in turns, medians, ratios."""
    turns = {peer.name: [timed(peer, u, v, n)] for peer in (OURS, *peers)}
    for turn in range(repeats):
        for peer in (OURS, *peers):
            first = turns[peer.name][0]
            if peer is not OURS and first[0] + first[1] > SLOW:  # once will do: loading takes little beside it
                continue
            if turn == 0:
                turns[peer.name].clear()  # that was to warm up
            turns[peer.name].append(timed(peer, u, v, n))
    counts = {name: {run[2] for run in runs} for name, runs in turns.items()}
    if len(set().union(*counts.values())) > 1:
        raise SystemExit(f"the counts differ on {graph}: {counts}")
    medians = {
        name: (statistics.median(run[1] for run in runs), statistics.median(run[0] for run in runs))
        for name, runs in turns.items()
    }
    edges = tcgpu.Graph.from_edges(u, v, n).m
    for name, (count, raw) in medians.items():
        package = next(peer.package for peer in (OURS, *peers) if peer.name == name)
        yield {
            "graph": graph,
            "vertices": n,
            "edges": edges,
            "triangles": counts[name].pop(),
            "library": name,
            "version": _version(package),
            "count_s": round(count, 5),
            "raw_s": round(raw, 5),
            "count_ratio": round(count / medians["tcgpu"][0], 2),
            "raw_ratio": round(raw / medians["tcgpu"][1], 2),
            "repeats": len(turns[name]),
        }


def _version(package):
    names = importlib.metadata.packages_distributions().get(package, [])
    return importlib.metadata.version(names[0]) if names else tcgpu.__version__


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--graph", action="append", metavar="NAME", help="part of a graph's name; may be repeated")
    parser.add_argument("--peer", action="append", metavar="NAME", help="a peer's name, or none; may be repeated")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--patience", type=float, default=60, metavar="SECONDS", help="for a peer's first try")
    parser.add_argument("--output", metavar="FILE", help="write the record as CSV")
    parser.add_argument("--try", dest="attempt", nargs=3, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.attempt:
        return attempt(*arguments.attempt)
    set_threads(arguments.threads)
    machine = measurement.machine("cpu")
    rows = records.Rows()
    print(f"{'graph':<34}{'library':<18}{'count s':>9}{'raw s':>9}{'count':>8}{'raw':>8}")
    for graph, (generator, size) in GRAPHS.items():
        if arguments.graph and not any(part.lower() in graph.lower() for part in arguments.graph):
            continue
        u, v, n = generate.edges(generator, **size)
        chosen = []
        for peer in PEERS:
            if not arguments.peer or peer.name in arguments.peer:
                reason = why_not(peer, u, v, n, arguments.patience)
                if reason:
                    print(f"{graph:<34}{peer.name:<18}left out: {reason}")
                else:
                    chosen.append(peer)
        for row in compare(graph, u, v, n, chosen, arguments.repeats):
            print(
                f"{graph:<34}{row['library']:<18}{row['count_s']:>9.4f}{row['raw_s']:>9.4f}"
                f"{row['count_ratio']:>7.1f}x{row['raw_ratio']:>7.1f}x",
                flush=True,
            )
            rows.append(row | machine)
    if arguments.output:
        rows.write_csv(arguments.output)
        print(f"written to {arguments.output}", file=sys.stderr)


if __name__ == "__main__":
    main()
