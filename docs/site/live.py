"""Build the live notebooks of the site: JupyterLite, with Python in the browser and its simulator as the GPU.

Any web server can serve the folder. Pyodide, Python for browsers, comes from where the kernel's package has it from, or
is copied from a folder: of it what is used. tcgpu and what it needs lie beside it as wheels.

    python docs/site/live.py [--into FOLDER] [--pyodide FOLDER]
"""

import argparse
import base64
import json
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import nbformat

ROOT = Path(__file__).resolve().parent.parent.parent
NOTEBOOKS = ROOT / "notebooks"
KERNEL = {"display_name": "Python (Pyodide)", "language": "python", "name": "python"}  # by another name, Lab would ask
EXTENSIONS = ("anywidget", "jupyterlab_widgets", "jupyterlite_pyodide_kernel")
# of Pyodide: the packages that are loaded at once, the kernel's own among them, and what it starts from
PACKAGES = ["numpy", "scipy", "matplotlib", "micropip", "ssl", "sqlite3", "jedi", "ipython"]
CORE = ("pyodide.js", "pyodide.asm.js", "pyodide.asm.wasm", "python_stdlib.zip")
# What no notebook has; without them JupyterLab never loads the code that draws or runs it, which is in its files
DISABLED = [f"@jupyterlab/{name}-extension" for name in ("mermaid", "vega5", "terminal")]
UNUSED = re.compile(r"mermaid|cytoscape|eclipse\.elk|katex|vega-|xterm|phpLanguage|rustLanguage|javaLanguage")
SOME = 30_000  # bytes; smaller files may be those of the extensions themselves, which are loaded, but not begun
LOADED = re.compile(r"\.e\((\d+)\)")  # by number
NOT_PYTHON = re.compile(r"/tests/|\.data/|/labextension/|/nbextension/")  # in wheels
UNREAD = re.compile(r"/measured/(families|public|peers|large|classes)-|/measured/sweep\.svg")  # by any notebook
PICTURE = re.compile(r"\]\((\w+\.png)\)")
ELSEWHERE = re.compile(r"\[([^]]+)\]\(\.\./(?!docs/)[^)]*\)")  # a link to a folder that is not there
# of JupyterLab, as `make lab` has them; what a visitor changes is in the browser's storage five seconds later
SETTINGS = json.loads((NOTEBOOKS / "helpers" / "jupyter_settings" / "overrides.json").read_text())
SETTINGS["@jupyterlab/docmanager-extension:plugin"] = {"autosaveInterval": 5}
FROM_WORKER = "../../../../wheels/"  # the kernel's worker lies four folders deep, in extensions/


def wheels_into(folder):
    """Have tcgpu's wheel there, and those that `live.txt` names."""
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "download", "--quiet", "--no-deps"]
    listed = Path(__file__).with_name("live.txt")
    subprocess.run([*pip, "--only-binary=:all:", "--platform=any", "--dest", folder, "-r", listed], check=True)
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder]
    subprocess.run(build, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)


def inside(picture):
    """A picture as part of the text: JupyterLab would ask for its file at another address first, where it is not."""
    return f"](data:image/png;base64,{base64.b64encode((NOTEBOOKS / picture[1]).read_bytes()).decode()})"


def copy_notebooks(folder):
    """Copy the notebooks, with a kernel that a browser has, and the modules beside them.

    What lies in other folders of the checkout is not there: links to it go, but for those to guides; see live.html.
    """
    ignored = shutil.ignore_patterns("run.py", "*.png", "jupyter_settings", "__pycache__", ".*")  # pictures: see inside
    shutil.copytree(NOTEBOOKS, folder, ignore=ignored)
    shutil.copy(ROOT / "benchmarks" / "papers.py", folder)  # which report_charts imports
    for path in folder.glob("*.ipynb"):
        notebook = nbformat.read(path, as_version=4)
        notebook.metadata.kernelspec = KERNEL
        for cell in notebook.cells:
            if cell.cell_type == "markdown":
                cell.source = PICTURE.sub(inside, ELSEWHERE.sub(r"\1", cell.source))
        # nbformat writes texts as lists of lines; Lab shows commas between them
        path.write_text(json.dumps(notebook, separators=(",", ":")))


def copy_pyodide(source, folder):
    """Copy what is used of Pyodide, and list no more in its lock file: so an import of more says that it is missing."""
    folder.mkdir()
    lock = json.loads((source / "pyodide-lock.json").read_text())
    used, left = {}, PACKAGES.copy()
    while left:
        name = left.pop().lower().replace("_", "-")
        if name not in used:
            used[name] = lock["packages"][name]
            left += used[name]["depends"]
    for name in (*CORE, *(package["file_name"] for package in used.values())):
        shutil.copy(source / name, folder)
    (folder / "pyodide-lock.json").write_text(json.dumps({**lock, "packages": used}))


def unused(build):
    """The files of JupyterLab with what is disabled, or for other languages, and those that only these load."""
    code = {path: path.read_text() for path in [*build.glob("*.js"), build / "lab" / "bundle.js"]}
    numbers = {path: path.name.partition(".")[0] for path in code if path.name[0].isdecimal()}
    gone = {path for path in numbers if len(code[path]) > SOME and UNUSED.search(code[path])}
    while True:
        loaded = {number for path in code.keys() - gone for number in LOADED.findall(code[path])}
        more = {path for path in numbers.keys() - gone if numbers[path] not in loaded}
        if not more:
            return gone
        gone |= more


def slim(wheel, folder):
    """Copy a wheel without what does not run in Python, or is not run here."""
    with (
        zipfile.ZipFile(wheel) as whole,
        zipfile.ZipFile(folder / wheel.name, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as less,
    ):
        for name in whole.namelist():
            if not NOT_PYTHON.search(name) and not UNREAD.search(name):
                less.writestr(name, whole.read(name))


def finish(folder):
    """Add our own bar to the page of JupyterLab, and leave out what is not used.

    That is also an icon as large as a notebook, each schema in a file of its own, beside the file with all of them, and
    fonts in forms for browsers too old to run this.
    """
    for path in unused(folder / "build"):
        path.unlink()
    shutil.copy(folder / "icon-120x120.png", folder / "lab" / "favicon.ico")
    for path in (folder / "build" / "schemas").glob("@*"):
        shutil.rmtree(path)
    page = folder / "lab" / "index.html"
    before, end, after = page.read_text().rpartition("</body>")
    page.write_text(before + Path(__file__).with_name("live.html").read_text() + end + after)
    for font in (folder / "build").glob("fa-*.woff2"):
        for old in folder.glob(f"build/{font.stem}.*"):
            if old != font:
                old.unlink()


def build(into, pyodide=None):
    """Write the live notebooks into a folder, which is made anew. pyodide: the folder of a copy of Pyodide."""
    with tempfile.TemporaryDirectory() as work:
        work = Path(work)
        wheels_into(work / "wheels")
        copy_notebooks(work / "notebooks")
        wheels = sorted((work / "wheels").glob("*.whl"))
        extensions = [wheel for wheel in wheels if wheel.name.startswith(EXTENSIONS)]
        python = [wheel for wheel in wheels if not wheel.name.startswith(EXTENSIONS[1:])]
        kernel = {
            "disablePyPIFallback": True,  # nothing is fetched from an index of packages
            "loadPyodideOptions": {"packages": [*PACKAGES, *(FROM_WORKER + wheel.name for wheel in python)]},
            **({"pyodideUrl": "./pyodide/pyodide.js"} if pyodide else {}),
        }
        config = {
            "jupyter-lite-schema-version": 0,
            "jupyter-config-data": {
                "appName": "tcgpu",
                "disabledExtensions": DISABLED,
                "exposeAppInBrowser": True,
                "litePluginSettings": {"@jupyterlite/pyodide-kernel-extension:kernel": kernel},
            },
        }
        (work / "jupyter-lite.json").write_text(json.dumps(config))
        (work / "overrides.json").write_text(json.dumps(SETTINGS))
        options = {
            "apps": ["lab"],
            "contents": ["notebooks"],
            "federated_extensions": [str(wheel) for wheel in extensions],
            "ignore_sys_prefix": True,
            "no_sourcemaps": True,
            "no_unused_shared_packages": True,
            "output_dir": "live",
        }
        (work / "jupyter_lite_config.json").write_text(json.dumps({"LiteBuildConfig": options}))
        command = [sys.executable, "-m", "jupyterlite_core", "build"]
        result = subprocess.run(command, cwd=work, capture_output=True, text=True)
        if result.returncode:
            sys.exit(result.stdout + result.stderr)
        finish(work / "live")
        (work / "live" / "wheels").mkdir()
        for wheel in python:
            slim(wheel, work / "live" / "wheels")
        if pyodide:
            copy_pyodide(pyodide, work / "live" / "pyodide")
        shutil.rmtree(into, ignore_errors=True)
        shutil.copytree(work / "live", into)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    default = ROOT / "site" / "live"
    parser.add_argument("--into", type=Path, default=default, metavar="FOLDER", help="default: site/live")
    parser.add_argument("--pyodide", type=Path, metavar="FOLDER", help="a copy of Pyodide; default: from its CDN")
    options = parser.parse_args()
    if options.pyodide and not (options.pyodide / "pyodide-lock.json").is_file():
        parser.error(f"{options.pyodide} holds no copy of Pyodide: no pyodide-lock.json")
    there = [*options.into.glob("*")]
    if there and options.into / "jupyter-lite.json" not in there:
        parser.error(f"{options.into} was not made by this script; it is left as it is")
    build(options.into, options.pyodide)
    print(options.into / "lab" / "index.html")


if __name__ == "__main__":
    main()
