"""Damaged files: `tcgpu count` must refuse each in one line, or count the graph that the file now describes.

Each trial writes a graph in one of the formats, plain or compressed, in one stream or several, damages the bytes (cut
off, flipped, deleted, doubled, zeroed, with others behind them, a whole stream lost) and counts the file. A count is
right where a second reader, written for this and slow, finds as many triangles in the same bytes; a file whose
checksum does not hold, by the tools `gzip`, `bzip2` and `xz`, has no right count. Some damage to a plain text makes
the text of another graph: `other` are counts which are right in that sense, but not the count of the graph before.

    python benchmarks/damage.py [--trials 2000] [--seed 1]
"""

import argparse
import bz2
import collections
import csv
import gzip
import io
import itertools
import lzma
import random
import re
import shutil
import subprocess
import tempfile
import traceback
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import numpy as np

import tcgpu
from tcgpu.__main__ import main as shell

TEXTS = (".txt", ".csv", ".mtx", ".graph")
PACKED = {"": None, ".gz": gzip.compress, ".bz2": bz2.compress, ".xz": lzma.compress}
TOOLS = {".gz": "gzip", ".bz2": "bzip2", ".xz": "xz"}
FOLDER = ("graph.json", "col_ptr.npy", "row_idx.npy")


def trials(number, seed, folder):
    """A row a trial: the file's kind, how it was damaged, and the outcome."""
    chance = random.Random(seed)
    kinds = [(text, packed) for text in (*TEXTS, ".npz") for packed in PACKED] + [("/", "")]
    for trial in range(number):
        ending, packed = kinds[trial % len(kinds)]
        graph = some_graph(chance)
        path = folder / f"x{ending}{packed}".rstrip("/")
        remove(path)
        streams = write(graph, path, ending, packed, chance)
        file = path / chance.choice(FOLDER) if ending == "/" else path
        content, damage = damaged(file.read_bytes(), streams, chance)
        file.write_bytes(content)
        yield {
            "trial": trial,
            "file": ending + packed,
            "streams": len(streams),
            "damage": damage,
            "outcome": outcome(path, ending, packed, triangles(graph_edges(graph))),
        }


def some_graph(chance):
    rng = np.random.default_rng(chance.getrandbits(32))
    n = chance.choice((12, 60, 300))
    u, v = rng.integers(0, n, (2, 6 * n))
    return tcgpu.Graph.from_edges(u, v, n)


def graph_edges(graph):
    return list(zip(*(ends.tolist() for ends in graph.edges()), strict=True))


def remove(path):
    if path.is_dir():
        shutil.rmtree(path)
    path.unlink(missing_ok=True)


def write(graph, path, ending, packed, chance):
    """Write the file, compressed in one stream or several; returns the streams."""
    if ending == "/":
        tcgpu.write(graph, path, format="folder")
        return [b""]
    tcgpu.write(graph, plain := path.with_name(f"plain{ending}"))
    content = plain.read_bytes()
    if not packed:
        streams = [content]
    else:
        cuts = sorted(chance.choices(range(len(content)), k=chance.choice((0, 0, 1, 3))))
        streams = [PACKED[packed](content[a:b]) for a, b in itertools.pairwise([0, *cuts, len(content)])]
        if packed == ".xz":
            streams = [stream + bytes(chance.choice((0, 0, 4, 8))) for stream in streams]
    path.write_bytes(b"".join(streams))
    return streams


def damaged(content, streams, chance):
    """`(bytes, what was done to them)`."""
    data, size = bytearray(content), len(content)
    at = chance.randrange(size)
    end = min(size, at + chance.choice((1, 2, 7, 100)))
    damage = chance.choice(
        ("cut off", "bit", "byte", "deleted", "doubled", "zeroed", "behind", "zeros behind", "stream")
    )
    if damage == "stream" and len(streams) == 1:
        damage = "bit"
    if damage == "cut off":
        del data[at:]
    elif damage == "bit":
        data[at] ^= 1 << chance.randrange(8)
    elif damage == "byte":
        data[at] = chance.randrange(256)
    elif damage == "deleted":
        del data[at:end]
    elif damage == "doubled":
        data[at:at] = data[at:end]
    elif damage == "zeroed":
        data[at:end] = bytes(end - at)
    elif damage == "behind":
        data += chance.choice((chance.randbytes(chance.choice((1, 6, 50))), content[: chance.choice((1, 10, 200))]))
    elif damage == "zeros behind":
        data += bytes(chance.choice((1, 2, 3, 4, 6, 8)))
    else:
        streams = list(streams)
        del streams[chance.randrange(len(streams))]
        data = bytearray(b"".join(streams))
    return bytes(data), damage


def outcome(path, ending, packed, before):
    """`refused`, `right`, `other`, `wrong` or `traceback`."""
    out, errors = io.StringIO(), io.StringIO()
    try:
        with redirect_stdout(out), redirect_stderr(errors):
            code = shell(["count", str(path), "--engine", "cpu"])
    except BaseException:
        traceback.print_exc()
        return "traceback"
    if code:
        said = errors.getvalue()
        one_line = code == 2 and said.count("\n") == 1 and str(path) in said and not out.getvalue()
        return "refused" if one_line else "traceback"
    found = int(out.getvalue())
    try:
        says = second_count(path, ending, packed)
    except Exception:  # whatever the second reader stumbles over, there was nothing to count
        return "wrong"
    return "wrong" if found != says else "right" if found == before else "other"


def second_count(path, ending, packed):
    """The triangles in a file, by another reader. Raises where there is no graph in it."""
    if ending == "/":
        return triangles(of_columns({name: np.load(path / f"{name}.npy") for name in ("col_ptr", "row_idx")}))
    content = path.read_bytes()
    if packed and shutil.which(TOOLS[packed]):
        content = subprocess.run([TOOLS[packed], "-dc"], input=content, capture_output=True, check=True).stdout
    elif packed:
        content = {".gz": gzip, ".bz2": bz2, ".xz": lzma}[packed].decompress(content)
    if ending == ".npz":
        return triangles(of_columns(np.load(io.BytesIO(content))))
    lines = content.decode("utf-8", "replace").split("\n")
    return triangles({".mtx": of_matrix, ".graph": of_lists}.get(ending, of_list)(lines))


def of_columns(arrays):
    col_ptr, row_idx = arrays["col_ptr"], arrays["row_idx"]
    return zip(np.repeat(np.arange(col_ptr.size - 1), np.diff(col_ptr)).tolist(), row_idx.tolist(), strict=True)


def of_list(lines):
    rows = [line for line in lines if line.strip() and not line.strip().startswith(("#", "%", "//"))]
    names = next(csv.reader(rows[:1])) if rows and rows[0].lstrip('"')[:1].isalpha() else None
    for row in rows[names is not None :]:
        yield tuple(int(word.strip('"')) for word in re.split(r"[\s,;]+", row.strip())[:2])


def of_matrix(lines):
    size, *entries = (line for line in lines if line.strip() and not line.strip().startswith("%"))
    n, _, count = map(int, size.split())
    pairs = [tuple(map(int, entry.split()[:2])) for entry in entries]
    if len(pairs) != count or not all(1 <= a <= n and 1 <= b <= n for a, b in pairs):
        raise ValueError("not what the size line says")
    return pairs


def of_lists(lines):
    header, *near = (line for line in lines if not line.startswith("%"))
    n, m = map(int, header.split()[:2])
    pairs = [(v, int(word)) for v, line in enumerate(near, 1) for word in line.split()]
    if len({frozenset(pair) for pair in pairs}) > m or not all(1 <= a <= n and 1 <= b <= n for a, b in pairs):
        raise ValueError("not what the header says")
    return pairs


def triangles(edges):
    near = collections.defaultdict(set)
    for a, b in edges:
        if a != b:
            near[a].add(b)
            near[b].add(a)
    return sum(len(near[a] & near[b]) for a in near for b in near[a]) // 6


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    found = collections.defaultdict(collections.Counter)
    several = 0
    with tempfile.TemporaryDirectory() as folder:
        for row in trials(arguments.trials, arguments.seed, Path(folder)):
            found[row["file"]][row["outcome"]] += 1
            several += row["streams"] > 1
            if row["outcome"] in ("wrong", "traceback"):
                print(row, flush=True)
    outcomes = ("refused", "right", "other", "wrong", "traceback")
    print(f"{'file':<12}" + "".join(f"{name:>11}" for name in outcomes))
    total = sum(found.values(), collections.Counter())
    for kind, counts in [*sorted(found.items()), ("all", total)]:
        print(f"{kind:<12}" + "".join(f"{counts[name]:>11}" for name in outcomes))
    print(f"{several} of {arguments.trials} files were of several compressed streams")
    raise SystemExit(total["wrong"] + total["traceback"] > 0)


if __name__ == "__main__":
    main()
