"""Datasets: published graphs by name, downloaded once, when they are first used.

The catalogue has the four matrices of the report, all graphs of Bisson & Fatica's Table I, small generated graphs that
come with the package, and the files of a folder of the user's, which TCGPU_GRAPHS names. Those are not downloaded, and
have the names of the files without their endings. If the folder has an INDEX.tsv (name, file, format, vertices, edges,
triangles), the names are there, and a file must have these numbers. TCGPU_CACHE names the folder for downloads.

A download must have the checksum in `data/published/checksums.csv`. A file that is not listed there must have the
published numbers of vertices, edges and triangles. All addresses are https but that of Twitter's graph, of which no
other is known; its download warns.
"""

import contextlib
import csv
import difflib
import os
import shutil
import tarfile
import tempfile
import warnings
import zlib
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from tcgpu import cpu
from tcgpu.engines.cache_folder import cache_folder
from tcgpu.errors import GraphError, roomy
from tcgpu.graph import Graph
from tcgpu.suggest import did_you_mean

SUITESPARSE = "https://sparse.tamu.edu/MM/DIMACS10/{name}.tar.gz"
SNAP = "https://graphchallenge.s3.amazonaws.com/snap/{name}/{name}_adj.tsv"
GRAPH500 = "https://graphchallenge.s3.amazonaws.com/synthetic/{name}/{name}_adj.tsv.gz"
TWITTER = "http://an.kaist.ac.kr/~haewoon/release/twitter_social_graph/twitter_rv.tar.gz"
ARCHIVE = ".tar.gz"
INDEX = "INDEX.tsv"  # of a folder: what its files are

_PACKAGE = Path(__file__).resolve().parent
_DAMAGED = (tarfile.TarError, zlib.error, EOFError, OSError)  # what reading a damaged archive raises


@dataclass(frozen=True)
class Dataset:
    """What is published about a graph, and where it comes from. None: the source does not say."""

    name: str
    family: str  #: "report", "graph challenge", "generated" (in the package) or "local" (in the folder TCGPU_GRAPHS)
    vertices: int | None
    edges: int | None
    triangles: int | None
    source: str
    url: str | None  #: None if no download is needed
    format: str
    reported_nonzeros_per_column: float | None = None  #: in the report; `note` says where its own numbers contradict it
    note: str = ""
    checksum: str | None = None  #: of the file at `url`, "sha256:..." or "md5:..."

    @property
    def nonzeros_per_column(self) -> float:
        """The mean length of a column."""
        return self.edges / self.vertices if self.edges and self.vertices else 0.0


def catalogue() -> list[Dataset]:
    """Every graph that `load` knows. Of two of a name, the published one, else that of the user's folder."""
    entries: dict[str, Dataset] = {}
    for entry in (*_published(), *_entries("local"), *_entries("generated")):
        entries.setdefault(entry.name, entry)
    return list(entries.values())


def own() -> list[Dataset]:
    """The entries of the catalogue whose files are in the folder that TCGPU_GRAPHS names, in the order of their names.

    A file with the name of a published graph must have the published numbers.
    """
    names = _files("local")
    return sorted((entry for entry in catalogue() if entry.name in names), key=lambda entry: entry.name.lower())


def here() -> list[Dataset]:
    """The entries of the catalogue that are on this machine: in the package, in TCGPU_GRAPHS, among downloads."""
    users, listed = own(), catalogue()
    package = [entry for entry in listed if entry.family == "generated"]
    downloads = [entry for entry in listed if entry.url and entry not in users and _download(entry).is_dir()]
    return package + users + downloads


@roomy
def load(name: str) -> Graph:
    """Load a graph of the catalogue; download it if it is not here. GraphError if it is not the published one.

    It is looked for in the folder that TCGPU_GRAPHS names, in the package, and among earlier downloads. A file of the
    user's must have the published numbers of vertices and edges. A download must have these, too, and the known
    checksum, or, if none is known, the published number of triangles. It is kept as a folder of memory-mapped arrays,
    which opens at once; these are later checked to be valid columns, not compared with the download again.
    """
    entry = _entry(name)
    path, format = _local_file(entry)
    from tcgpu import formats

    graph = formats.read(_downloaded(entry), "folder") if path is None else _checked(entry, path, format)
    graph.name = entry.name
    return graph


def fetch(name: str) -> Path:
    """The path of a graph of the catalogue, for `tcgpu.read`; downloaded if need be, as by `load`."""
    entry = _entry(name)
    return _local_file(entry)[0] or _downloaded(entry)


def cache() -> Path:
    """The folder for downloads: TCGPU_CACHE, or the user's cache folder on this system."""
    return cache_folder()


def data_path(*parts: str) -> Path:
    """The path of a file of the package's `data`: inside an installed package, beside the package in a checkout."""
    for home in _PACKAGE, _PACKAGE.parent:
        path = home.joinpath("data", *parts)
        if path.exists():
            return path
    raise GraphError(f"{Path('data', *parts)} did not come with this installation of tcgpu")


def published(table: str) -> list[dict]:
    """The rows of data/published/<table>.csv. Values are int, float or str, or None for an empty field."""
    with data_path("published", f"{table}.csv").open(newline="", encoding="utf-8") as file:
        return [{key: parsed(text) if text else None for key, text in row.items()} for row in csv.DictReader(file)]


def parsed(text: str) -> int | float | str:
    """The number that a text is, or the text."""
    for kind in int, float:
        with contextlib.suppress(ValueError):
            return kind(text)
    return text


# Entries of the catalogue


def _entries(family):
    for name, row in _files(family).items():
        sizes = (int(row[what]) if what in row else None for what in ("vertices", "edges", "triangles"))
        source, note = row.get("made") or str(_folder(family)), row.get("note") or ""
        yield Dataset(name, family, *sizes, source, None, row["format"], note=note)


def _published():
    """The entries for the tables of the report and of Bisson & Fatica."""
    checksums = {row["graph"]: row["checksum"] for row in published("checksums")}
    for table, family in ("report_matrices", "report"), ("bisson_table1", "graph challenge"):
        for row in published(table):
            name = row["graph"]
            if family == "report":
                source, url, format = "SuiteSparse Matrix Collection, DIMACS10", SUITESPARSE, "mtx"
            elif name.startswith("graph500"):
                source, url, format = "Graph Challenge, graph500", GRAPH500, "edges"
            elif name.startswith("twitter"):
                source, url, format = "Kwak et al., WWW 2010", TWITTER, "edges"
            else:
                source, url, format = "Graph Challenge, SNAP", SNAP, "edges"
            yield Dataset(
                name, family, row["vertices"], row["edges"], row["triangles"], source, url.format(name=name), format,
                reported_nonzeros_per_column=row.get("nonzeros_per_column"),
                note=(row["note"] or "") if family == "report" else "",
                checksum=checksums.get(name),
            )  # fmt: skip


def _entry(name):
    entries = {entry.name: entry for entry in catalogue()}
    if name not in entries:
        near = difflib.get_close_matches(str(name), entries, 3, 0.5) or list(entries)[:4]
        some = f"there are {', '.join(near)}, and more: tcgpu.datasets.catalogue() lists all"
        raise GraphError(f"no dataset {name!r}{did_you_mean(name, entries)}; {some}")
    return entries[name]


# Files on this machine


def _folder(family):
    """The folder with the graphs of a family, in the package or of the user's; None if the user has none."""
    folder = os.environ.get("TCGPU_GRAPHS") if family == "local" else data_path("graphs")
    return Path(folder) if folder and Path(folder).is_dir() else None


def _files(family):
    """The graphs in the folder of a family, by name: their rows in INDEX.tsv; of other files, name, file and format."""
    folder = _folder(family)
    if folder is None:
        return {}
    found = {row["name"]: row for row in _index(folder)}
    listed = {row["file"] for row in found.values()} | {INDEX}
    for path in sorted(folder.iterdir()) if family == "local" else ():
        from tcgpu import formats

        if path.name not in listed and (format := formats.format_of(path)):
            name = path.name if _stem(path.name) in found else _stem(path.name)
            found[name] = {"name": name, "file": path.name, "format": format}
    return found


def _index(folder):
    """The rows of a folder's INDEX.tsv; none if it has none."""
    try:
        with (folder / INDEX).open(newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file, delimiter="\t"))
    except FileNotFoundError:
        return []
    return [row | {"format": {"el": "edges"}.get(row["format"], row["format"])} for row in rows]


def _local_file(entry):
    """The file of an entry and its format, or `(None, None)` if it has to be downloaded."""
    for family in "local", "generated":
        if row := _files(family).get(entry.name):
            return _folder(family) / row["file"], row["format"]
    return None, None


def _stem(file):
    """The name of the graph in a file: `name` of `name.mtx`, `name.txt.gz`, `name_adj.tsv`."""
    return file.partition(".")[0].removesuffix("_adj")


# Downloads


def _download(entry):
    """The folder that keeps the graph of an entry once it is downloaded."""
    return cache() / entry.name


def _downloaded(entry):
    """The folder that keeps the graph of an entry; downloaded and checked if it is not there."""
    kept = _download(entry)
    if kept.is_dir():
        return kept
    cache().mkdir(parents=True, exist_ok=True)
    by_hand = cache() / entry.url.rpartition("/")[2]
    with tempfile.TemporaryDirectory(dir=cache()) as folder:
        file = by_hand if by_hand.exists() else Path(folder, by_hand.name)
        if file != by_hand:
            _retrieve(entry, file)
        _check_checksum(entry, file, by_hand if file == by_hand else entry.url)
        graph = _checked(entry, file, entry.format)
        if entry.checksum is None and entry.triangles is not None and (found := cpu.count(graph)) != entry.triangles:
            raise GraphError(
                f"{file} is not {entry.name}: it has {found:,} triangles, published are {entry.triangles:,}"
            )
    from tcgpu import formats

    formats.write(graph, kept, "folder")
    return kept


def _retrieve(entry, file):
    import pooch

    if entry.url.startswith("http:"):
        checks = "its checksum is" if entry.checksum else "vertices, edges and triangles are"
        warnings.warn(f"{entry.url} is read without encryption; {checks} checked", stacklevel=2)
    try:
        pooch.HTTPDownloader()(entry.url, file, None)
    except OSError as error:
        reason = str(error).split("\n")[0]
        raise GraphError(
            f"{entry.name} could not be downloaded from {entry.url} ({reason}); put {file.name} into {cache()} "
            f"by hand, or {_remedy(entry)}"
        ) from None


def _check_checksum(entry, file, address):
    """GraphError if the checksum of the file from this address is not the known one."""
    import pooch

    algorithm, _, digest = (entry.checksum or "").partition(":")
    if digest and pooch.file_hash(str(file), algorithm) != digest:
        problem = f"the file at {address} is not {entry.name}: its checksum is not {entry.checksum}"
        raise GraphError(f"{problem}; to use it, {_remedy(entry)}")


def _remedy(entry):
    return f"name a folder in TCGPU_GRAPHS that holds {entry.name} in any format"


def _checked(entry, path, format):
    """The graph in a file; GraphError unless it has the published numbers of vertices and edges."""
    from tcgpu import formats

    graph = _from_archive(entry, path) if path.name.endswith(ARCHIVE) else formats.read(path, format)
    if entry.edges is None:
        return graph
    dropped = graph.cleaned.loops + graph.cleaned.duplicates + graph.cleaned.reversed
    numbered = graph.n and np.asarray(graph.labels).dtype.kind in "iu"
    largest = int(np.max(graph.labels)) if numbered else graph.n - 1  # some publish it, plus 1, as a number of vertices
    if entry.vertices not in (graph.n, largest + 1) or entry.edges not in (graph.m, graph.m + dropped):
        raise GraphError(
            f"{path} is not {entry.name}: it has {graph.n:,} vertices and {graph.m:,} edges, published are "
            f"{entry.vertices:,} and {entry.edges:,}"
        )
    return graph


def _from_archive(entry, path):
    """The graph in an archive, in the member that has the entry's name."""
    cache().mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache()) as folder:
        try:
            with tarfile.open(path) as archive:
                for member in archive:
                    name = Path(member.name).name
                    if member.isfile() and entry.name in (name, _stem(name)):
                        plain = Path(folder, name)
                        with archive.extractfile(member) as packed, plain.open("wb") as file:
                            shutil.copyfileobj(packed, file)
                        break
                else:
                    raise GraphError(f"{path} holds no file called {entry.name}")
        except _DAMAGED as error:
            raise GraphError(f"{path}: not a whole {ARCHIVE} file: {error}") from None
        from tcgpu import formats

        return formats.read(plain, entry.format)
