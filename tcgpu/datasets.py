"""Datasets: graphs by name, with what is published of them; downloaded once, when first asked for.

    catalogue()     every graph there is, as Dataset entries
    load(name)      the Graph
    fetch(name)     where its file or folder is

The entries are the four matrices of the report, all of Bisson & Fatica's Table I, and small generated graphs that come
with the package. TCGPU_GRAPHS names a folder of graphs of one's own: what is there is not downloaded, and with an
INDEX.tsv (name, file, format, vertices, edges, triangles) its graphs are in the catalogue, too. TCGPU_CACHE names the
folder that downloads go to.

A download has to have the checksum that `data/published/checksums.csv` states. For a file that is not in it, the
numbers of vertices, edges and triangles have to be those published, and the SHA-256 of the first download that passes
is noted: a later download has to have the same. All addresses are https but that of Twitter's graph, for which no other
is known: its download warns.
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

from tcgpu import cpu, formats
from tcgpu.errors import GraphError
from tcgpu.formats.files import replacing
from tcgpu.suggest import did_you_mean

SUITESPARSE = "https://sparse.tamu.edu/MM/DIMACS10/{name}.tar.gz"
SNAP = "https://graphchallenge.s3.amazonaws.com/snap/{name}/{name}_adj.tsv"
GRAPH500 = "https://graphchallenge.s3.amazonaws.com/synthetic/{name}/{name}_adj.tsv.gz"
TWITTER = "http://an.kaist.ac.kr/~haewoon/release/twitter_social_graph/twitter_rv.tar.gz"
ARCHIVE = ".tar.gz"

_PACKAGE = Path(__file__).resolve().parent
_CORRUPT = (tarfile.TarError, zlib.error, EOFError, OSError)


@dataclass(frozen=True)
class Dataset:
    """What is published of a graph, and where it comes from.

    family: `report`, `graph challenge`, `generated` (in the package) or `local` (in the folder TCGPU_GRAPHS).
    triangles: None where the source gives no count. reported_nonzeros_per_column: what the report prints, if it does;
    `note` says where that does not fit vertices and edges. url: None for what needs no download. checksum: of the file
    at `url`, "sha256:..." or "md5:..."; None where it is not known.
    """

    name: str
    family: str
    vertices: int
    edges: int
    triangles: int | None
    source: str
    url: str | None
    format: str
    reported_nonzeros_per_column: float | None = None
    note: str = ""
    checksum: str | None = None

    @property
    def nonzeros_per_column(self):
        return self.edges / self.vertices if self.vertices else 0.0


def catalogue():
    """Every graph that `load` knows: a list of Dataset."""
    entries = [*_report(), *_graph_challenge(), *_indexed(data_path("graphs"), "generated")]
    known = {entry.name for entry in entries}
    own = _indexed(_own_folder(), "local") if _own_folder() else []
    return entries + [entry for entry in own if entry.name not in known]


def own():
    """The entries of the catalogue whose files are in the folder that TCGPU_GRAPHS names: a list of Dataset."""
    folder = _own_folder()
    at_hand = [(entry, _at_hand(entry)[0]) for entry in catalogue()] if folder else []
    return [entry for entry, path in at_hand if path is not None and path.parent == folder]


def load(name):
    """The graph called `name` in the catalogue, GraphError if it is not what is published.

    It is looked for in the folder that TCGPU_GRAPHS names, in the package, and among earlier downloads, and then
    downloaded. A file of one's own has to have the published numbers of vertices and edges. A download has to have
    these, too, and the known checksum of its file, or, where none is known, the published number of triangles. What
    passed is kept as a folder of memory-mapped arrays, which opens at once; of an earlier download, the columns are
    checked to be those of a graph, not compared with the file again.
    """
    entry = _entry(name)
    path, format = _at_hand(entry)
    if path is not None:
        graph = _checked(entry, path, format)
    else:
        kept = cache() / entry.name
        graph = formats.read(kept if kept.is_dir() else _download(entry), "folder")
    graph.name = entry.name
    return graph


def fetch(name):
    """Where the graph called `name` is, downloaded if need be: a path that `tcgpu.read` takes."""
    entry = _entry(name)
    path, _ = _at_hand(entry)
    kept = cache() / entry.name
    return path or (kept if kept.is_dir() else _download(entry))


def cache():
    """The folder that downloads go to: what TCGPU_CACHE says, else where this system keeps such things."""
    import pooch

    return Path(os.environ.get("TCGPU_CACHE") or pooch.os_cache("tcgpu"))


def data_path(*parts):
    """Where a file of the package's `data` is: inside an installed package, beside the package in a checkout."""
    for home in _PACKAGE, _PACKAGE.parent:
        path = home.joinpath("data", *parts)
        if path.exists():
            return path
    raise GraphError(f"{Path('data', *parts)} did not come with this installation of tcgpu")


# ------------------------------------------------------------------------------------------------------------- entries


def published(table):
    """The rows of data/published/<table>.csv as dicts: whole numbers, numbers, text, None where nothing is printed."""
    with data_path("published", f"{table}.csv").open(newline="", encoding="utf-8") as file:
        return [{key: _parsed(text) for key, text in row.items()} for row in csv.DictReader(file)]


def _parsed(text):
    for kind in int, float:
        with contextlib.suppress(ValueError):
            return kind(text)
    return text or None


def _checksums():
    """The known checksums of files to download, by the name of the graph."""
    return {row["graph"]: row["checksum"] for row in published("checksums")}


def _report():
    checksums = _checksums()
    for row in published("report_matrices"):
        yield Dataset(
            name=row["graph"],
            family="report",
            vertices=row["vertices"],
            edges=row["edges"],
            triangles=row["triangles"],
            source="SuiteSparse Matrix Collection, DIMACS10",
            url=SUITESPARSE.format(name=row["graph"]),
            format="mtx",
            reported_nonzeros_per_column=row["nonzeros_per_column"],
            note=row["note"] or "",
            checksum=checksums.get(row["graph"]),
        )


def _graph_challenge():
    checksums = _checksums()
    for row in published("bisson_table1"):
        name = row["graph"]
        if name.startswith("graph500"):
            source, url = "Graph Challenge, graph500", GRAPH500.format(name=name)
        elif name.startswith("twitter"):
            source, url = "Kwak et al., WWW 2010", TWITTER
        else:
            source, url = "Graph Challenge, SNAP", SNAP.format(name=name)
        yield Dataset(
            name=name,
            family="graph challenge",
            vertices=row["vertices"],
            edges=row["edges"],
            triangles=row["triangles"],
            source=source,
            url=url,
            format="edges",
            checksum=checksums.get(name),
        )


def _indexed(folder, family):
    for row in _index(folder):
        yield Dataset(
            name=row["name"],
            family=family,
            vertices=int(row["vertices"]),
            edges=int(row["edges"]),
            triangles=int(row["triangles"]),
            source=row.get("made") or str(folder),
            url=None,
            format=_format(row),
            note=row.get("note") or "",
        )


def _entry(name):
    entries = {entry.name: entry for entry in catalogue()}
    if name not in entries:
        near = difflib.get_close_matches(str(name), entries, 3, 0.5) or list(entries)[:4]
        some = f"{', '.join(near)}, and more in datasets.catalogue()"
        raise GraphError(f"no dataset {name!r}{did_you_mean(name, entries)}; there are {some}")
    return entries[name]


# ------------------------------------------------------------------------------------------------------- what is there


def _own_folder():
    folder = os.environ.get("TCGPU_GRAPHS")
    return Path(folder) if folder else None


def _index(folder):
    """The rows of a folder's INDEX.tsv; none where it has none."""
    try:
        with (folder / "INDEX.tsv").open(newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file, delimiter="\t"))
    except FileNotFoundError:
        return []


def _format(row):
    return {"el": "edges"}.get(row["format"], row["format"])


def _at_hand(entry):
    """The file of an entry that needs no download, and its format: `(path, format)`, or `(None, None)`."""
    for folder in filter(None, (_own_folder(), data_path("graphs"))):
        for row in _index(folder):
            if row["name"] == entry.name:
                return folder / row["file"], _format(row)
        if folder.is_dir():
            for path in sorted(folder.iterdir()):
                if _called(path.name, entry.name) and not path.name.endswith(ARCHIVE):
                    return path, None  # its ending says the format
    return None, None


def _called(file, name):
    """Whether a file is called after a graph: `name.mtx`, `name.txt.gz`; `name_adj.tsv`, as in the Graph Challenge."""
    return file.partition(".")[0].removesuffix("_adj") == name


# ------------------------------------------------------------------------------------------------------------ download


def _download(entry):
    """Download, check and keep the graph of an entry: the folder that it is in from now on."""
    folder = cache()
    file = folder / entry.url.rpartition("/")[2]
    noted = folder / f"{entry.name}.sha256"
    given = file.exists()  # put there by hand
    _retrieve(entry, file, noted)
    try:
        graph = _checked(entry, file, entry.format)
        if entry.checksum is None:
            _check_triangles(entry, graph, file)
    except GraphError:
        if not given:
            file.unlink(missing_ok=True)
        raise
    if not noted.exists():
        import pooch

        with replacing(noted) as stream:
            stream.write(f"{pooch.file_hash(str(file))}  {file.name}\n".encode())
    kept = folder / entry.name
    formats.write(graph, kept, "folder")
    if not given:
        file.unlink()
    return kept


def _retrieve(entry, file, noted):
    """Have the file of an entry in the cache; GraphError if its checksum is not the one that is known or noted."""
    import pooch

    checksum = entry.checksum
    if checksum is None and noted.exists():
        checksum = f"sha256:{noted.read_text().split()[0]}"
    by_hand = f"name a folder in TCGPU_GRAPHS that holds {entry.name} in any format"
    if file.exists():  # pooch would replace it by a download if its checksum were wrong
        algorithm, _, wanted = (checksum or "").partition(":")
        if checksum and pooch.file_hash(str(file), algorithm) != wanted:
            raise GraphError(f"{file} is not what {entry.url} held: its {checksum} is another; remove it, or {by_hand}")
        return
    if entry.url.startswith("http:"):
        checks = "its checksum is" if checksum else "vertices, edges and triangles are"
        warnings.warn(f"{entry.url} is read without encryption; {checks} checked", stacklevel=2)
    try:
        with _quiet(pooch.get_logger()):
            pooch.retrieve(entry.url, checksum, file.name, file.parent)
    except ValueError:  # the checksum is another
        if entry.checksum is not None:
            raise GraphError(
                f"what {entry.url} holds is not {entry.name}: its checksum is not {checksum}; "
                f"if another file of this graph is to be trusted, {by_hand}"
            ) from None
        raise GraphError(
            f"what {entry.url} holds now is not what it held before; remove {noted} to accept it"
        ) from None
    except OSError as error:
        said = str(error).split("\n")[0]
        raise GraphError(
            f"{entry.name} could not be downloaded from {entry.url} ({said}); put {file.name} into {file.parent} "
            f"by hand, or {by_hand}"
        ) from None


@contextlib.contextmanager
def _quiet(logger):
    level = logger.level
    logger.setLevel("WARNING")
    try:
        yield
    finally:
        logger.setLevel(level)


def _checked(entry, path, format):
    """The graph in a file, GraphError unless it has the vertices and edges that are published."""
    graph = _unpacked(entry, path) if path.name.endswith(ARCHIVE) else formats.read(path, format)
    dropped = graph.cleaned.loops + graph.cleaned.duplicates + graph.cleaned.reversed
    if entry.vertices not in (graph.n, _numbers(graph)) or entry.edges not in (graph.m, graph.m + dropped):
        raise GraphError(
            f"{path} is not {entry.name}: it has {graph.n:,} vertices and {graph.m:,} edges, published are "
            f"{entry.vertices:,} and {entry.edges:,}"
        )
    return graph


def _check_triangles(entry, graph, path):
    """GraphError if a graph has not the published number of triangles."""
    if entry.triangles is not None and (found := cpu.count(graph)) != entry.triangles:
        raise GraphError(f"{path} is not {entry.name}: it has {found:,} triangles, published are {entry.triangles:,}")


def _numbers(graph):
    """The largest number that the source has for a vertex, plus 1: some count that as vertices."""
    return int(np.max(graph.labels)) + 1 if graph.n and np.asarray(graph.labels).dtype.kind in "iu" else graph.n


def _unpacked(entry, path):
    """The graph in an archive: in the member that is called as the entry is."""
    cache().mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=cache()) as folder:
        try:
            with tarfile.open(path) as archive:
                for member in archive:
                    if member.isfile() and _called(Path(member.name).name, entry.name):
                        plain = Path(folder, Path(member.name).name)
                        with archive.extractfile(member) as packed, plain.open("wb") as file:
                            shutil.copyfileobj(packed, file)
                        break
                else:
                    raise GraphError(f"{path} holds no file called {entry.name}")
        except _CORRUPT as error:
            raise GraphError(f"{path}: not a whole {ARCHIVE} file: {error}") from None
        return formats.read(plain, entry.format)
