"""Draw the diagrams of docs/architecture.md into docs/pictures/, as SVG.

    python docs/site/diagrams.py

A diagram is boxes in a grid, and arrows between them. tests/test_docs.py holds that the stored pictures are those that
are drawn now, and that the rooms are those of tests/test_rooms.py.
"""

from dataclasses import dataclass
from html import escape
from pathlib import Path

INTO = Path(__file__).resolve().parent.parent / "pictures"
LINE = 17  # pixels from one line of text to the next
STYLE = (
    "text { font: 13px system-ui, sans-serif; fill: #222 } .title { font-weight: 600 } .note { fill: #555 }"
    " .code { font-family: ui-monospace, monospace; font-size: 12.5px }"
)
BLUE, GREEN, ORANGE, GREY = "#e3eefb", "#e4f4e4", "#fdeeda", "#f2f2f2"

# The rooms from the highest to the lowest, in layers: what a layer is for, and what each of its rooms does.
LAYERS = [
    ("what people open", ORANGE, {
        "lab": "explorer, stepper", "__main__": "the command tcgpu", "warm": "compiles ahead",
        "networkx_backend": "what NetworkX asks", "networkx_graph": "its functions",
    }),
    ("looking at kernels", ORANGE, {"insight": "traces, checks, estimates"}),
    ("beyond counts", GREEN, {"truss": "k-trusses, truss numbers", "coefficients": "clustering, similarity",
                              "directions": "directed, weighted", "subgraphs": "motifs, cliques, sums",
                              "growth": "edges added"}),
    ("asking", GREEN, {"measurement": "three timings", "api": "the verbs: count, triangles, ...",
                       "hardware": "what is here"}),
    ("many workers", GREEN, {"distributed": "parts, executors, journals, streaming"}),
    ("choosing", GREEN, {"registry": "methods by name", "records": "tables in data/measured",
                         "datasets": "known graphs"}),
    ("counting", BLUE, {"kernels": "methods for GPUs, a folder a paper", "cpu": "the native engine",
                        "built_in": "our methods", "declarations": "Method and Knob"}),
    ("graphs", BLUE, {"formats": "files", "generators": "made graphs", "plots": "graphs drawn",
                      "graph": "sorted columns", "foreign_graphs": "NetworkX, SciPy", "clean": "edges to columns"}),
    ("below all", GREY, {"sampled_order": "which is faster", "player": "steps in a browser",
                         "figures": "looks of charts", "engines": "GPU, simulator, native code"}),
    ("", GREY, {"draws_in_numpy": "random numbers", "arrays": "NumPy helpers", "files": "written whole",
                "errors": "TcgpuError", "markup": "HTML, escaped"}),
    ("", GREY, {"suggest": "did you mean ...?", "networkx_info": "our functions",
                "progress": "reports, interrupts", "bar": "shows them",
                "gpu_costs": "fitted numbers", "cpu_costs": "fitted numbers",
                "worker_process": "starts pools"}),
]  # fmt: skip


@dataclass
class Box:
    """A rectangle at (x, y) pixels: a title, which may be code, and text below it."""

    x: float
    y: float
    width: float
    title: str
    lines: str
    fill: str = GREY
    code: bool = True
    least: float = 0  # height

    @property
    def height(self):
        return max(self.least, 28 + LINE * len(self.lines.splitlines()))

    def draw(self):
        yield (
            f'<rect x="{self.x}" y="{self.y}" width="{self.width}" height="{self.height}" rx="5" fill="{self.fill}" '
            'stroke="#999"/>'
        )
        kind = "title code" if self.code else "title"
        yield text(self.x + 9, self.y + 19, self.title, kind)
        for number, line in enumerate(self.lines.splitlines(), 1):
            yield text(self.x + 9, self.y + 19 + LINE * number, line, "note")


def text(x, y, what, kind="note", anchor="start"):
    return f'<text x="{x}" y="{y}" class="{kind}" text-anchor="{anchor}">{escape(what)}</text>'


def arrow(start, end, label="", at=0.2):
    """An arrow from the lower edge of a box to the upper edge of another, its label beside it."""
    top, bottom = start.y + start.height, end.y
    low, high = max(start.x, end.x), min(start.x + start.width, end.x + end.width)
    x = low + at * (high - low)
    yield f'<line x1="{x}" y1="{top}" x2="{x}" y2="{bottom - 2}" stroke="#555" marker-end="url(#tip)"/>'
    if label:
        yield text(x + 8, (top + bottom) / 2 + 4, label, "code")


def picture(width, height, *parts):
    """The text of an SVG file."""
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">\n'
        f"<style>{STYLE}</style>\n"
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
        '<path d="M0 0 8 4 0 8z" fill="#555"/></marker></defs>\n'
        f'<rect width="{width}" height="{height}" fill="#fff"/>\n'
    )
    return head + "\n".join(line for part in parts for line in part) + "\n</svg>\n"


def rooms():
    """The rooms of tcgpu/, layer upon layer."""
    parts, y, left, whole = [], 10, 160, 850
    for title, fill, names in LAYERS:
        width = (whole - 10 * (len(names) - 1)) / len(names)
        row = [Box(left + k * (width + 10), y, width, *item, fill) for k, item in enumerate(names.items())]
        parts += [box.draw() for box in row] + [[text(10, y + 27, title, "title")]]
        y += row[0].height + 12
    return picture(left + whole + 10, y, *parts)


def edge():
    """What becomes of an edge, from a file to the count."""
    raw = "u[e] = 0, v[e] = 2340794"
    file = Box(20, 10, 250, "a line of a file", "0 2340794", GREY, code=False)
    arrays = Box(300, 10, 250, "arrays, pairs, NetworkX, SciPy", raw, GREY, code=False)
    device = Box(600, 10, 330, "arrays on a GPU (CuPy)", raw, GREY, code=False)
    text = "text is scanned on all cores;\nwhat the header says must agree"
    formats = Box(20, 95, 250, "formats/", text, BLUE)
    text = "with relabel=True: ids that occur become 0..n-1, others keep their numbers"
    ids = Box(20, 195, 530, "clean.py: compact", text, BLUE)
    text = "the key of each edge that is no loop goes to a bucket of columns; buckets\n"
    text += "are sorted in a cache; each edge is kept once, rows are written over keys"
    clean = Box(20, 280, 530, "clean.py: clean_columns", text, BLUE)
    text = "column 0 has row 2340794, among its other rows in ascending order"
    graph = Box(20, 385, 530, "graph.py: Graph", text, BLUE)
    text = "in natural order threads sort short columns;\nelse one radix sort of all keys; duplicates\n"
    text += "and loops are dropped\n\nfew raw edges are counted without columns\n\nthe columns stay on the device"
    least = graph.y + graph.height - ids.y
    on_device = Box(600, 195, 330, "kernels/device_graph.py: DeviceGraph", text, BLUE, least=least)
    text = "the verb chooses method, engine and order; in degree order both ends get new numbers"
    verb = Box(20, 470, 910, "api.py, registry.py", text, GREEN)
    text = "choose.py: rows of bits, merges\nor packed words, by what they\ncost; threads take columns"
    native = Box(20, 560, 250, "cpu/", text, BLUE)
    text = "col_ptr, row_idx and col_of are copied; set-up\nkernels; then a thread or warp at this nonzero\n"
    text += "looks up rows of its two columns"
    kernels = Box(300, 560, 330, "kernels/: a Plan", text, BLUE)
    text = "the column lies in one part or share;\na worker counts it as on the left;\nthe journal notes the part"
    parts = Box(660, 560, 270, "distributed/", text, GREEN)
    text = "each triangle j < i < k once: at nonzero (i, j), as the common row k; an exact Python int"
    total = Box(20, 690, 910, "the count", text, GREY, code=False)
    boxes = [file, arrays, device, formats, ids, clean, graph, on_device, verb, native, kernels, parts, total]
    arrows = [
        arrow(file, formats, "bytes"),
        arrow(formats, ids, "u, v: int64"),
        arrow(arrays, ids, "u, v"),
        arrow(ids, clean, "u, v: 0..n-1", 0.1),
        arrow(clean, graph, "col_ptr, row_idx", 0.1),
        arrow(device, on_device, "u, v"),
        arrow(graph, verb, at=0.1),
        arrow(on_device, verb),
        arrow(verb, native, 'engine "cpu"'),
        arrow(verb, kernels, 'engine "gpu" or "sim"'),
        arrow(verb, parts, "executor=, resume="),
        arrow(native, total, "int64 of each thread"),
        arrow(kernels, total, "total: int64"),
        arrow(parts, total, "int of each part"),
    ]
    return picture(950, 755, *(box.draw() for box in boxes), *arrows)


def kernel():
    """What becomes of a kernel, from its source to a launch."""
    text = "a Python function in the style of numba.cuda; inspect.getsource shows what was written"
    source = Box(20, 10, 910, "def naive_kernel(col_ptr, row_idx, col_of, total): ...", text, GREY)
    text = "engines/runtime.py keeps the function and its types, kernels/method.py its knobs; nothing is compiled"
    declared = Box(20, 95, 910, "@kernel(...), @method(...)", text, GREEN)
    text = "which arrays the device will hold, and which launches: Step(kernel, blocks, threads, args)"
    plan = Box(20, 180, 910, "plan(graph, threads=, blocks=)", text, GREEN)
    text = "bytecode, constants, device functions, types,\ncompute capability, versions of the compilers"
    digest = Box(20, 275, 430, "engines/kernel_compiler.py: digest", text, BLUE)
    kept = Box(20, 375, 200, "the user's cache", "DIGEST.cubin with a\nchecksum", GREY, code=False)
    text = "the syntax tree, with\nNumPy's rule for integers"
    rewrite = Box(250, 375, 200, "engines/integers.py", text, BLUE)
    numba = Box(250, 470, 200, "numba-cuda", "LTO-IR, for this GPU's\ncompute capability", ORANGE)
    link = Box(250, 565, 200, "CUDA's linker", "one cubin of kernel and\ndevice functions", ORANGE, code=False)
    text = "loads the module, packs the arguments and launches\non a stream, with events for the timing"
    driver = Box(20, 665, 430, "engines/cuda_driver.py", text, BLUE)
    on_gpu = Box(20, 765, 430, "a launch on a GPU", "blocks x threads; total is read back", GREY, code=False)
    text = "the same rewriting of\nintegers; each thread is a\ngenerator, which yields\nwhere it waits for others"
    simulated = Box(490, 275, 210, "engines/simulator.py", text, BLUE)
    text = "for tcgpu.check: the same,\nbut each access is checked\nfor bounds, races, barriers"
    faults = Box(490, 470, 210, "insight/faults.py", text, BLUE)
    in_python = Box(490, 765, 210, "a launch in Python", "the same count", GREY, code=False)
    text = "each load and store also\nwrites an event: thread,\nstep, line, address"
    traced = Box(720, 275, 210, "insight/rewriting.py", text, BLUE)
    text = "requests of warps, sectors,\nidle lanes, line by line"
    result = Box(720, 470, 210, "insight/result.py", text, BLUE)
    trace = Box(720, 765, 210, "a trace", "the same count", GREY, code=False)
    boxes = [source, declared, plan, digest, kept, rewrite, numba, link, driver, on_gpu]
    boxes += [simulated, faults, in_python, traced, result, trace]
    arrows = [
        arrow(source, declared, at=0.1),
        arrow(declared, plan, "tcgpu.count(graph, ...)", 0.1),
        arrow(plan, digest, 'engine "gpu"'),
        arrow(plan, simulated, 'engine "sim"'),
        arrow(plan, traced, "tcgpu.trace"),
        arrow(digest, kept, "a file of this name"),
        arrow(digest, rewrite, "none yet"),
        arrow(rewrite, numba),
        arrow(numba, link),
        arrow(link, driver),
        sideways_back(link, kept, "kept"),
        arrow(kept, driver, "machine code"),
        arrow(driver, on_gpu),
        arrow(simulated, faults),
        arrow(faults, in_python),
        arrow(traced, result),
        arrow(result, trace),
    ]
    return picture(950, 830, *(box.draw() for box in boxes), *arrows)


def sideways_back(start, end, label):
    """An arrow from the left edge of a box to the lower edge of one that lies to its left."""
    x, y = end.x + end.width - 25, start.y + 16
    yield f'<path d="M{start.x} {y}H{x}V{end.y + end.height + 2}" fill="none" stroke="#555" marker-end="url(#tip)"/>'
    yield text((x + start.x) / 2 + 4, y - 5, label, "code", "middle")


PICTURES = {"rooms": rooms, "edge": edge, "kernel": kernel}

if __name__ == "__main__":
    INTO.mkdir(exist_ok=True)
    for name, draw in PICTURES.items():
        (INTO / f"{name}.svg").write_text(draw(), encoding="utf-8")
