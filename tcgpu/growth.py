"""Graphs that grow: the graph with a batch of edges more, and the triangles that these close."""

from typing import Any

import numpy as np

from tcgpu.api import opened
from tcgpu.arrays import locked
from tcgpu.cpu.edges import marking_workers
from tcgpu.engines.native import jit, run_threads, stopped
from tcgpu.errors import roomy
from tcgpu.graph import Graph, as_graph


@roomy
def add_edges(graph: Any, edges: Any) -> tuple[Graph, int]:
    """Add edges to a graph, and count the triangles that they close.

    Parameters
    ----------
    graph
        As in `tcgpu.count`. A Graph does not change.
    edges
        As in `tcgpu.count`, by vertex numbers, also new ones. Loops, repeats and edges of the graph add nothing.

    Returns
    -------
    Graph, int
        The graph with all edges, without a name; and how many triangles it has more.
    """
    graph, added = as_graph(opened(graph)), as_graph(opened(edges))
    if added.n > graph.n:
        col_ptr = np.pad(graph.col_ptr, (0, added.n - graph.n), "edge")
        graph = Graph(col_ptr, graph.row_idx, labels=graph.labels, validate=False)
    keys = [each.col_of.astype(np.int64) << 32 | each.row_idx for each in (graph, added)]
    place = np.searchsorted(*keys)
    new = np.append(keys[0], -1)[place] != keys[1]
    added = added if new.all() else added.kept(new)
    col_ptr = graph.col_ptr + np.pad(added.col_ptr, (0, graph.n - added.n), "edge")
    row_idx = np.insert(graph.row_idx, place[new], added.row_idx)
    queue, found = np.zeros(1, np.int64), np.zeros(marking_workers(graph), np.int64)
    marks, touched = np.zeros((found.size, graph.n), np.uint8), np.flatnonzero(added.degrees)
    lists = *graph.adjacency, *added.adjacency
    run_threads(_weigh, queue, touched, *lists, marks, found, workers=found.size, queue=queue)
    return Graph(locked(col_ptr), locked(row_idx), labels=graph.labels, validate=False), int(found.sum()) // 6


@jit
def _weigh(worker, workers, queue, touched, indptr, indices, new_indptr, new_indices, all_marks, found):
    """Add up what the closed triangles weigh at their new edges: 6 at a single one, 3 at each of two, 2 at three."""
    marks, total = all_marks[worker], 0
    for hub in touched[worker::workers]:
        if stopped(queue):
            return
        old, new = indices[indptr[hub] : indptr[hub + 1]], new_indices[new_indptr[hub] : new_indptr[hub + 1]]
        marks[old], marks[new] = 6, 3
        for v in new:
            begin, end = indptr[v], indptr[v + 1]
            if (end - begin, v) < (old.size, hub):
                for w in indices[begin:end]:
                    total += marks[np.uint64(w)]
                for w in new_indices[new_indptr[v] : new_indptr[v + 1]]:
                    total += (marks[np.uint64(w)] + 1) // 2
        marks[old], marks[new] = 0, 0
    found[worker] = total
