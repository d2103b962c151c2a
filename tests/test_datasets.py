"""Named graphs: published numbers; loading from a server, a folder, the package and the cache."""

import ast
import csv
import hashlib
import io
import socket
import tarfile
import threading
import warnings
from contextlib import contextmanager
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest

import tcgpu
from tcgpu import datasets, formats, generators
from tcgpu.generators import GENERATORS

REPORT = ["delaunay_n22", "great-britain_osm", "auto", "coPapersCiteseer"]


@pytest.fixture(autouse=True)
def own_cache(monkeypatch, tmp_path):
    """Give every test a folder of its own for downloads, and no folder of graphs."""
    monkeypatch.setattr(datasets, "cache_folder", lambda: tmp_path / "cache")
    monkeypatch.delenv("TCGPU_GRAPHS", raising=False)


# --------------------------------------------------------------------------------------------------------- the figures


@pytest.fixture
def entries():
    return {entry.name: entry for entry in datasets.catalogue()}


def test_families(entries):
    families = [entry.family for entry in entries.values()]
    assert families.count("report") == 4
    assert families.count("graph challenge") == 61
    assert families.count("generated") == len(datasets._index(datasets.data_path("graphs")))
    assert len(entries) == len(datasets.catalogue())  # no name is there twice


@pytest.mark.parametrize(
    "name, vertices, edges, nonzeros, reported",
    [
        ("delaunay_n22", 4_194_304, 12_582_869, 3.00, 1.5),
        ("great-britain_osm", 7_733_822, 8_156_517, 1.05, 3),
        ("auto", 448_695, 3_314_611, 7.39, 7.3),
        ("coPapersCiteseer", 434_102, 16_036_720, 36.94, 36.9),
    ],
)
def test_the_reports_matrices(entries, name, vertices, edges, nonzeros, reported):
    entry = entries[name]
    assert (entry.family, entry.vertices, entry.edges) == ("report", vertices, edges)
    assert entry.nonzeros_per_column == pytest.approx(nonzeros, abs=0.005)
    assert entry.reported_nonzeros_per_column == reported
    assert ("swapped" in entry.note) == (abs(entry.nonzeros_per_column - reported) > 0.5)
    assert entry.url == f"https://sparse.tamu.edu/MM/DIMACS10/{name}.tar.gz"


def test_the_reports_speedups_follow_from_its_times():
    rows = datasets.published("report_matrices")
    assert [row["graph"] for row in rows] == REPORT
    for row in rows:
        assert row["simple_ms"] / row["shared_ms"] == pytest.approx(row["speedup"], abs=0.01)


def test_bissons_table():
    rows = datasets.published("bisson_table1")
    assert len(rows) == 61
    assert {row["kernel_type"] for row in rows} == {"thr", "wrp", "bsh", "blk"}
    for row in rows:
        assert min(row["vertices"], row["edges"], row["triangles"]) > 0
        for kind in "", "truss_":
            times = [row[f"{kind}{timing}_seconds"] for timing in ("kernel", "process", "total")]
            known = [time for time in times if time is not None]
            assert known == sorted(known)
            assert len(known) == 3 or row["note"], row["graph"]


def test_bissons_table_agrees_with_the_text_of_its_paper():
    """Its heuristic "is able to select the best kernel for 93% of the datasets", and for 90% in k-truss."""
    rows = datasets.published("bisson_table1")
    best = [100 * (1 - sum(row[kind] for row in rows) / len(rows)) for kind in ("suboptimal_count", "suboptimal_truss")]
    assert best == pytest.approx([93, 90], abs=0.5)


def test_bissons_table_follows_its_heuristic():
    """Algorithm 5: a warp owns a row below 8 edges a vertex, else a block, with shared memory up to 2^17 vertices."""
    for row in datasets.published("bisson_table1"):
        if row["kernel_type"] != "thr":
            below = row["edges"] / row["vertices"] < 8
            assert row["kernel_type"] == ("wrp" if below else "bsh" if row["vertices"] < 1024 * 128 else "blk")


def test_the_slides_graphs_are_in_the_catalogue_or_can_be_made(entries):
    """Those with a public source or a generator. Of the others, the note has the reason."""
    here = {row["graph"]: row for row in datasets.published("tricore_datasets") if row["here"]}
    assert here.keys() == {"Twitter", "Random", "Kronecker1", "Kronecker2", "Kron-30-16"}
    for name in "Twitter", "Kronecker2":  # loaded; as many edges and triangles as printed, to the digits printed
        row, entry = here[name], entries[here[name]["here"]]
        assert entry.edges == pytest.approx(row["edges"], rel=0.05) and entry.url
        assert entry.triangles == pytest.approx(row["triangles"], rel=0.03)
        assert f"{entry.triangles / 1e9:.1f} billion triangles" in row["note"]
    for name in "Random", "Kronecker1", "Kron-30-16":
        row, call = here[name], ast.parse(here[name]["here"], mode="eval").body
        sizes = {word.arg: ast.literal_eval(word.value) for word in call.keywords}
        n = sizes.get("n") or 1 << sizes["scale"]
        m = sizes.get("m") or sizes.get("edge_factor", 16) * n
        assert (
            n == pytest.approx(row["vertices"], rel=0.05) and 0 <= m - row["edges"] / (1 + (name == "Random")) < 0.1 * m
        )
        smaller = {"n": 100, "m": 300} if "n" in sizes else sizes | {"scale": 5}
        assert GENERATORS[call.func.id](**smaller).m > 0
    assert all(row["note"] for row in datasets.published("tricore_datasets"))


def test_published_figures_are_those_of_the_files(entries, graphs_folder):
    index = {row["name"]: row for row in datasets._index(graphs_folder)}
    both = set(index) & set(entries)
    assert len(both) > 5
    for name in both:
        facts = tuple(int(index[name][what]) for what in ("vertices", "edges", "triangles"))
        assert facts == (entries[name].vertices, entries[name].edges, entries[name].triangles)


def test_urls_are_distinct_and_complete(entries):
    urls = [entry.url for entry in entries.values() if entry.url]
    assert len(set(urls)) == len(urls) == 65
    assert all(url.startswith(("https://", "http://an.kaist.ac.kr/")) and "{" not in url for url in urls)
    challenge = "https://graphchallenge.s3.amazonaws.com"
    assert entries["ca-GrQc"].url == f"{challenge}/snap/ca-GrQc/ca-GrQc_adj.tsv"
    name = "graph500-scale18-ef16"
    assert entries[name].url == f"{challenge}/synthetic/{name}/{name}_adj.tsv.gz"


CHECKSUMS = datasets.published("checksums")
DIGEST = "0cbf5df80f2979a2366253a425bcd10f8a9b314fe4be7866b2e91737fce667a9"  # of all of them
REBUILT = {row["graph"]: row["checksum"] for row in CHECKSUMS if row["source"] == "rebuilt from SNAP"}


def test_checksums_are_of_files_in_the_catalogue(entries):
    assert len({row["graph"] for row in CHECKSUMS}) == len(CHECKSUMS) == 34
    lengths = {"sha256": 64, "md5": 32}
    for row in CHECKSUMS:
        algorithm, _, digest = row["checksum"].partition(":")
        assert len(digest) == lengths[algorithm] and set(digest) <= set("0123456789abcdef")
        assert entries[row["graph"]].url and entries[row["graph"]].checksum == row["checksum"]
    assert all(entries[name].checksum for name in REPORT)
    assert not any(entry.checksum for entry in entries.values() if entry.url is None)


def test_no_digit_of_a_checksum_is_changed():
    """No download tells: here are none. A new or corrected line of the file changes this number, too."""
    listed = "".join(sorted(f"{row['graph']} {row['checksum']}\n" for row in CHECKSUMS))
    assert hashlib.sha256(listed.encode()).hexdigest() == DIGEST


def test_triangles_are_published_for_files_without_a_checksum(entries):
    assert all(entry.checksum or entry.triangles for entry in entries.values() if entry.url)


@pytest.mark.parametrize("name", REBUILT)
def test_checksums_of_files_rebuilt_from_those_of_snap(graphs_folder, name):
    """The Graph Challenge's files, byte for byte, as data/published/README.md describes them."""
    index = {entry["name"]: entry["file"] for entry in datasets._index(graphs_folder)}
    path = str(graphs_folder / index[name])
    u, v, n, ids = formats.FORMATS[formats.format_of(path)].read_edges(path)
    names = range(n) if ids is None else ids.tolist()
    number = {vertex: k for k, vertex in enumerate(sorted(range(n), key=lambda vertex: str(names[vertex])), 1)}
    pairs = {(number[a], number[b]) for a, b in zip(u.tolist(), v.tolist(), strict=True) if a != b}
    lines = (f"{row}\t{column}\t1\n" for column, row in sorted(pairs | {(b, a) for a, b in pairs}))
    assert f"sha256:{hashlib.sha256(''.join(lines).encode()).hexdigest()}" == REBUILT[name]


# ---------------------------------------------------------------------------------------------------- in the package

BUNDLED = datasets._index(datasets.data_path("graphs"))


@pytest.mark.parametrize("row", BUNDLED, ids=lambda row: row["name"])
def test_bundled_graphs(row):
    """Each file holds the graph that its recorded call makes, with the recorded figures."""
    graph = tcgpu.read(datasets.data_path("graphs", row["file"]), row["format"])
    assert (graph.n, graph.m, tcgpu.count(graph)) == tuple(
        int(row[what]) for what in ("vertices", "edges", "triangles")
    )
    call = ast.parse(row["made"], mode="eval").body
    made = GENERATORS[call.func.id](**{word.arg: ast.literal_eval(word.value) for word in call.keywords})
    assert made.equals(graph)
    assert made.name == row["made"]
    assert tcgpu.load(row["name"]).equals(graph)
    assert tcgpu.read(datasets.fetch(row["name"])).equals(graph)


def test_bundled_graphs_cover_the_formats():
    assert {row["format"] for row in BUNDLED} == {name for name, format in formats.FORMATS.items() if format.write}
    assert {".gz", ".bz2", ".xz"} <= {formats.compression(row["file"]) for row in BUNDLED}
    headers = {
        datasets.data_path("graphs", row["file"]).read_text().split("\n")[0]
        for row in BUNDLED
        if row["file"].endswith(".mtx")
    }
    assert headers == {
        "%%MatrixMarket matrix coordinate pattern symmetric",
        "%%MatrixMarket matrix coordinate integer general",
    }


def test_no_file_without_an_entry(root):
    folder = root / "data" / "graphs"
    assert {path.name for path in folder.iterdir() if path.name != "__pycache__"} == {
        row["file"] for row in BUNDLED
    } | {"INDEX.tsv", "make.py"}


# -------------------------------------------------------------------------------------------------------- downloading

TINY = generators.mesh(4, 5)


@pytest.fixture
def site(monkeypatch, tmp_path):
    """The folder of a local server, for a package whose report has one tiny matrix."""
    folder = tmp_path / "site"
    folder.mkdir()
    publish(monkeypatch, tmp_path, TINY)
    with serving(folder) as address, warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".*without encryption")  # as this server is
        monkeypatch.setattr(datasets, "SUITESPARSE", address + "/{name}.tar.gz")
        yield folder


def list_checksum(tmp_path, checksum):
    """List the checksum of the tiny matrix's file in the package."""
    table = tmp_path / "installed" / "data" / "published" / "checksums.csv"
    table.write_text(f"graph,checksum,source\ntiny,{checksum},here\n")


def publish(monkeypatch, tmp_path, graph):
    published = tmp_path / "installed" / "data" / "published"
    (tmp_path / "installed" / "data" / "graphs").mkdir(parents=True)
    published.mkdir()
    (published / "checksums.csv").write_text("graph,checksum,source\n")
    for table in "report_matrices", "bisson_table1":
        with datasets.data_path("published", f"{table}.csv").open(newline="") as file:
            header = next(csv.reader(file))
        row = {"graph": "tiny", "vertices": graph.n, "edges": graph.m, "nonzeros_per_column": 1.5, "triangles": 24}
        with (published / f"{table}.csv").open("w", newline="") as file:
            writer = csv.DictWriter(file, header)
            writer.writeheader()
            if table == "report_matrices":
                writer.writerow(row)
    monkeypatch.setattr(datasets, "_PACKAGE", tmp_path / "installed")


@contextmanager
def serving(folder):
    class Quiet(SimpleHTTPRequestHandler):
        def __init__(self, *args):
            super().__init__(*args, directory=str(folder))

        def log_message(self, *_):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Quiet) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


def archive(graph, tmp_path, member="tiny/tiny.mtx"):
    """An archive as SuiteSparse serves it: a .tar.gz with the matrix and other files."""
    formats.write(graph, tmp_path / "plain.mtx")
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as tar:
        for name, content in (("tiny/tiny_coord.mtx", b"no graph"), (member, (tmp_path / "plain.mtx").read_bytes())):
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    return packed.getvalue()


def cached(tmp_path):
    return sorted(path.name for path in (tmp_path / "cache").iterdir())


def test_load_downloads_once(site, tmp_path, capfd):
    (site / "tiny.tar.gz").write_bytes(archive(TINY, tmp_path))
    graph = tcgpu.load("tiny")
    assert graph.equals(TINY)
    assert graph.name == "tiny"
    assert cached(tmp_path) == ["tiny"]
    (site / "tiny.tar.gz").unlink()
    assert tcgpu.load("tiny").equals(TINY)
    assert datasets.fetch("tiny") == tmp_path / "cache" / "tiny"
    assert tcgpu.read(datasets.fetch("tiny")).equals(TINY)
    assert capfd.readouterr() == ("", "")


def test_fetch_downloads(site, tmp_path):
    (site / "tiny.tar.gz").write_bytes(archive(TINY, tmp_path))
    assert tcgpu.read(datasets.fetch("tiny")).equals(TINY)


@pytest.mark.parametrize(
    "content, said",
    [
        (lambda whole: whole[: len(whole) // 2], r"tiny.tar.gz: not a whole .tar.gz file"),
        (lambda whole: b"<html>sorry</html>", r"tiny.tar.gz: not a whole .tar.gz file"),
        (lambda whole: b"", r"tiny.tar.gz: not a whole .tar.gz file"),
    ],
    ids=["truncated", "a page", "empty"],
)
def test_corrupt_downloads(site, tmp_path, content, said):
    """Nothing of them is kept: the next download can succeed."""
    whole = archive(TINY, tmp_path)
    (site / "tiny.tar.gz").write_bytes(content(whole))
    with pytest.raises(tcgpu.GraphError, match=said):
        tcgpu.load("tiny")
    assert cached(tmp_path) == []
    (site / "tiny.tar.gz").write_bytes(whole)
    assert tcgpu.load("tiny").equals(TINY)


@pytest.mark.parametrize("algorithm", ["sha256", "md5"])
def test_a_known_checksum(site, tmp_path, algorithm):
    whole = archive(TINY, tmp_path)
    other = archive(TINY, tmp_path, member="elsewhere/tiny.mtx")  # the same graph in another file
    list_checksum(tmp_path, f"{algorithm}:{hashlib.new(algorithm, whole).hexdigest()}")
    (site / "tiny.tar.gz").write_bytes(other)
    with pytest.raises(tcgpu.GraphError, match=f"at .* is not tiny: its checksum is not {algorithm}:.*TCGPU_GRAPHS"):
        tcgpu.load("tiny")
    assert cached(tmp_path) == []
    (site / "tiny.tar.gz").write_bytes(whole)
    assert tcgpu.load("tiny").equals(TINY)
    assert cached(tmp_path) == ["tiny"]


def test_a_file_of_the_users_with_another_checksum_is_not_replaced(site, tmp_path):
    whole, other = archive(TINY, tmp_path), archive(TINY, tmp_path, member="elsewhere/tiny.mtx")
    list_checksum(tmp_path, f"sha256:{hashlib.sha256(whole).hexdigest()}")
    (site / "tiny.tar.gz").write_bytes(whole)
    (tmp_path / "cache").mkdir()
    mine = tmp_path / "cache" / "tiny.tar.gz"
    mine.write_bytes(other)
    with pytest.raises(tcgpu.GraphError, match=r"cache/tiny\.tar\.gz is not tiny: its checksum is not .*; to use"):
        tcgpu.load("tiny")
    assert mine.read_bytes() == other and cached(tmp_path) == ["tiny.tar.gz"]
    mine.write_bytes(whole)
    assert tcgpu.load("tiny").equals(TINY)


def test_without_a_checksum_the_triangles_are_checked(site, tmp_path):
    """As many vertices and edges as are published, but other triangles."""
    edges = [(k, (k + d) % 20) for d in (1, 5) for k in range(20)] + [(0, 2), (1, 3), (2, 4)]
    ring = tcgpu.Graph.from_edges(*zip(*edges, strict=True))
    assert (ring.n, ring.m) == (TINY.n, TINY.m) and tcgpu.count(ring) != tcgpu.count(TINY) == 24
    (site / "tiny.tar.gz").write_bytes(archive(ring, tmp_path))
    with pytest.raises(tcgpu.GraphError, match="tiny.tar.gz is not tiny: it has 3 triangles, published are 24"):
        tcgpu.load("tiny")
    assert cached(tmp_path) == []


def test_a_download_without_encryption_warns(site, tmp_path):
    (site / "tiny.tar.gz").write_bytes(archive(TINY, tmp_path))
    with pytest.warns(UserWarning, match="http://.*/tiny.tar.gz is read without encryption; vertices, edges and tri"):
        tcgpu.load("tiny")
    with warnings.catch_warnings():  # what is here already is not downloaded
        warnings.simplefilter("error")
        tcgpu.load("tiny")


def test_another_graph_under_the_name(site, tmp_path):
    (site / "tiny.tar.gz").write_bytes(archive(generators.mesh(4, 6), tmp_path))
    with pytest.raises(
        tcgpu.GraphError, match="tiny.tar.gz is not tiny: it has 24 vertices and 53 edges, published are 20 and 43"
    ):
        tcgpu.load("tiny")
    assert cached(tmp_path) == []


def test_an_archive_without_the_graph(site, tmp_path):
    (site / "tiny.tar.gz").write_bytes(archive(TINY, tmp_path, member="tiny/other.mtx"))
    with pytest.raises(tcgpu.GraphError, match="tiny.tar.gz holds no file called tiny"):
        tcgpu.load("tiny")


def test_a_file_that_is_not_there(site, tmp_path):
    with pytest.raises(tcgpu.GraphError, match="tiny could not be downloaded from .*404"):
        tcgpu.load("tiny")


def test_no_network(site, monkeypatch, tmp_path):
    """The message has the address and both remedies; both work."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    monkeypatch.setattr(datasets, "SUITESPARSE", f"http://127.0.0.1:{port}/{{name}}.tar.gz")
    with pytest.raises(tcgpu.GraphError) as caught:
        tcgpu.load("tiny")
    said = str(caught.value)
    assert f"tiny could not be downloaded from http://127.0.0.1:{port}/tiny.tar.gz (" in said
    assert f"put tiny.tar.gz into {tmp_path / 'cache'} by hand, or name a folder in TCGPU_GRAPHS" in said
    assert "\n" not in said

    own = tmp_path / "own"
    own.mkdir()
    formats.write(TINY, own / "tiny.graph.gz")
    monkeypatch.setenv("TCGPU_GRAPHS", str(own))
    assert tcgpu.load("tiny").equals(TINY)
    monkeypatch.delenv("TCGPU_GRAPHS")

    (tmp_path / "cache" / "tiny.tar.gz").write_bytes(archive(TINY, tmp_path))
    assert tcgpu.load("tiny").equals(TINY)
    assert cached(tmp_path) == ["tiny", "tiny.tar.gz"]  # a file that the user put there stays


# ------------------------------------------------------------------------------------------------------- one's own


def test_own_folder_with_an_index(graphs_folder, monkeypatch):
    monkeypatch.setenv("TCGPU_GRAPHS", str(graphs_folder))
    families = {entry.name: entry.family for entry in datasets.catalogue()}
    assert families["karate"] == "local"
    assert families["ca-GrQc"] == "graph challenge"
    graph = tcgpu.load("ca-GrQc")
    assert (graph.n, graph.m, tcgpu.count(graph), graph.name) == (5242, 14484, 48260, "ca-GrQc")
    assert tcgpu.count(tcgpu.load("karate")) == 45
    assert datasets.fetch("as20000102") == graphs_folder / "as20000102.txt"


def test_own_folder_without_an_index(site, monkeypatch, tmp_path):
    """A file with the name of the graph is enough."""
    own = tmp_path / "own"
    own.mkdir()
    monkeypatch.setenv("TCGPU_GRAPHS", str(own))
    for file in "tiny.mtx", "tiny.graph", "tiny_adj.tsv", "tiny.npz", "tiny/":
        (own / "other.mtx").write_text("of another name")
        formats.write(TINY, f"{own}/{file}")
        assert tcgpu.load("tiny").equals(TINY), file
        assert datasets.fetch("tiny") == own / file
        for path in own.rglob("*"):
            path.is_file() and path.unlink()
        (own / "tiny").is_dir() and (own / "tiny").rmdir()


def test_every_graph_of_an_own_folder_is_listed_and_can_be_loaded(monkeypatch, tmp_path):
    own, graphs = tmp_path / "own", {}
    (own / "empty").mkdir(parents=True)
    monkeypatch.setenv("TCGPU_GRAPHS", str(own))
    made = "mine.mtx.gz", "mine.el", "auto_adj.tsv", "rmat_8.npz", "listed.txt", "kept/"
    for k, file in enumerate(made):
        graph = generators.mesh(3, 3 + k)
        formats.write(graph, f"{own}/{file}")
        graphs[file] = graph
    (own / "notes.md").write_text("of no format")
    listed = f"listed as\tlisted.txt\tel\t{graphs['listed.txt'].n}\t{graphs['listed.txt'].m}\t24\n"
    (own / "INDEX.tsv").write_text(f"name\tfile\tformat\tvertices\tedges\ttriangles\n{listed}")
    names = ["auto", "kept", "listed as", "mine", "mine.mtx.gz", "rmat_8"]
    assert [entry.name for entry in datasets.own()] == names
    entries = {entry.name: entry for entry in datasets.here()}
    assert set(names) <= set(entries) and len(entries) == len(BUNDLED) + len(names) - 1
    assert (entries["mine"].edges, entries["mine"].nonzeros_per_column) == (None, 0)
    for name, file in zip(names[1:], ("kept/", "listed.txt", "mine.el", "mine.mtx.gz", "rmat_8.npz"), strict=True):
        assert tcgpu.load(name).equals(graphs[file]) and entries[name].family == "local", name
    with pytest.raises(tcgpu.GraphError, match="auto_adj.tsv is not auto: it has 15 vertices and .* published are 448"):
        tcgpu.load("auto")  # the name of one of the report's matrices


def test_what_is_here_are_the_package_the_own_folder_and_downloads(site, monkeypatch, tmp_path):
    assert [entry.name for entry in datasets.here()] == []
    (site / "tiny.tar.gz").write_bytes(archive(TINY, tmp_path))
    tcgpu.load("tiny")
    assert [entry.name for entry in datasets.here()] == ["tiny"]
    (tmp_path / "own").mkdir()
    monkeypatch.setenv("TCGPU_GRAPHS", str(tmp_path / "own"))
    formats.write(TINY, tmp_path / "own" / "tiny.mtx")
    assert [entry.name for entry in datasets.here()] == ["tiny"]
    monkeypatch.setenv("TCGPU_GRAPHS", str(tmp_path / "nowhere"))
    assert datasets.own() == [] and len(datasets.here()) == 1


def test_own_folder_with_something_else(site, monkeypatch, tmp_path):
    own = tmp_path / "own"
    own.mkdir()
    formats.write(generators.mesh(3, 3), own / "tiny.mtx")
    monkeypatch.setenv("TCGPU_GRAPHS", str(own))
    with pytest.raises(tcgpu.GraphError, match="own/tiny.mtx is not tiny: it has 9 vertices"):
        tcgpu.load("tiny")


@pytest.mark.parametrize(
    "name, near", [("delaunay", "delaunay_n22"), ("copapersciteseer", "coPapersCiteseer"), ("", "delaunay_n22")]
)
def test_unknown_names(name, near):
    with pytest.raises(tcgpu.GraphError, match=f"no dataset {name!r}.*; there are .*{near}"):
        tcgpu.load(name)


def test_vertex_numbers_with_gaps(tmp_path):
    """Twitter's vertices are published as the largest number in its file plus 1, its edges as the lines of the file."""
    file = tmp_path / "gaps.txt"
    file.write_text("5 9\n9 5\n9 100\n5 100\n7 7\n")
    whole = {"name": "gaps", "family": "local", "triangles": 1, "source": "", "url": None, "format": "edges"}
    for vertices, edges in (101, 5), (4, 3), (101, 3):
        datasets._checked(datasets.Dataset(vertices=vertices, edges=edges, **whole), file, "edges")
    for vertices, edges in (100, 5), (101, 4), (3, 3):
        with pytest.raises(tcgpu.GraphError, match="is not gaps"):
            datasets._checked(datasets.Dataset(vertices=vertices, edges=edges, **whole), file, "edges")


def test_data_of_a_wheel_and_of_a_checkout(monkeypatch, tmp_path):
    monkeypatch.setattr(datasets, "_PACKAGE", tmp_path / "tcgpu")
    with pytest.raises(tcgpu.GraphError, match="data/published/a.csv did not come with this installation"):
        datasets.data_path("published", "a.csv")
    for home in tmp_path, tmp_path / "tcgpu":  # beside the package, then inside it, which goes first
        (home / "data" / "published").mkdir(parents=True)
        (home / "data" / "published" / "a.csv").write_text("a\n")
        assert datasets.data_path("published", "a.csv") == home / "data" / "published" / "a.csv"
