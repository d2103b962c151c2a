"""`levels`: two adjacent levels of a breadth-first search as a bit matrix; every combination is tested by its bits."""

from itertools import combinations, pairwise

import numpy as np

from tcgpu.kernels.chatterjee.chunks import split
from tcgpu.lab.stepper.frames import BOX, SHARED, Matrix, cells, counted, listed


def levels(builder, *, skip):
    """A frame per level, one for each chunk's bits, then one for all combinations with the same first two vertices.

    skip: whether all combinations of two vertices that are not joined are skipped at once.
    """
    chunks = split_small(builder.graph)
    by_level = vertices_by_level(chunks)
    for depth, here in enumerate(by_level):
        which = f"joined to level {depth - 1} and not reached before" if depth else "where the search begins"
        caption = f"Level {depth} of a breadth-first search, {which}: {listed(here)}."
        panels = [
            cells(f"level {number}", vertices if number <= depth else (), "looked" if number == depth else "there",
                  memory="", room=len(vertices))
            for number, vertices in enumerate(by_level)
        ]  # fmt: skip
        there = [v for vertices in by_level[:depth] for v in vertices]
        yield builder.frame(f"level {depth}", caption, panels, looked=here, there=there)
    depth_of = {v: depth for depth, vertices in enumerate(by_level) for v in vertices}
    for c in range(len(chunks)):
        name = " and ".join(map(str, sorted({depth_of[v] for v in chunks.vertices(c).tolist()})))
        yield from chunk_steps(builder, chunks, c, f"level{'s' * (' ' in name)} {name}", skip)


def split_small(graph):
    """The chunks of a small graph, as the kernel makes them; the root of each component is its first vertex."""
    return split(graph, shared_bits=8 * 48 * 1024, machines=1, roots=1)


def vertices_by_level(chunks):
    """The vertices of each level, of all components together; a component begins with its root."""
    found, roots, depth = [], set(chunks.roots.tolist()), 0
    for begin, end in pairwise(chunks.level_ptr.tolist()):
        here = chunks.order[begin:end].tolist()
        depth = 0 if here[0] in roots else depth + 1
        if depth == len(found):
            found.append([])
        found[depth] += here
    return found


def level_points(graph):
    """A point per vertex, in inches: levels from the top down, the vertices of a level next to each other on an arc."""
    found, by_level = np.zeros((graph.n, 2)), vertices_by_level(split_small(graph))
    for depth, here in enumerate(by_level):
        across = (np.arange(len(here)) + 0.5) / len(here)
        bent = (len(here) > 2) * 0.45 * ((2 * across - 1) ** 2 - 0.5)  # so that edges inside a level can be seen
        found[here] = np.stack([across, 1 - (depth + 0.5 + bent) / len(by_level)], axis=1)
    return found * BOX


def chunk_steps(builder, chunks, c, name, skip):
    """One chunk: its bits, and its combinations. Its vertices are numbered 0, 1, ... from its first level on."""
    v, first, largest = chunks.vertices(c).tolist(), int(chunks.first[c]), int(chunks.size.max())
    numbers, title = range(len(v)), f"chunk of {name}"
    bits = {(p, q) for p, q in combinations(numbers, 2) if (max(v[p], v[q]), min(v[p], v[q])) in builder.ends}

    def matrix(looks):
        lines = [[looks.get((p, q), "empty") if p < q else "" for q in numbers] for p in numbers]
        return (Matrix("the chunk's bits, a row and a column a vertex", v, v, lines, SHARED, room=(largest, largest)),)

    caption = (
        f"The {len(v)} vertices of {name} are a chunk. A block writes its {counted(len(bits), 'edge')} as bits above "
        f"the diagonal of a matrix: {len(v) * (len(v) - 1) // 2} bits in shared memory. Then it tests "
        f"{counted(int(chunks.tests[c]), 'combination')} of three vertices: those that begin with one of the first "
        f"{first}."
    )
    yield builder.frame(title, caption, matrix(dict.fromkeys(bits, "looked")), looked=v)
    for i, j in combinations(numbers, 2):
        last, joined = range(j + 1, len(v)), (i, j) in bits
        if i >= first or not last:
            continue
        skipped = skip and not joined
        tested = {(i, j)} if skipped else {(i, j), *((p, k) for k in last for p in (i, j))}
        closed = [k for k in last if {(i, j), (i, k), (j, k)} <= bits]
        looks = dict.fromkeys(bits, "there") | {bit: "looked" if bit in bits else "miss" for bit in tested}
        looks |= {bit: "hit" for k in closed for bit in ((i, j), (i, k), (j, k))}
        tests = "not tested" if skipped else f"three bits each. All three are set for {listed(v[k] for k in closed)}"
        caption = (
            f"Vertices {v[i]} and {v[j]}, which are {'' if joined else 'not '}joined, with each later one: "
            f"{counted(len(last), 'combination')}, {tests}."
        )
        yield builder.frame(
            f"{title}: {v[i]}, {v[j]} and a third", caption, matrix(looks), looked=(v[i], v[j]), there=v,
            edges=[(v[i], v[j])] * joined, found=[tuple(sorted((v[i], v[j], v[k]))) for k in closed],
            lookups=0 if skipped else len(last),
        )  # fmt: skip
