"""Files as other programs write them: `tcgpu.read` must read the graph in each, refuse it, or warn.

Each trial writes a random graph as another program does, under a name that tcgpu reads; many of the formats it does not
read. A file is read right if the graph has the triangles, edges and degrees that NetworkX finds in the one that was
written; `warned` is that with a warning, `told` another graph with a warning, `wrong` another one without.

    python benchmarks/foreign.py [--trials 2000] [--seed 1]
"""

import argparse
import collections
import io
import json
import logging
import random
import tempfile
import traceback
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd

import tcgpu

KINDS = {}  # name -> function (edges, numbers of the vertices, chance) -> text, or (text, format)
TWO_MODE = set()  # names of kinds whose edges join two sets of vertices, each with its own numbers
WEIGHTS = ("posweighted", "signed", "multisigned", "weighted", "multiweighted")


def kind(function):
    KINDS[function.__name__] = function
    return function


def two_mode(function):
    TWO_MODE.add(function.__name__)
    return kind(function)


def lines(rows, between=" "):
    return "".join(between.join(map(str, row)) + "\n" for row in rows)


def weights(chance, edges):
    """A column of weights of some kind."""
    draw = chance.choice(
        (lambda: 1, lambda: chance.randrange(1, 6), lambda: round(chance.random(), 3), lambda: chance.choice((1, -1)))
    )
    return [draw() for _ in edges]


def times(chance, edges):
    return sorted(chance.randrange(1_000_000_000, 1_700_000_000) for _ in edges)


# lists of edges


@kind
def snap(edges, ids, chance):
    way = chance.choice(("Undirected graph: x.txt", "Directed graph (each unordered pair of nodes is saved once): x"))
    head = f"# {way}\n# Some network\n# Nodes: {len(ids)} Edges: {len(edges)}\n# FromNodeId\tToNodeId\n"
    return head + lines(edges, "\t")


@kind
def snap_signed(edges, ids, chance):
    rows = [(*edge, chance.choice((1, -1))) for edge in edges]
    return "# FromNodeId\tToNodeId\tSign\n" + lines(rows, "\t")


@kind
def snap_temporal(edges, ids, chance):
    return lines([(*edge, time) for edge, time in zip(edges, times(chance, edges), strict=True)])


@kind
def bitcoin(edges, ids, chance):
    rows = zip(edges, times(chance, edges), strict=True)
    return lines([(*edge, chance.randrange(-10, 11), f"{time}.5") for edge, time in rows], ",")


@kind
def konect(edges, ids, chance):
    head = f"% {chance.choice(('sym', 'asym'))} {chance.choice(('unweighted', 'positive'))}\n"
    sizes = f"% {len(edges)} {len(ids)} {len(ids)}\n" if chance.random() < 0.7 else ""
    return head + sizes + lines(edges, chance.choice((" ", "\t", " \t")))


@kind
def konect_weighted(edges, ids, chance):
    rows = [(*edge, weight) for edge, weight in zip(edges, weights(chance, edges), strict=True)]
    if chance.random() < 0.5:
        rows = [(*row, time) for row, time in zip(rows, times(chance, rows), strict=True)]
    head = f"% {chance.choice(('sym', 'asym'))} {chance.choice(WEIGHTS)}\n"
    return head + f"% {len(edges)} {len(ids)} {len(ids)}\n" * chance.randrange(2) + lines(rows)


@two_mode
def konect_two_mode(edges, sizes, chance):
    head = f"% bip {chance.choice(('unweighted', 'positive', *WEIGHTS))}\n"
    rows = edges
    if "weighted" in head or "signed" in head:
        rows = [(*edge, weight) for edge, weight in zip(edges, weights(chance, edges), strict=True)]
        if chance.random() < 0.5:
            rows = [(*row, time) for row, time in zip(rows, times(chance, rows), strict=True)]
    return head + f"% {len(edges)} {sizes[0]} {sizes[1]}\n" * chance.randrange(2) + lines(rows)


@kind
def konect_dynamic(edges, ids, chance):
    """Edges that appear, and some others that disappear again."""
    rows = [(*edge, 1, k) for k, edge in enumerate(edges)]
    gone = [tuple(chance.sample(ids, 2)) for _ in range(3)]
    gone = [edge for edge in gone if edge not in edges and edge[::-1] not in edges]
    rows = [*((*edge, 1, 0) for edge in gone), *rows, *((*edge, -1, len(rows)) for edge in gone)]
    return "% asym dynamic\n" + lines(rows)


@kind
def network_repository(edges, ids, chance):
    head = chance.choice(("% sym unweighted\n", "% asym unweighted\n% 9 9 9\n", "% a comment\n", ""))
    return head + lines(edges, chance.choice((" ", ",")))


@kind
def network_repository_with_sizes(edges, ids, chance):
    return f"{len(ids)} {len(ids)} {len(edges)}\n" + lines(edges)


@kind
def ncol(edges, ids, chance):
    return lines([(*edge, weight) for edge, weight in zip(edges, weights(chance, edges), strict=True)])


@kind
def lgl(edges, ids, chance):
    near = collections.defaultdict(list)
    for u, v in edges:
        near[u].append(v)
    weighted = chance.random() < 0.6
    return "".join(
        f"# {u}\n" + "".join(f"{v} {chance.randrange(1, 9)}\n" if weighted else f"{v}\n" for v in near[u]) for u in near
    )


@kind
def networkx_edges(edges, ids, chance):
    file = io.BytesIO()
    graph = nx.Graph(edges)
    if chance.random() < 0.5:
        nx.set_edge_attributes(graph, dict(zip(graph.edges, weights(chance, edges), strict=False)), "weight")
    nx.write_edgelist(graph, file, data=chance.random() < 0.7)
    return file.getvalue().decode()


@kind
def networkx_adjacency(edges, ids, chance):
    file = io.BytesIO()
    graph = nx.Graph(edges)
    chance.choice((nx.write_adjlist, nx.write_multiline_adjlist))(graph, file)
    return file.getvalue().decode()


@kind
def adjacency(edges, ids, chance):
    """Both directions of each edge, a line a vertex, as many programs write it."""
    graph = nx.Graph(edges)
    between, after = chance.choice(((" ", ""), (",", ""), ("\t", ""), (" ", ":")))
    return "".join(f"{u}{after}{between}" + between.join(map(str, graph[u])) + "\n" for u in sorted(graph))


@kind
def webgraph(edges, ids, chance):
    graph = nx.convert_node_labels_to_integers(nx.Graph(edges))
    return f"{len(graph)}\n" + lines([sorted(graph[u]) for u in sorted(graph)])


@kind
def sizes_first(edges, ids, chance):
    """As programs of contests read it."""
    graph = nx.convert_node_labels_to_integers(nx.Graph(edges), chance.randrange(2))
    head = chance.choice(("{n} {m}\n", "{m}\n", "{n}\n{m}\n", "{n} {m} 0\n")).format(n=len(graph), m=len(edges))
    return head + lines(graph.edges)


# tables


def frame(edges, names=("source", "target")):
    return pd.DataFrame(edges, columns=names)


@kind
def pandas_table(edges, ids, chance):
    table = frame(edges, chance.choice((("source", "target"), ("u", "v"), ("node_1", "node_2"), ("a", "b"))))
    if chance.random() < 0.5 and "a" not in table:
        table["weight"] = weights(chance, edges)
    return table.to_csv(index=False, sep=chance.choice(",;\t"))


@kind
def pandas_index(edges, ids, chance):
    table = frame(edges)
    if chance.random() < 0.5:
        table["weight"] = weights(chance, edges)
    return table.to_csv(sep=chance.choice(",;\t"))


@kind
def pandas_index_without_names(edges, ids, chance):
    table = frame(edges)
    if chance.random() < 0.5:
        table["weight"] = weights(chance, edges)
    table.index = sorted(chance.sample(range(5000), len(edges))) if chance.random() < 0.3 else table.index
    table.index += chance.choice((0, 0, 1, 5000))
    return table.to_csv(header=False, sep=chance.choice(", ;\t"))


@kind
def pandas_numbered_columns(edges, ids, chance):
    """The names of the columns are 0 and 1."""
    table = pd.DataFrame(edges)
    if chance.random() < 0.5:
        table[2] = weights(chance, edges)
    return table.to_csv(index=chance.random() < 0.5)


@kind
def pandas_without_names(edges, ids, chance):
    return frame(edges).to_csv(index=False, header=False, sep=chance.choice(", ;\t"))


@kind
def pandas_floats(edges, ids, chance):
    """As whole numbers become beside a missing one."""
    return frame(edges).astype(float).to_csv(index=False)


@kind
def pandas_matrix(edges, ids, chance):
    return nx.to_pandas_adjacency(nx.Graph(edges), dtype=int).to_csv(
        header=chance.random() < 0.7, index=chance.random() < 0.5
    )


@kind
def numpy_matrix(edges, ids, chance):
    file = io.StringIO()
    matrix = nx.to_numpy_array(nx.Graph(edges), dtype=int) * chance.choice((1, 1, 3))
    np.savetxt(file, matrix, fmt=chance.choice(("%d", "%d", "%.18e")), delimiter=chance.choice((" ", ",", "\t")))
    return file.getvalue()


@kind
def numpy_edges(edges, ids, chance):
    file = io.StringIO()
    header = chance.choice(("", "u v", "some edges"))
    np.savetxt(file, edges, fmt="%d", delimiter=chance.choice((" ", ",", "\t")), header=header)
    return file.getvalue()


@kind
def numpy_named_in_a_comment(edges, ids, chance):
    file = io.StringIO()
    rows = [(time, *edge) for time, edge in zip(times(chance, edges), edges, strict=True)]
    between = chance.choice((" ", ",", "\t"))
    header = between.join(chance.choice((("time", "source", "target"), ("t", "i", "j"))))
    np.savetxt(file, rows, fmt="%d", delimiter=between, header=header)
    return file.getvalue()


@kind
def gephi(edges, ids, chance):
    table = frame(edges, ("Source", "Target"))
    table["Type"], table["Id"], table["Label"], table["timeset"] = "Undirected", range(len(table)), "", ""
    table["Weight"] = 1.0
    if chance.random() < 0.5:
        table = table[["Id", "Label", "Type", "Source", "Target", "Weight"]]
    return table.to_csv(index=False, sep=chance.choice(",;\t"), quoting=chance.choice((0, 1)))


@kind
def gephi_nodes(edges, ids, chance):
    """A table of vertices, without any edge."""
    table = pd.DataFrame({"Id": ids, "Label": [chance.randrange(99) for _ in ids]})
    if chance.random() < 0.5:
        table["modularity_class"] = 1
    return table.to_csv(index=False)


@kind
def node_table(edges, ids, chance):
    names = chance.choice((("node", "community"), ("id", "degree"), ("vertex", "label"), ("index", "value")))
    return pd.DataFrame({names[0]: ids, names[1]: [chance.choice(ids) for _ in ids]}).to_csv(index=False)


@two_mode
def ratings(edges, sizes, chance):
    names = chance.choice((("user", "item"), ("user_id", "movie_id"), ("author", "paper"), ("actor", "film")))
    table = frame(edges, names)
    if chance.random() < 0.5:
        table["rating"] = weights(chance, edges)
    return table.to_csv(index=chance.random() < 0.3)


@kind
def r_table(edges, ids, chance):
    named, rows, quote = chance.random() < 0.6, chance.random() < 0.6, chance.random() < 0.6
    mark = '"' if quote else ""
    head = chance.choice(("V1", "from")), chance.choice(("V2", "to"))
    text = lines([[f"{mark}{name}{mark}" for name in head]]) if named else ""
    return text + lines([[f"{mark}{k}{mark}", *edge] if rows else edge for k, edge in enumerate(edges, 1)])


@kind
def r_csv(edges, ids, chance):
    head = '"","from","to"\n' if chance.random() < 0.5 else '"","V1","V2"\n'
    return head + lines([(f'"{k}"', *edge) for k, edge in enumerate(edges, 1)], ",")


@kind
def r_printed(edges, ids, chance):
    return "     [,1] [,2]\n" + lines([(f" [{k},]", *edge) for k, edge in enumerate(edges, 1)], "  ")


def contacts_of(edges, chance):
    """`(time, i, j)`, each edge at one time or several, in steps of 20 seconds, smaller numbers first."""
    begin, step = chance.choice((20, 28820, 31220, 1385982020)), 20
    found = [
        (begin + step * chance.randrange(3000), *sorted(edge)) for edge in edges for _ in range(chance.choice((1, 3)))
    ]
    return sorted(found)


@kind
def contacts(edges, ids, chance):
    return lines(contacts_of(edges, chance), chance.choice((" ", "\t")))


@kind
def contacts_at_small_times(edges, ids, chance):
    return lines(sorted((chance.randrange(20), *sorted(edge)) for edge in edges))


@kind
def contacts_by_pair(edges, ids, chance):
    return lines(sorted(contacts_of(edges, chance), key=lambda row: row[1:]))


@kind
def contacts_with_classes(edges, ids, chance):
    classes = {v: chance.choice(("3B", "2BIO1", "MP", "Teachers")) for v in ids}
    return lines([(*row, classes[row[1]], classes[row[2]]) for row in contacts_of(edges, chance)], "\t")


@kind
def contacts_with_names(edges, ids, chance):
    head = chance.choice(("t i j", "time source target", "timestamp from to"))
    return head + "\n" + lines(contacts_of(edges, chance))


@kind
def contacts_last(edges, ids, chance):
    return lines([(i, j, time) for time, i, j in contacts_of(edges, chance)])


# matrices, and formats of other programs


def numbered_from_1(edges):
    return nx.convert_node_labels_to_integers(nx.Graph(edges), 1)


@kind
def matrix_market(edges, ids, chance):
    graph = numbered_from_1(edges)
    symmetry, field = chance.choice(("general", "symmetric")), chance.choice(("pattern", "real", "integer"))
    rows = [(max(edge), min(edge)) for edge in graph.edges]
    if symmetry == "general" and chance.random() < 0.5:
        rows += [row[::-1] for row in rows]
    size = f"{len(graph)} {len(graph)} {len(rows)}\n"
    value = {"pattern": (), "real": (chance.choice((0.5, 1.0, -2e3)),), "integer": (3,)}[field]
    comment = "% from somewhere\n" * chance.randrange(3)
    head = f"%%MatrixMarket matrix coordinate {field} {symmetry}\n"
    return head + comment + size + lines([(*row, *value) for row in rows]), chance.choice(("mtx", "mtx", "edges"))


@two_mode
def matrix_market_rectangular(edges, sizes, chance):
    head = "%%MatrixMarket matrix coordinate pattern general\n"
    return head + f"{sizes[0]} {sizes[1] + (sizes[0] == sizes[1])} {len(edges)}\n" + lines(edges), "mtx"


@kind
def matrix_market_without_a_header(edges, ids, chance):
    graph = numbered_from_1(edges)
    size = f"{len(graph)} {len(graph)} {len(edges)}\n"
    return size + lines(graph.edges), chance.choice(("mtx", "edges"))


@kind
def matrix_market_dense(edges, ids, chance):
    matrix = nx.to_numpy_array(nx.Graph(edges), dtype=int)
    head = "%%MatrixMarket matrix array integer general\n"
    return head + f"{len(matrix)} {len(matrix)}\n" + lines(matrix.reshape(-1, 1)), chance.choice(("mtx", "edges"))


@kind
def matlab_sparse(edges, ids, chance):
    graph = numbered_from_1(edges)
    rows = [(*edge, 1) for edge in graph.edges]
    return lines(rows + [(b, a, weight) for a, b, weight in rows])


@kind
def metis(edges, ids, chance):
    graph = numbered_from_1(edges)
    weighted = chance.random() < 0.4
    head = f"% a comment\n{len(graph)} {len(edges)}{' 1' * weighted}\n"
    rows = [[w for v in sorted(graph[u]) for w in ((v, 1 + abs(u - v)) if weighted else (v,))] for u in sorted(graph)]
    return head + lines(rows), chance.choice(("metis", "metis", "edges"))


@kind
def dimacs_colour(edges, ids, chance):
    head = (
        chance.choice(("c a graph\n", "c FILE: x.col\nc\n", ""))
        + f"p {chance.choice(('edge', 'col'))} {len(ids)} {len(edges)}\n"
    )
    return head + lines([("e", *edge) for edge in edges])


@kind
def dimacs_paths(edges, ids, chance):
    return f"c roads\np sp {len(ids)} {len(edges)}\n" + lines([("a", *edge, chance.randrange(9)) for edge in edges])


@kind
def pace(edges, ids, chance):
    return f"p tw {len(ids)} {len(edges)}\n" + lines(edges)


@kind
def graphml(edges, ids, chance):
    return "\n".join(nx.generate_graphml(nx.Graph(edges)))


@kind
def gexf(edges, ids, chance):
    return "\n".join(nx.generate_gexf(nx.Graph(edges)))


@kind
def gml(edges, ids, chance):
    return "\n".join(nx.generate_gml(nx.Graph(edges)))


@kind
def pajek(edges, ids, chance):
    head = f"*Vertices {len(ids)}\n" + lines([(v, f'"{v}"') for v in sorted(ids)])
    return head * chance.randrange(2) + "*Edges\n" + lines(edges)


@kind
def leda(edges, ids, chance):
    body = lines([(*edge, 0, "|{}|") for edge in edges])
    return f"LEDA.GRAPH\nvoid\nvoid\n-2\n{len(ids)}\n" + "|{}|\n" * len(ids) + f"{len(edges)}\n" + body


@kind
def ucinet(edges, ids, chance):
    head = chance.choice(
        (f"dl n={len(ids)} format=edgelist1\ndata:\n", f"DL N = {len(ids)}\nFORMAT = EDGELIST1\nDATA:\n")
    )
    return head + lines([(*edge, 1) for edge in edges])


@kind
def ucinet_matrix(edges, ids, chance):
    return f"dl n={len(ids)}\ndata:\n" + lines(nx.to_numpy_array(nx.Graph(edges), dtype=int))


@kind
def dot(edges, ids, chance):
    return chance.choice(("graph {\n", "strict graph g {\n", "graph g\n{\n")) + lines(edges, " -- ") + "}\n"


@kind
def tgf(edges, ids, chance):
    names = chance.choice((lambda v: f"name{v}", lambda v: "", lambda v: chance.randrange(99)))
    return lines([(v, names(v)) for v in ids]) + "#\n" + lines(edges)


@kind
def gdf(edges, ids, chance):
    head = "nodedef>name VARCHAR,label VARCHAR\n" + lines([(v, chance.randrange(99)) for v in ids], ",")
    return head + "edgedef>node1 VARCHAR,node2 VARCHAR\n" + lines(edges, ",")


@kind
def json_links(edges, ids, chance):
    return json.dumps(nx.node_link_data(nx.Graph(edges)), indent=chance.choice((None, 2)))


@kind
def json_pairs(edges, ids, chance):
    return json.dumps(edges, indent=chance.choice((None, 0)))


@kind
def graph6(edges, ids, chance):
    return nx.to_graph6_bytes(
        nx.convert_node_labels_to_integers(nx.Graph(edges)), header=chance.random() < 0.5
    ).decode()


@kind
def ligra(edges, ids, chance):
    graph = nx.convert_node_labels_to_integers(nx.Graph(edges))
    near = [w for v in sorted(graph) for w in graph[v]]
    starts = np.cumsum([0, *(len(graph[v]) for v in sorted(graph))])[:-1]
    return lines([["AdjacencyGraph"], [len(graph)], [len(near)], *([x] for x in (*starts, *near))])


@kind
def simple_interactions(edges, ids, chance):
    return lines([(u, "pp", v) for u, v in edges], "\t")


@kind
def triples(edges, ids, chance):
    return lines([(f"<{u}>", "<knows>", f"<{v}>", ".") for u, v in edges])


# ------------------------------------------------------------------------------------------------------------- trials


def some_edges(chance, apart):
    """Edges with the numbers of the file, and the numbers; of two sets of vertices, their sizes in their place."""
    if apart:
        a, b = chance.randrange(3, 12), chance.randrange(3, 12)
        pairs = [(u, v) for u in range(1, a + 1) for v in range(1, b + 1)]
        edges = chance.sample(pairs, chance.randrange(min(4, len(pairs)), len(pairs)))
        return edges, (a, b)
    n = chance.choice((4, 6, 12, 40))
    graph = nx.gnm_random_graph(n, chance.randrange(n, min(4 * n, n * (n - 1) // 2) + 1), seed=chance.getrandbits(30))
    first = chance.choice((0, 1, 1, 1000))
    numbers = [first + k for k in range(n)] if chance.random() < 0.7 else sorted(chance.sample(range(first, 5000), n))
    edges = [tuple(numbers[v] for v in (edge if chance.random() < 0.8 else edge[::-1])) for edge in graph.edges]
    if chance.random() < 0.5:
        chance.shuffle(edges)
    return edges, sorted({v for edge in edges for v in edge})


def sides(edges):
    return [((0, u), (1, v)) for u, v in edges]


def facts(graph):
    """What two graphs have in common if they are the same, but for the names of vertices."""
    triangles = sum(nx.triangles(graph).values()) // 3
    return triangles, graph.number_of_edges(), sorted(degree for _, degree in graph.degree if degree)


def trials(number, seed, folder):
    """A row a trial: the kind of file, and the outcome."""
    chance = random.Random(seed)
    names = list(KINDS)
    for trial in range(number):
        name = names[trial % len(names)]
        edges, numbers = some_edges(chance, name in TWO_MODE)
        made = KINDS[name](edges, numbers, chance)
        text, format = made if isinstance(made, tuple) else (made, "edges")
        if chance.random() < 0.2:
            text = text.replace("\n", "\r\n")
        content = chance.choice((b"", b"", b"", b"\xef\xbb\xbf")) + text.encode()
        if chance.random() < 0.1:
            content = content.rstrip(b"\r\n")
        path = folder / ("x.txt" if format == "edges" else f"x.{format}")
        path.write_bytes(content)
        graph = nx.Graph(sides(edges) if name in TWO_MODE else edges)
        none = name in ("gephi_nodes", "node_table")  # these list no edge
        yield {
            "trial": trial,
            "kind": name,
            "outcome": outcome(path, format, None if none else facts(graph)),
            "text": text,
        }


def outcome(path, format, right):
    """`right`, `warned`, `told`, `refused`, `wrong` or `traceback`."""
    said = io.StringIO()
    handler = logging.StreamHandler(said)
    log = logging.getLogger("tcgpu")
    log.addHandler(handler)
    try:
        graph = tcgpu.read(path, format)
        found = (tcgpu.count(graph, "cpu"), graph.m, sorted(graph.degrees[graph.degrees > 0].tolist()))
    except tcgpu.TcgpuError as error:
        return "refused" if str(error).startswith(str(path)) and "\n" not in str(error) else "traceback"
    except Exception:
        traceback.print_exc()
        return "traceback"
    finally:
        log.removeHandler(handler)
    if found == right:
        return "warned" if said.getvalue() else "right"
    return "told" if said.getvalue() else "wrong"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    found = collections.defaultdict(collections.Counter)
    with tempfile.TemporaryDirectory() as folder:
        for row in trials(arguments.trials, arguments.seed, Path(folder)):
            found[row["kind"]][row["outcome"]] += 1
            if row["outcome"] in ("wrong", "traceback"):
                print(row, flush=True)
    outcomes = ("right", "warned", "told", "refused", "wrong", "traceback")
    print(f"{'file':<31}" + "".join(f"{name:>11}" for name in outcomes))
    total = sum(found.values(), collections.Counter())
    for name, counts in [*found.items(), ("all", total)]:
        print(f"{name:<31}" + "".join(f"{counts[each]:>11}" for each in outcomes))
    raise SystemExit(total["wrong"] + total["traceback"] > 0)


if __name__ == "__main__":
    main()
