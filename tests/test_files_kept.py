"""Existing files are kept: folders, modes, old content; and files that change while they are read."""

import gzip
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sampling import share

import tcgpu
from tcgpu import Graph, GraphError, files, read, write
from tcgpu.__main__ import main
from tcgpu.formats import binary, scan

EDGE = Graph.from_edges([0], [1])
PATH = Graph.from_edges([0, 1], [1, 2])


def content(folder):
    """Every file and folder below a folder, and the bytes of the files."""
    return {
        str(path.relative_to(folder)): path.read_bytes() if path.is_file() else None for path in Path(folder).rglob("*")
    }


# folders


def no_marker(folder):
    (folder / "cat").write_text("meow")


def a_description_of_another_program(folder):
    (folder / "graph.json").write_text('{"nodes": [], "links": []}')


def a_description_with_the_right_words(folder):
    (folder / "graph.json").write_text('{"vertices": 3, "edges": 2}')


def no_json(folder):
    (folder / "graph.json").write_text("[" * 100_000)


def numbers_in_text(folder):
    write(PATH, folder, format="folder")
    (folder / "graph.json").write_text('{"vertices": "3", "edges": 2}')


def another_file_beside_ours(folder):
    write(PATH, folder, format="folder")
    (folder / "notes.txt").write_text("dear")


def a_folder_beside_ours(folder):
    write(PATH, folder, format="folder")
    (folder / "photos").mkdir()
    (folder / "photos" / "cat").write_text("meow")


def labels_of_the_user(folder):
    write(PATH, folder, format="folder")
    np.save(folder / "labels.npy", np.arange(3))


def a_column_that_is_a_link(folder):
    write(PATH, folder, format="folder")
    (folder / "row_idx.npy").rename(folder.parent / "elsewhere.npy")
    (folder / "row_idx.npy").symlink_to(folder.parent / "elsewhere.npy")


def a_column_of_another_size(folder):
    write(PATH, folder, format="folder")
    np.save(folder / "row_idx.npy", np.arange(9))


def no_token(folder):
    write(PATH, folder, format="folder")
    said = json.loads((folder / "graph.json").read_text())
    (folder / "graph.json").write_text(json.dumps({key: said[key] for key in said if key != "token"}))


@pytest.mark.parametrize(
    "fill",
    [
        no_marker, a_description_of_another_program, a_description_with_the_right_words, no_json, numbers_in_text,
        another_file_beside_ours, a_folder_beside_ours, labels_of_the_user, a_column_that_is_a_link,
        a_column_of_another_size, no_token,
    ],
)  # fmt: skip
def test_a_folder_that_may_hold_something_else_is_left_as_it_is(tmp_path, fill, capsys):
    (tmp_path / "g").mkdir()
    fill(tmp_path / "g")
    write(EDGE, tmp_path / "x.mtx")
    before = content(tmp_path)
    with pytest.raises(GraphError, match="/g exists and holds other things than a graph of tcgpu; it is left as it is"):
        write(EDGE, tmp_path / "g", format="folder")
    assert main(["convert", str(tmp_path / "x.mtx"), str(tmp_path / "g"), "--to", "folder"]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    assert content(tmp_path) == before


def test_a_file_is_not_replaced_by_a_folder(tmp_path):
    (tmp_path / "g").write_text("meow")
    with pytest.raises(GraphError, match="left as it is"):
        write(EDGE, tmp_path / "g", format="folder")
    assert (tmp_path / "g").read_text() == "meow"


def test_our_own_folders_and_empty_ones_are_replaced(tmp_path):
    (tmp_path / "g").mkdir()
    for graph in (EDGE, PATH, Graph.from_edges([0], [1], labels=["a", "b"]), EDGE):
        write(graph, tmp_path / "g", format="folder")
        assert read(tmp_path / "g").equals(graph)
    tokens = {json.loads((tmp_path / "g" / "graph.json").read_text())["token"]}
    write(EDGE, tmp_path / "g", format="folder")
    tokens.add(json.loads((tmp_path / "g" / "graph.json").read_text())["token"])
    assert len(tokens) == 2
    assert os.listdir(tmp_path) == ["g"]


def test_folders_of_former_versions_are_read_and_replaced(tmp_path):
    write(PATH, tmp_path / "g", format="folder")
    (tmp_path / "g" / "graph.json").write_text('{"vertices": 3, "edges": 2}\n')
    assert read(tmp_path / "g").equals(PATH)
    write(EDGE, tmp_path / "g", format="folder")
    assert read(tmp_path / "g").equals(EDGE)
    (tmp_path / "g" / "graph.json").write_text('{"vertices": 2, "edges": 1}\n')
    (tmp_path / "g" / "notes.txt").write_text("dear")
    with pytest.raises(GraphError, match="left as it is"):
        write(PATH, tmp_path / "g", format="folder")
    assert (tmp_path / "g" / "notes.txt").read_text() == "dear" and read(tmp_path / "g").equals(EDGE)


def test_files_put_into_a_folder_while_it_is_replaced_are_kept(tmp_path, monkeypatch):
    write(EDGE, tmp_path / "g", format="folder")
    save = np.save

    def put_a_file_there(*args, **keywords):
        (tmp_path / "g" / "late.txt").write_text("meow")
        save(*args, **keywords)

    monkeypatch.setattr(np, "save", put_a_file_there)
    with pytest.raises(GraphError, match=r"/g is written; what was put into the old folder meanwhile is in (\S+)"):
        write(PATH, tmp_path / "g", format="folder")
    assert read(tmp_path / "g").equals(PATH)
    assert [path.read_text() for path in tmp_path.rglob("late.txt")] == ["meow"]


# modes, and writes that fail


def mode(path):
    return os.stat(path).st_mode & 0o7777


@pytest.mark.parametrize("name", ["x.txt", "x.mtx.gz", "x.npz"])
@pytest.mark.parametrize("access", [0o600, 0o640, 0o666, 0o755, 0o444])
def test_a_file_that_is_written_over_keeps_its_mode(tmp_path, name, access):
    write(EDGE, tmp_path / name)
    os.chmod(tmp_path / name, access)
    write(PATH, tmp_path / name)
    assert mode(tmp_path / name) == access and read(tmp_path / name).m == 2


def test_a_folder_that_is_written_over_keeps_its_mode(tmp_path):
    write(EDGE, tmp_path / "g", format="folder")
    os.chmod(tmp_path / "g", 0o700)
    write(PATH, tmp_path / "g", format="folder")
    assert mode(tmp_path / "g") == 0o700


def test_a_new_file_has_the_mode_that_the_umask_leaves(tmp_path):
    old = os.umask(0o027)
    try:
        write(EDGE, tmp_path / "x.txt")
    finally:
        os.umask(old)
    assert mode(tmp_path / "x.txt") == 0o640


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_a_file_that_is_written_over_keeps_its_owner_and_group(tmp_path):
    write(EDGE, tmp_path / "x.txt")
    os.chown(tmp_path / "x.txt", 1234, 2345)
    os.chmod(tmp_path / "x.txt", 0o640)
    write(PATH, tmp_path / "x.txt")
    status = os.stat(tmp_path / "x.txt")
    assert (status.st_uid, status.st_gid, status.st_mode & 0o777) == (1234, 2345, 0o640)


def test_if_the_group_cannot_be_kept_group_rights_are_removed(tmp_path, monkeypatch):
    def refuse(*args):
        raise PermissionError(1, "Operation not permitted")

    write(EDGE, tmp_path / "x.txt")
    os.chmod(tmp_path / "x.txt", 0o660)
    monkeypatch.setattr(os, "chown", refuse)
    write(PATH, tmp_path / "x.txt")
    assert mode(tmp_path / "x.txt") == 0o600


@pytest.mark.parametrize("missing", ["O_TMPFILE", "link"])
def test_without_files_that_have_no_name_the_same_is_written(tmp_path, monkeypatch, missing):
    if missing == "link":
        monkeypatch.setattr(os, "link", lambda *args, **keywords: os.stat("/nowhere"))
    else:
        monkeypatch.delattr(os, missing, raising=False)
    for graph in (EDGE, PATH):
        write(graph, tmp_path / "x.txt")
        assert read(tmp_path / "x.txt").equals(graph)
        os.chmod(tmp_path / "x.txt", 0o604)
    assert mode(tmp_path / "x.txt") == 0o604 and os.listdir(tmp_path) == ["x.txt"]


@pytest.mark.parametrize("ending", [".mtx", ".txt.xz", ".graph.gz", ".npz", "/"])
def test_a_failed_write_keeps_the_old_file_and_names_it(tmp_path, monkeypatch, ending):
    def fail(*args, **keywords):
        raise OSError("no room")  # as NumPy words it, without a number

    write(PATH, f"{tmp_path}/x{ending}")
    before = content(tmp_path)
    for owner, name in ((scan, "format_lines"), (np.lib.format, "write_array"), (np, "save")):
        monkeypatch.setattr(owner, name, fail)
    with pytest.raises(GraphError, match=f"^{tmp_path}/x{ending}: cannot be written: no room$"):
        write(EDGE, f"{tmp_path}/x{ending}")
    assert content(tmp_path) == before


@pytest.mark.parametrize("name", share(["y.txt", "y.mtx.gz", "y.graph.bz2", "y.mtx.xz", "y.npz", "y/"], "full disk"))
def test_the_command_line_names_the_file_if_the_disk_is_full(tmp_path, name):
    """A limit on the size of files fails as a full disk does: in the middle of a write, with a number of the system."""
    u, v = np.random.default_rng(1).integers(0, 20_000, (2, 40_000))
    write(Graph.from_edges(u, v, 20_000), tmp_path / "x.mtx")
    write(EDGE, f"{tmp_path}/{name}")
    before = content(tmp_path)
    done = subprocess.run(
        [sys.executable, "-m", "tcgpu", "convert", "x.mtx", name],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.fspath(Path(tcgpu.__file__).parent.parent)},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000)),
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2 and done.stderr.startswith(f"tcgpu: {name}: cannot be written: ")
    assert done.stderr.count("\n") == 1 and ".part" not in done.stderr and done.stdout == ""
    assert "requested" not in done.stderr  # as NumPy words it
    assert content(tmp_path) == before


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full on this system")
def test_a_device_that_is_full_is_named(capsys, tmp_path):
    write(PATH, tmp_path / "x.mtx")
    assert main(["convert", str(tmp_path / "x.mtx"), "/dev/full", "--to", "edges"]) == 2
    assert capsys.readouterr().err == "tcgpu: /dev/full: cannot be written: No space left on device\n"


TEXT = "# Nodes: 2 Edges: 1 (tcgpu: vertices from 0)\n0\t1\n"


@pytest.mark.parametrize("path", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "link.txt", "-"])
@pytest.mark.parametrize("mode", ["wb", "ab"])
@pytest.mark.parametrize("command", [("convert", "x.mtx"), ("truss", "x.mtx", "--k", "2", "-o")])
def test_an_open_file_is_written_on(tmp_path, monkeypatch, path, mode, command):
    """As the shell opens it, by > and >>: what is in it stays."""
    if not os.path.exists("/proc/self/fd") and "proc" in path:
        pytest.skip("no /proc here")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "link.txt").symlink_to("/dev/stdout")
    write(EDGE, "x.mtx")
    (tmp_path / "log").write_text("old\n")
    names, stdout = sorted(os.listdir()), os.dup(1)
    with open("log", mode, buffering=0) as log:
        log.write(b"new\n")
        os.dup2(log.fileno(), 1)
        try:
            assert main([*command, path, "--to", "edges"]) == 0
            os.write(1, b"last\n")
        finally:
            os.dup2(stdout, 1)
            os.close(stdout)
    assert (tmp_path / "log").read_text() == "old\n" * (mode == "ab") + f"new\n{TEXT}last\n"
    assert sorted(os.listdir()) == names


def test_a_file_that_is_not_open_is_named():
    with pytest.raises(GraphError, match="^/dev/fd/999: cannot be written: Bad file descriptor"):
        write(EDGE, "/dev/fd/999", "edges")


WAITING = """
import os, signal, sys, time
import numpy as np
import tcgpu
from tcgpu.__main__ import main
from tcgpu.formats import scan
def wait(*args, **options):
    os.kill(os.getpid(), {signal})
    time.sleep(60)
np.save = scan.format_lines = np.lib.format.write_array = wait
main(["convert", *sys.argv[1:]]) if {by_the_shell} else tcgpu.write(tcgpu.read(sys.argv[1]), sys.argv[2])
"""


@pytest.mark.parametrize(
    "name, by_the_shell, end",
    [
        ("y.txt.gz", False, signal.SIGKILL),
        ("y.npz", False, signal.SIGTERM),
        ("y.txt", True, signal.SIGHUP),
        ("y/", True, signal.SIGTERM),
    ],
)
def test_a_process_that_is_ended_leaves_nothing_in_part(tmp_path, name, by_the_shell, end):
    write(PATH, tmp_path / "x.mtx")
    write(PATH, f"{tmp_path}/{name}")
    before = content(tmp_path)
    program = WAITING.format(signal=int(end), by_the_shell=by_the_shell)
    done = subprocess.run([sys.executable, "-c", program, tmp_path / "x.mtx", f"{tmp_path}/{name}"], cwd=tmp_path)
    assert done.returncode == -end and content(tmp_path) == before


@pytest.mark.parametrize("name", ["nowhere/y.txt", "nowhere/g/"])
def test_a_folder_that_is_not_there_is_named(tmp_path, name, capsys):
    write(PATH, tmp_path / "x.mtx")
    assert main(["convert", str(tmp_path / "x.mtx"), f"{tmp_path}/{name}"]) == 2
    said = capsys.readouterr().err
    assert said == f"tcgpu: {tmp_path}/{name}: cannot be written: No such file or directory: {tmp_path}/nowhere\n"


# files that change while they are read


def shrinking(monkeypatch, path, size):
    """From now on the file at `path` is cut off as soon as a process reads its size."""
    fstat = os.fstat

    def cut(descriptor):
        status = fstat(descriptor)
        if status.st_ino == os.stat(path).st_ino and status.st_size > size:
            os.truncate(path, size)
        return status

    monkeypatch.setattr(os, "fstat", cut)


@pytest.mark.parametrize("name", ["x.txt", "x.mtx", "x.graph"])
@pytest.mark.parametrize("small", [files.MAX_COPIED, 0])
def test_a_text_truncated_while_it_is_opened_is_refused(tmp_path, monkeypatch, name, small):
    u, v = np.random.default_rng(1).integers(0, 2000, (2, 4000))
    write(Graph.from_edges(u, v, 2000), tmp_path / name)
    monkeypatch.setattr(files, "MAX_COPIED", small)
    shrinking(monkeypatch, tmp_path / name, 5000)
    with pytest.raises(GraphError, match=f"{name}: the file changed while it was read"):
        read(tmp_path / name)


@pytest.mark.parametrize("small", [binary.MAX_COPIED, 0])
def test_an_array_truncated_while_it_is_opened_is_refused(tmp_path, monkeypatch, small):
    write(PATH, tmp_path / "g", format="folder")
    monkeypatch.setattr(binary, "MAX_COPIED", small)
    shrinking(monkeypatch, tmp_path / "g" / "row_idx.npy", 130)
    with pytest.raises(GraphError, match="row_idx.npy: the file changed while it was read"):
        read(tmp_path / "g")


def test_a_text_that_is_written_to_while_it_is_read_is_refused(tmp_path, monkeypatch):
    write(PATH, tmp_path / "x.txt")
    fstat, found = os.fstat, []

    def grow(descriptor):
        status = fstat(descriptor)
        if status.st_ino == os.stat(tmp_path / "x.txt").st_ino and not found:
            found.append(descriptor)
            with open(tmp_path / "x.txt", "a") as file:
                file.write("0 2\n")
        return status

    monkeypatch.setattr(os, "fstat", grow)
    with pytest.raises(GraphError, match="changed while it was read"):
        read(tmp_path / "x.txt")


@pytest.mark.parametrize("name", ["x.txt", "g"])
def test_a_small_graph_stays_valid_if_its_files_are_truncated(tmp_path, name):
    """Mapped pages of a file that is cut off end the process, so this runs in one of its own."""
    write(PATH, tmp_path / name, format="folder" if name == "g" else None)
    program = f"""
import os, sys
from pathlib import Path
import tcgpu
from tcgpu import files
path = Path({str(tmp_path / name)!r})
found = tcgpu.read(path) if path.is_dir() else files.Text(path)
for file in path.iterdir() if path.is_dir() else [path]:
    os.truncate(file, 0)
print(found.edges()[0].tolist() if path.is_dir() else found.line(found.line(0)[1])[0])
"""
    env = {**os.environ, "PYTHONPATH": os.fspath(Path(tcgpu.__file__).parent.parent)}
    done = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "[1, 2]\n" if name == "g" else "b'0\\t1'\n")


def test_truncated_compressed_data_is_refused(tmp_path):
    write(PATH, tmp_path / "x.txt.gz")
    whole = (tmp_path / "x.txt.gz").read_bytes()
    shutil.copy(tmp_path / "x.txt.gz", tmp_path / "y.txt.gz")
    os.truncate(tmp_path / "y.txt.gz", len(whole) - 1)
    assert gzip.decompress(whole)
    with pytest.raises(GraphError, match=r"y\.txt\.gz: not a whole \.gz file"):
        read(tmp_path / "y.txt.gz")
