"""Install the newest wheel of dist/ in a new environment outside of the checkout, and use it there.

Installing takes the wheel's dependencies from where pip takes them. Also builds a wheel from the source archive, and
compares the two wheels file by file.

    python release/check_dist.py
"""

import subprocess
import sys
import tarfile
import tempfile
import venv
import zipfile
from pathlib import Path

DIST = Path(__file__).resolve().parent.parent / "dist"
CORE = """
import sys, tcgpu
print(tcgpu.__file__, tcgpu.count(tcgpu.load("rmat_8")), tcgpu.count([(0, 1), (1, 2), (2, 0)]))
assert tcgpu.trace(tcgpu.read("k4.txt"), "naive").totals()["load_requests"] and tcgpu.check("naive")
try:
    tcgpu.explore()
except tcgpu.TcgpuError as error:
    print(str(error).rpartition("pip install ")[2].strip("'"))
"""
LAB = "import tcgpu; print(tcgpu.explore('rmat_8', ['naive'])); tcgpu.trace(tcgpu.read('k4.txt'), 'naive').show()"


def newest(pattern):
    """The newest file of dist/ that has such a name."""
    return max(DIST.glob(pattern), key=lambda path: path.stat().st_mtime)


def run(*command, folder):
    """Run a command in a folder; return what it prints, as words."""
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout.split()


def contents(wheel):
    """name -> bytes of the files of a wheel."""
    with zipfile.ZipFile(wheel) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def check_install(wheel, folder):
    """The wheel alone counts, traces and checks, in Python and in the shell, and has its data.

    It says what to install for the explorer; with that, there is one.
    """
    venv.create(folder / "env", with_pip=True)
    bin = folder / "env" / "bin"
    pip = bin / "python", "-m", "pip", "install", "--disable-pip-version-check"
    run(*pip, wheel, folder=folder)
    Path(folder, "k4.txt").write_text("0 1\n0 2\n0 3\n1 2\n1 3\n2 3\n")
    file, of_rmat, of_triangle, advice = run(bin / "python", "-c", CORE, folder=folder)
    assert Path(file).is_relative_to(folder / "env") and int(of_rmat) > 0 and of_triangle == "1", file
    run(bin / "tcgpu", "generate", "clique", "n=100", "-o", "clique.txt", folder=folder)
    assert run(bin / "tcgpu", "count", "clique.txt", folder=folder) == ["161700"]
    run(*pip, advice, folder=folder)
    assert "<Explorer:" in run(bin / "python", "-c", LAB, folder=folder)


def check_source(archive, wheel, folder):
    """The source archive builds the same wheel."""
    with tarfile.open(archive) as tar:
        tar.extraction_filter = getattr(tarfile, "data_filter", None)  # Python before 3.11.4 has none
        tar.extractall(folder)
    [source] = folder.iterdir()
    run(sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", folder / "again", folder=source)
    assert contents(next((folder / "again").glob("*.whl"))) == contents(wheel), "the two wheels differ"


def main():
    wheel, archive = newest("tcgpu-*.whl"), newest("tcgpu-*.tar.gz")
    with tempfile.TemporaryDirectory() as folder:
        check_source(archive, wheel, Path(folder))
    print(f"{archive.name} builds {wheel.name}, byte for byte")
    with tempfile.TemporaryDirectory() as folder:
        check_install(wheel, Path(folder).resolve())
    print(f"{wheel.name} works in an environment of its own")


if __name__ == "__main__":
    main()
