"""The command line: `tcgpu count FILE` and its companions; `python -m tcgpu` is the same.

Results go to stdout, as text or with --json as one JSON value; everything else goes to stderr. Exit codes: 0; 1 if
`check` finds a method wrong; 2 for an error in a file or an argument, which is reported in one line; 130 after Ctrl-C;
141 if the reader of the output has closed it. A command is a function that takes the parsed arguments
and prints, and an entry in `_parser`. Nothing heavy is imported before a command runs, so that --help is quick.
"""

import argparse
import importlib.util
import inspect
import json
import logging
import os
import re
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import BrokenExecutor
from contextlib import contextmanager, nullcontext, redirect_stdout
from dataclasses import asdict
from functools import cache
from pathlib import Path

import tcgpu
from tcgpu.progress import underway
from tcgpu.suggest import check_known, did_you_mean, unknown

STDOUT = "/dev/stdout"
ENDING = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]  # not SIGINT, which raises
PICTURES = (".png", ".svg", ".pdf")
LISTED = "`tcgpu methods` lists them; one of your own is FILE.py:NAME"
FORMATS = "mtx, edges, metis, npz, npy, parquet or folder (default: by the file's name)"
KEYWORD = r"(?<![\w./-])(\w+)=('[^']*'|\"[^\"]*\"|\([^)]*\)|\w*)(?![\w./])"  # of Python, in a message
STARVED = "can't start new thread", "can't allocate", "failed to map segment", "Cannot allocate memory"


class UsageError(Exception):
    """An invalid argument; the message names it, and what is valid."""


# ------------------------------------------------------------------------------------------------------------ commands


def count(arguments):
    """Count the triangles of a graph, exactly; or estimate their number.

    With --approximate, a line has the estimate, and the least and the largest number that there may be.

    With --json, `seconds` has three timings: `kernel`, from the first kernel to the last; `process`, which adds memory,
    set-up and reading the result back; `total`, from opening the file on. `seconds_reading` is the file's part of that.

    With --device-memory, --resume or --executor the graph is counted in parts, and there is no timing `kernel`. A
    folder's graph then stays in its files.
    """
    from tcgpu import distributed, hardware, measurement
    from tcgpu.arrays import sum_exactly

    knobs, executor, by_vertex = _assignments(arguments.knob), arguments.executor, arguments.per_vertex
    knobs |= {} if arguments.seed is None else {"seed": arguments.seed}
    arguments.method = arguments.method and _method(arguments.method)
    streams = arguments.device_memory is not None or arguments.resume is not None
    if by_vertex and streams:
        raise UsageError("--per-vertex counts the whole graph at a time, without --device-memory and --resume")
    if by_vertex and (knobs or arguments.approximate is not None):
        raise UsageError("--per-vertex counts by methods as they come: leave --knob, --approximate and --seed out")
    if arguments.approximate is not None:
        knobs |= {"executor": executor, "device_memory": arguments.device_memory, "resume": arguments.resume}
        _, found, facts = _called(arguments, "count", approximate=arguments.approximate, **knobs)
        facts |= {"triangles": found} | vars(found)
        print_json(facts) if arguments.json else print(found, found.low, found.high, sep="\t")
        return
    method, engine = _method_and_engine(arguments, knobs, streams)  # refuses what it must before the file is read
    graph, reading = _read(arguments)
    options = {"engine": arguments.engine, "order": arguments.order, "max_seconds": arguments.max_seconds}
    show = arguments.progress or None
    kernel = each = None
    begin = time.perf_counter()
    if by_vertex:
        each = tcgpu.triangles(graph, method=arguments.method, executor=executor, progress=show, **options)
        found, process = sum_exactly(each) // 3, time.perf_counter() - begin
    elif streams or executor is not None:
        options |= {"device_memory": arguments.device_memory, "resume": arguments.resume, "executor": executor}
        found = distributed.count(graph, arguments.method, progress=show, **options, **knobs)
        process = time.perf_counter() - begin
    else:
        with progress(arguments, f"counting {graph.m:,} edges by {method} on {engine}"):
            found, *ms = measurement.time_once(graph, arguments.method or method, **options, **knobs)
        kernel, process = ms[0] / 1e3, ms[1] / 1e3
    facts = {
        "triangles": found,
        "vertices": graph.n,
        "edges": graph.m,
        "method": method,
        "engine": engine,
        "seconds": {"kernel": kernel, "process": process, "total": reading + time.perf_counter() - begin},
        "seconds_reading": reading,
    }
    if engine == "webgpu":
        facts["device"] = asdict(hardware.webgpu_device())
    if arguments.json:
        print_json(facts if each is None else facts | {"per_vertex": _by_label(_labels(graph), each.tolist())})
    elif each is None:
        print(found)
    else:
        _print_lines(zip(_labels(graph), each.tolist(), strict=True))


def clustering(arguments):
    """Compute each vertex's clustering coefficient: the share of pairs of its neighbours that are joined."""
    graph, found, facts = _called(arguments, "clustering")
    average = float(found.mean()) if found.size else 0.0
    if arguments.json:
        print_json(facts | {"average": average, "per_vertex": _by_label(_labels(graph), found.tolist())})
    elif arguments.average:
        print(average)
    else:
        _print_lines(zip(_labels(graph), found.tolist(), strict=True))


def transitivity(arguments):
    """Compute three times the triangles of a graph over its paths of two edges."""
    _, found, facts = _called(arguments, "transitivity")
    print_json(facts | {"transitivity": found}) if arguments.json else print(found)


def support(arguments):
    """Count the triangles at each edge: a line for each, with its two ends."""
    graph, found, facts = _called(arguments, "support")
    labels = _labels(graph)
    edges = ((labels[u], labels[v], int(number)) for v, u, number in zip(*graph.edges(), found, strict=True))
    if arguments.json:
        print_json(facts | {"per_edge": [[str(u), str(v), number] for u, v, number in edges]})
    else:
        _print_lines(edges)


def motifs(arguments):
    """Count the subgraphs of up to four vertices, each kind of them as an induced subgraph."""
    _, found, facts = _called(arguments, "motifs", connected=not arguments.all)
    if arguments.json:
        print_json(facts | {"motifs": found})
    else:
        print_table([(name, f"{number:,}") for name, number in found.items()], right=(1,))


def cliques(arguments):
    """Count the sets of K vertices that are cliques, or connected, or independent."""
    _, found, facts = _called(arguments, "count_subgraphs", k=arguments.k, kind=arguments.kind)
    more = {"k": arguments.k, "kind": arguments.kind, "subgraphs": found}
    print_json(facts | more) if arguments.json else print(found)


def list_(arguments):
    """List every triangle once: a line for each, with its three vertices."""
    graph, chunks, _ = _called(arguments, "list_triangles")
    labels = _labels(graph)
    _print_lines([labels[v] for v in row] for chunk in chunks for row in chunk.tolist())


def _called(arguments, verb, **options):
    """What a verb returns for the graph of a file: the graph, that, and what --json says of both.

    It gets the arguments of the command that have the names of its keywords. The file is read before the verb is
    imported, which may load Numba: then small files are not read in NumPy.
    """
    graph, reading = _read(arguments)
    if getattr(arguments, "method", None):
        options["method"] = _method(arguments.method)
    options |= {name: getattr(arguments, name) for name in ("engine", "order", "max_seconds") if name in arguments}
    begin = time.perf_counter()
    found = getattr(tcgpu, verb)(graph, progress=arguments.progress or None, **options)
    process = time.perf_counter() - begin
    seconds = {"process": process, "total": reading + process}
    return graph, found, {"vertices": graph.n, "edges": graph.m, "seconds": seconds}


def _labels(graph):
    return range(graph.n) if graph.labels is None else graph.labels


def _print_lines(rows):
    sys.stdout.writelines("\t".join(map(str, row)) + "\n" for row in rows)


def _by_label(labels, numbers):
    """A number for each label: a dict, or a list of pairs if labels are equal."""
    labels = list(map(str, labels))
    named = dict(zip(labels, numbers, strict=True))
    return named if len(named) == len(labels) else list(zip(labels, numbers, strict=True))


def _method_and_engine(arguments, knobs, streams):
    """The names of the method and engine that `count` uses."""
    from tcgpu import distributed, registry

    named = arguments.method, arguments.engine
    if arguments.executor is not None:
        from tcgpu.distributed import pool

        method, engine = pool.method_and_engine(arguments.executor, *named)
        return getattr(method, "name", method), engine
    if streams:
        method = distributed.method_of(*named)
    elif arguments.per_vertex:
        method = registry.choose_for_edges(*named, arguments.order)
    else:
        method = registry.choose(*named, arguments.order, knobs)
    return method.name, registry.engine_of(method, arguments.engine)


def _methods(text):
    """The methods of an argument, whose names are separated by commas."""
    return [_method(name) for name in text.split(",")]


def _method(text):
    """A method of one's own of "file.py:name"; any other text is the name of a method, and stays."""
    path, colon, name = text.rpartition(":")
    if not (colon and path.endswith(".py")):
        return text
    found = {key: value for key, value in vars(_opened(path)).items() if isinstance(value, tcgpu.Method)}
    if name not in found:
        raise UsageError(f"{path}: {unknown('method', name, found)}")
    return found[name]


@cache
def _opened(path):
    """The module that a Python file is."""
    spec = importlib.util.spec_from_file_location(os.path.basename(path).removesuffix(".py"), path)
    module = importlib.util.module_from_spec(spec)
    sys.modules.setdefault(spec.name, module)  # where pickle looks for it
    try:
        spec.loader.exec_module(module)
    except (OSError, tcgpu.TcgpuError):
        raise
    except Exception as error:
        raise UsageError(f"{path}: {type(error).__name__}: {error}") from error
    return module


def truss(arguments):
    """Find the k-truss of a graph: the largest part whose every edge is in at least k - 2 triangles of that part.

    Without --k, how many edges have which truss number: the largest k whose k-truss has the edge. With --json,
    `seconds` has two timings: `process`, of finding it; `total`, from opening the file on.
    """
    if arguments.output is not None and arguments.k is None:
        raise UsageError("-o FILE takes a k-truss: --k says which")
    import numpy as np

    from tcgpu.truss import truss_engine

    engine = {"engine": truss_engine(arguments.engine)}  # refuses what it must before the file is read
    if arguments.k is None:
        _, numbers, facts = _called(arguments, "truss_numbers")
        numbers, counts = np.unique(numbers, return_counts=True)
        rows = zip(numbers.tolist(), counts.tolist(), counts[::-1].cumsum()[::-1].tolist(), strict=True)
        facts["truss_numbers"] = [{"k": k, "edges": edges, "truss_edges": at_least} for k, edges, at_least in rows]
    else:
        _, found, facts = _called(arguments, "k_truss", k=arguments.k)
        facts |= {"k": arguments.k, "truss_vertices": found.n, "truss_edges": found.m}
    if arguments.output is not None:
        _write(found, arguments)
    if arguments.json:
        print_json(engine | facts)
    elif arguments.k is None:
        body = [tuple(f"{value:,}" for value in step.values()) for step in facts["truss_numbers"]]
        print_table([("K", "EDGES", "EDGES OF K-TRUSS"), *body], right=(0, 1, 2))
    else:
        print_table([("vertices", f"{found.n:,}"), ("edges", f"{found.m:,}")])


def info(arguments):
    """Say what a graph looks like: sizes, columns, degrees, what cleaning dropped, memory."""
    graph, _ = _read(arguments)
    mean, histogram = graph.nonzeros_per_column, graph.column_histogram()
    if arguments.json:
        columns = [dict(zip(("from", "to", "columns"), bar, strict=True)) for bar in histogram]
        print_json(
            {
                "name": graph.name,
                "vertices": graph.n,
                "edges": graph.m,
                "nonzeros_per_column": {"mean": mean, "max": graph.max_column, "histogram": columns},
                "degrees": {"mean": 2 * mean, "max": graph.max_degree},
                "cleaned": vars(graph.cleaned),
                "bytes": graph.nbytes,
            }
        )
        return
    rows = [
        ("name", graph.name or "-"),
        ("vertices", f"{graph.n:,}"),
        ("edges", f"{graph.m:,}"),
        ("nonzeros per column", f"{mean:.2f} in the mean, at most {graph.max_column:,}"),
        ("degree", f"{2 * mean:.2f} in the mean, at most {graph.max_degree:,}"),
        ("cleaned", str(graph.cleaned)),
        ("memory", f"{graph.nbytes:,} bytes"),
    ]
    for low, high, columns in histogram:
        length = str(low) if low == high else f"{low:,} to {high:,}"
        rows.append((f"columns of {length}", f"{columns:,}"))
    print_table(rows)


def methods(arguments):
    """List the methods: what each is called, where it comes from, what runs it, its knobs."""
    found = tcgpu.methods()
    if arguments.json:
        names = ("name", "source", "summary", "order", "engines")
        knobs = [
            {k.name: {"default": k.default, "values": k.values, "help": k.help} for k in m.declared} for m in found
        ]
        with_knobs = zip(found, knobs, strict=True)
        print_json([{name: getattr(m, name) for name in names} | {"knobs": own} for m, own in with_knobs])
    else:
        print(found)


def devices(arguments):
    """List what runs kernels and counts here: GPUs, the simulator, the CPU; and what each engine needs if missing."""
    rows = tcgpu.devices()
    print_json(rows) if arguments.json else print(rows)


def generate(arguments):
    """Make a graph by a seeded generator and write it; without a name, list the generators and their parameters."""
    from tcgpu.generators import GENERATORS

    if arguments.name is None:
        rows = [(name, _parameters(generator), _summary(generator)) for name, generator in GENERATORS.items()]
        print_table([("GENERATOR", "PARAMETERS", "WHAT IT MAKES"), *rows])
        return
    generator = GENERATORS[check_known("generator", arguments.name, GENERATORS, UsageError)]
    if arguments.output is None:
        raise UsageError("-o FILE says where the graph goes")
    seed = [] if arguments.seed is None else [f"seed={arguments.seed}"]
    parameters = _assignments(arguments.parameters + seed)
    try:
        inspect.signature(generator).bind(**parameters)
    except TypeError as error:
        raise UsageError(f"{arguments.name}: {error}; it takes {_parameters(generator)}") from None
    with progress(arguments, f"generating {arguments.name}"):
        graph = generator(**parameters)
    _write(graph, arguments)


def convert(arguments):
    """Read a graph in one format, write it in another."""
    graph, _ = _read(arguments)
    _write(graph, arguments)


def fetch(arguments):
    """Have a known graph on this machine, downloaded if need be, and print its path; without a name, list them."""
    from tcgpu import datasets

    if arguments.name is not None and not arguments.list:
        with progress(arguments, f"fetching {arguments.name}"), _removing_parts():
            path = datasets.fetch(arguments.name)
        print(path)
        return
    entries = datasets.catalogue()
    if arguments.json:
        print_json([asdict(entry) for entry in entries])
        return
    rows = [("GRAPH", "FAMILY", "VERTICES", "EDGES", "TRIANGLES", "SOURCE")]
    for e in entries:
        numbers = ("-" if number is None else f"{number:,}" for number in (e.vertices, e.edges, e.triangles))
        rows.append((e.name, e.family, *numbers, e.source))
    print_table(rows, right=(2, 3, 4))


def bench(arguments):
    """Time methods on a graph, each count checked; -o writes the record as CSV.

    A line for each method, in milliseconds: `kernel`, from the first kernel to the last; `process`, which adds memory,
    set-up and reading the result back; `total`, from raw edges on. The tables of the papers are measured by
    benchmarks/papers.py of the source checkout.
    """
    from tcgpu import registry

    if arguments.repeats < 1:
        raise UsageError(f"repeats must be at least 1, not {arguments.repeats}")
    names = [registry.fastest(arguments.engine)] if arguments.methods is None else _methods(arguments.methods)
    for name in names:
        registry.engine_of(registry.choose(name, arguments.engine), arguments.engine)
    graph, _ = _read(arguments)
    with progress(arguments, f"measuring {graph.m:,} edges"):
        rows = tcgpu.measure(graph, names, engine=arguments.engine, repeats=arguments.repeats,
                             name=graph.name or arguments.file, max_seconds=arguments.max_seconds)  # fmt: skip
    print_json(rows) if arguments.json else print(rows)
    if arguments.output:
        with _removing_parts():
            rows.write_csv(STDOUT if arguments.output == "-" else arguments.output)
        print(f"tcgpu: written to {arguments.output}", file=sys.stderr)


def check(arguments):
    """Check whether a method is right: on difficult graphs, for launches of any shape, with every memory access.

    The exit code is 1 if it is not.
    """
    with progress(arguments, f"checking {arguments.method}"):
        against = arguments.against and _methods(arguments.against)
        options = {"order": arguments.order, "engine": arguments.engine}
        report = tcgpu.check(_method(arguments.method), against, **options, **_assignments(arguments.knob))
    if arguments.json:
        problems = [str(problem) for problem in report.problems]
        print_json({"method": report.method, "right": bool(report), "problems": problems, "notes": report.notes})
    else:
        print(report)
    return 0 if report else 1


def warm(arguments):
    """Compile in advance what verbs need, once per machine, in as many processes as there are cores.

    Without names, for all verbs. A line for each says how many seconds it took. Compiled code stays in the user's cache
    folder, or where TCGPU_CACHE says.
    """
    from tcgpu import progress as bars
    from tcgpu import warm

    verbs = arguments.verbs or [*warm.VERBS]
    for verb in verbs:
        check_known("verb", verb, warm.VERBS, UsageError)
    begin, before = time.perf_counter(), warm.bytes_kept()
    with bars.progress(True if arguments.progress else None, len(verbs), "compiling") as bar:
        for verb, seconds in warm.warm(verbs):
            bar.add(1)
            print(f"{verb}: {seconds:.1f} s", flush=True)
    size = warm.bytes_kept() - before
    print(f"all in {time.perf_counter() - begin:.1f} s; {size:,} bytes more in {warm.folders()[0]}")


def reproduce(arguments):
    """Measure the claims of four papers again on this GPU: a record of this machine, and a page of verdicts.

    Ctrl-C keeps what was measured; the same command goes on from there. It runs in a source checkout.
    """
    script = Path(tcgpu.__file__).parents[1] / "benchmarks" / "reproduce.py"
    if not script.exists():
        raise UsageError("the measurements are in tcgpu's source checkout: get it, and run `make reproduce` there")
    given = {name: getattr(arguments, name) for name in ("minutes", "engine", "into", "check")}
    return subprocess.call([sys.executable, script, *(f"--{name}={value}" for name, value in given.items() if value)])


def completion(arguments):
    """Print a script that completes commands and options in bash and zsh: `eval "$(tcgpu completion)"`."""
    sys.stdout.write(Path(__file__).with_name("completion.bash").read_text(encoding="utf-8"))


def trace(arguments):
    """Count a small graph in the simulator and report, line by line, what its kernels would do on a GPU.

    With several methods, a line for each. -o takes the first one: it draws a picture, or writes a web page that shows
    the warps step by step (.html), or keeps the trace in a file (.trace). With --open FILE is such a file.
    """
    if arguments.open == bool(arguments.method):
        raise UsageError("trace takes a graph and --method, or a trace and --open")
    names = _methods(arguments.method or "")
    if arguments.output and not arguments.output.endswith((*PICTURES, ".html", ".trace")):
        raise UsageError(
            f"-o takes a file that ends in {', '.join(PICTURES)}, .html or .trace, not {arguments.output!r}"
        )
    from tcgpu.errors import needing
    from tcgpu.files import given_file, replacing
    from tcgpu.insight import Traces

    if arguments.by != "time" or (arguments.output and not arguments.output.endswith(".trace")):
        with needing("a picture of a trace"):
            from tcgpu.insight.pictures import BY
        if arguments.by not in BY:
            raise UsageError(f"--by: {unknown('measure', arguments.by, BY)}")
    graph = None if arguments.open else _read(arguments)[0]
    with progress(arguments, f"opening {arguments.file}" if arguments.open else f"tracing {graph.m:,} edges"):
        options = {"gpu": arguments.gpu, "order": arguments.order, "max_seconds": arguments.max_seconds}
        if arguments.open:
            path = given_file(sys.stdin.buffer) if arguments.file == "-" else arguments.file
            traces = Traces([tcgpu.load_trace(path)])
        else:
            traces = tcgpu.trace(graph, names, **options, **_assignments(arguments.knob))
        output = arguments.output or ""
        with _removing_parts():
            if output.endswith(".trace"):
                traces[0].save(output)
            elif output.endswith(".html"):
                traces[0].save_page(output, arguments.by)
            elif output:
                with replacing(output) as stream:
                    traces[0].show(arguments.by).savefig(stream, format=output.rpartition(".")[2])
    if arguments.json:
        print_json([row | {"lines": found.lines()} for row, found in zip(traces.totals(), traces, strict=True)])
    else:
        print(traces if len(names) > 1 else traces[0])


def estimate(arguments):
    """Estimate how long the kernels of methods take on a GPU, from a sample of their tasks. No GPU is needed.

    A line for each method: milliseconds, and what limits its longest kernel.
    """
    names = _methods(arguments.method)
    graph, _ = _read(arguments)
    with progress(arguments, f"sampling {graph.m:,} edges"):
        options = {"gpu": arguments.gpu, "fill": arguments.fill, "order": arguments.order}
        rows = tcgpu.estimate(graph, names, **options, **_assignments(arguments.knob)).rows()
    print_json(rows) if arguments.json else print(rows)


# ------------------------------------------------------------------------------------------------- reading and writing


def print_json(value):
    print(json.dumps(value))


def print_table(rows, right=()):
    """Print columns as wide as their widest entry; those whose indices are in `right` are aligned right."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    sides = [str.rjust if k in right else str.ljust for k in range(len(widths))]
    for row in rows:
        print("  ".join(side(cell, width) for side, cell, width in zip(sides, row, widths, strict=True)).rstrip())


def progress(arguments, what):
    """Show progress on stderr, at a terminal or with --progress."""
    return underway(True if arguments.progress else None, what)


def _read(arguments):
    """The Graph of the file an argument names (`-` is stdin), and how many seconds it took to read."""
    from tcgpu import formats

    path, format = arguments.file, arguments.format
    if path == "-":
        path, format = "/dev/stdin", format or "edges"
    begin = time.perf_counter()
    options = {name: getattr(arguments, name) for name in ("base", "n", "relabel", "columns")}
    graph = formats.read(path, format, progress=arguments.progress or None, **options)
    return graph, time.perf_counter() - begin


def _write(graph, arguments):
    path, format, arguments.writes = arguments.output, arguments.to, True
    if path == "-":
        path, format = STDOUT, format or "edges"
    with progress(arguments, f"writing {path}"), _removing_parts():
        tcgpu.write(graph, path, format)


@contextmanager
def _removing_parts():
    """If a signal ends the process, remove what it has written in part, and only then end by that signal."""
    caught = []

    def end(number, frame):
        caught.append(number)
        signal.signal(number, signal.SIG_IGN)
        raise SystemExit

    main = threading.current_thread() is threading.main_thread()  # the only one that can handle signals
    numbers = [number for number in ENDING if main and signal.getsignal(number) == signal.SIG_DFL]
    for number in numbers:
        signal.signal(number, end)
    try:
        yield
    finally:
        for number in numbers:
            signal.signal(number, signal.SIG_DFL)
        if caught:
            os.kill(os.getpid(), caught[0])


# ----------------------------------------------------------------------------------------------------------- arguments


class _Parser(argparse.ArgumentParser):
    """A parser that reports an error in one line, with the command that shows help."""

    def error(self, message):
        self.exit(2, f"tcgpu: {message}; see {self.prog} --help\n")


def _assignments(pairs):
    """`["a=1", "b=x"]` as `{"a": 1, "b": "x"}`."""
    values = {}
    for pair in pairs:
        name, equals, text = pair.partition("=")
        if not (equals and name.isidentifier()):
            raise UsageError(f"{pair!r} is not NAME=VALUE")
        if name in values:
            raise UsageError(f"{name} is given twice")
        values[name] = _value(text)
    return values


def _value(text):
    """A whole number, a number, true, false or none, or else the text."""
    from tcgpu.datasets import parsed

    return {"true": True, "false": False, "none": None}.get(text.lower(), parsed(text))


def _parameters(function):
    """The parameters of a generator as they are typed; all have a seed."""
    given = [p for p in inspect.signature(function).parameters.values() if p.name != "seed"]
    return " ".join(p.name if p.default is p.empty else f"{p.name}={p.default}" for p in given)


def _summary(function):
    return (inspect.getdoc(function) or "").partition("\n")[0]  # `python -OO` keeps no docstrings


def _parser():
    parser = _Parser(prog="tcgpu", description="Count the triangles of a graph: on a GPU, or on all cores of a CPU.")
    parser.add_argument("--version", action="version", version=f"tcgpu {tcgpu.__version__}")
    parser.epilog = "`tcgpu COMMAND --help` says more about a command, with an example."
    commands = parser.commands = parser.add_subparsers(required=True, metavar="COMMAND")

    option = _command(commands, count, "graph.txt --json", *FILE, *SIMULATED, "--method", "--order", "--knob")
    option("--engine", metavar="E", help="gpu, webgpu, sim or cpu (default: the first that is here, not webgpu)")
    option("--device-memory", metavar="SIZE", help="device memory to use, such as 512MB; a larger graph is streamed")
    option("--resume", metavar="JOURNAL", help="a file that records counted parts; those in it are not counted again")
    option("--executor", metavar="E", help="by many workers: gpus, processes or threads, or dask://HOST:PORT")
    option("--per-vertex", action="store_true", help="print each vertex's label, a tab, and its triangles")
    option("--approximate", metavar="E", type=_value, help="estimate, with a relative error such as .01")
    option("--seed", metavar="N", type=_value, help="the seed of the random numbers of an estimate")

    option = _command(commands, clustering, "graph.txt", *FILE, *COUNTING)
    option("--average", action="store_true", help="print only the mean over all vertices")

    for function in transitivity, support:
        _command(commands, function, "graph.txt", *FILE, *COUNTING)

    option = _command(commands, motifs, "graph.txt", *FILE, *SIMULATED, "--engine")
    option("--all", action="store_true", help="also the subgraphs that are not connected")

    option = _command(commands, cliques, "graph.txt --k 4", *FILE, *SIMULATED, "--engine")
    option("--k", metavar="K", type=int, default=3, help="how many vertices (default: 3)")
    option("--kind", metavar="KIND", default="clique", help="clique (default), connected or independent")

    _command(commands, list_, "graph.txt", *FILE, *SIMULATED, "--engine")

    option = _command(commands, truss, "graph.txt --k 4 -o truss.txt", *FILE, *SIMULATED, "--engine", "--to")
    option("--k", metavar="K", type=int, help="which truss, 2 or more (default: count the edges of every one)")
    option("-o", "--output", metavar="OUT", help="where to write the truss; - is stdout")

    _command(commands, info, "graph.txt", *FILE, "--json")

    _command(commands, methods, "--json", "--json")

    _command(commands, devices, "", "--json")

    option = _command(commands, generate, "rmat scale=10 edge_factor=8 --seed 1 -o rmat.npz", "--to")
    option("name", metavar="NAME", nargs="?", help="the generator")
    option("parameters", metavar="NAME=VALUE", nargs="*", help="its parameters")
    option("--seed", metavar="N", type=int, help="the seed of the random numbers")
    option("-o", "--output", metavar="FILE", help="where to write the graph; - writes an edge list to stdout")

    option = _command(commands, convert, "graph.txt graph.npz", "file", "--from", *FILE[2:], "--to")
    option("output", metavar="OUT", help="where to write the graph; - writes an edge list to stdout")

    option = _command(commands, fetch, "mesh_16x16", "--json")
    option("name", metavar="NAME", nargs="?", help="the graph")
    option("--list", action="store_true", help="list the graphs and what is published of them")

    option = _command(commands, bench, "graph.txt --methods cpu,naive --repeats 3", *FILE, *SIMULATED)
    option("--methods", metavar="M,M", help=f"which methods; {LISTED} (default: the fastest here)")
    option("--engine", metavar="E", help="gpu, webgpu, sim or cpu (default: the first of each method that is here)")
    option("--repeats", metavar="N", type=int, default=5, help="runs of which the median counts (default: 5)")
    option("-o", "--output", metavar="FILE", help="where to write the record; - is stdout")

    option = _command(commands, check, "naive", "--json", "--order", "--knob")
    option("method", metavar="METHOD", help=LISTED)
    option("--against", metavar="M,M", help="methods to compare its estimated time with")
    option("--engine", metavar="E", help="gpu: nothing is simulated (default: the simulator, and a GPU if one is here)")

    option = _command(commands, warm, "count")
    option("verbs", metavar="VERB", nargs="*", help="functions of tcgpu, such as count, motifs, read (default: all)")

    option = _command(commands, reproduce, "--minutes 15")
    option("--minutes", metavar="M", help="how long it may take (default: 15)")
    option("--engine", metavar="E", help="gpu, webgpu or sim (default: the GPU that is here)")
    option("--into", metavar="FOLDER", help="where the record and the page go (default: reproduced)")
    option("--check", metavar="FILE", help="measure nothing: say what is wrong with this record")

    _command(commands, completion, "")

    example = "graph.txt --method naive --knob threads=64 -o trace.html"
    option = _command(commands, trace, example, *FILE, *SIMULATED, "--gpu", "--order", "--knob")
    option("--method", metavar="M,M", help=f"the methods; {LISTED}")
    option("--open", action="store_true", help="FILE is a trace that -o kept")
    option("--by", metavar="WHAT", default="time", help="measure of the bars: time, load_sectors, steps, ...")
    kinds = f"a picture, {', '.join(PICTURES)}, a web page, .html, or a trace, .trace"
    option("-o", "--output", metavar="FILE", help=kinds)

    example = "graph.txt --method naive,bitmap --fill"
    option = _command(commands, estimate, example, *FILE, "--json", "--gpu", "--order", "--knob")
    option("--method", metavar="M,M", required=True, help=f"the methods; {LISTED}")
    option("--fill", action="store_true", help="the time of one copy, of as many as fill the GPU")
    return parser


def _parsed(argv):
    """The parsed arguments. argparse ends a list of words at the first option: words after it are added here."""
    parser, argv = _parser(), sys.argv[1:] if argv is None else argv
    if argv and not argv[0].startswith("-") and argv[0] not in parser.commands.choices:
        parser.error(unknown("command", argv[0], parser.commands.choices))
    arguments, more = parser.parse_known_args(argv)
    words = getattr(arguments, "parameters", None)
    wrong = more if words is None else [word for word in more if word.startswith("-")]
    if wrong:
        options = [word for action in arguments.parser._actions for word in action.option_strings]
        hint = did_you_mean(wrong[0].partition("=")[0], options) if wrong[0].startswith("-") else ""
        arguments.parser.error(f"unrecognized arguments: {' '.join(wrong)}{hint}")
    if more:
        words.extend(more)
    return arguments


def _command(commands, function, example, *shared):
    """Add a command, named and described as its function is; return the function that adds its own arguments.

    shared: the arguments out of SHARED that it has, too.
    """
    name = function.__name__.rstrip("_")
    command = commands.add_parser(name, help=_summary(function), description=inspect.getdoc(function),
                                  epilog=f"example: tcgpu {name} {example}", allow_abbrev=False)  # fmt: skip
    command.set_defaults(command=function, parser=command)
    option = command.add_argument
    option("--progress", action="store_true", help="report on stderr even where it is no terminal")
    for argument in shared:
        option(argument, **SHARED[argument])
    return option


def _columns(text):
    """Two columns as `tcgpu.read` takes them."""
    columns = tuple(text.split(","))
    return tuple(map(int, columns)) if all(map(str.isdecimal, columns)) else columns


def _seconds(text):
    """A number of seconds above 0."""
    seconds = _value(text)
    if not isinstance(seconds, (int, float)) or not seconds > 0:
        raise argparse.ArgumentTypeError(f"{text} is no number of seconds above 0")
    return seconds


# what several commands take
FORMAT = {"dest": "format", "metavar": "F", "help": FORMATS}
SHARED = {
    "file": {"metavar": "FILE", "help": "the graph; - reads an edge list from stdin"},
    "--format": FORMAT,
    "--from": FORMAT,
    "--base": {"metavar": "B", "type": int, "help": "the first vertex number, 0 or 1 (default: as the format says)"},
    "--n": {"metavar": "N", "type": int, "help": "the number of vertices (default: as the file says)"},
    "--relabel": {
        "action": argparse.BooleanOptionalAction,
        "help": "an edge list's vertices are those that occur (default), also with names, or all up to the largest",
    },
    "--columns": {
        "metavar": "A,B",
        "type": _columns,
        "help": "which two columns of an edge list are the ends of an edge: numbers, from 0 on, or names",
    },
    "--max-seconds": {
        "metavar": "S",
        "type": _seconds,
        "help": "how long the simulator may take, by its estimate (default: 30 seconds)",
    },
    "--json": {"action": "store_true", "help": "print one JSON value"},
    "--method": {"metavar": "M", "help": f"how to count; {LISTED} (default: the best here)"},
    "--engine": {"metavar": "E", "help": "gpu, sim or cpu (default: gpu if there is one, else cpu)"},
    "--order": {"metavar": "O", "help": "natural, degree, bfs, random or auto (default: the method's own)"},
    "--knob": {"metavar": "NAME=VALUE", "action": "append", "default": [], "help": "of the method; may be repeated"},
    "--to": {"metavar": "F", "help": FORMATS},
    "--gpu": {"metavar": "NAME", "default": "NVIDIA H200", "help": "NVIDIA H200 (default), NVIDIA H100 or Tesla T4"},
}
FILE = "file", "--format", "--base", "--n", "--relabel", "--columns"
SIMULATED = "--max-seconds", "--json"
COUNTING = *SIMULATED, "--method", "--engine", "--order"


# ---------------------------------------------------------------------------------------------------------------- main


def main(argv=None):
    """Run one command; returns the exit code."""
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="backslashreplace")  # names of files and vertices may be of any encoding
    arguments = _parsed(argv)
    try:
        with _log_on_stderr(arguments):
            sys.stdout.flush()
            # what is printed about a graph must not get into the graph
            with redirect_stdout(sys.stderr) if getattr(arguments, "output", None) in ("-", STDOUT) else nullcontext():
                code = arguments.command(arguments)
        sys.stdout.flush()
    except BrokenPipeError:  # whoever read the output has seen enough, as `head` does
        _forget_stdout()
        return 141  # what a shell reports of a process that ended by SIGPIPE
    except KeyboardInterrupt:
        native = sys.modules.get("tcgpu.engines.native")
        if native is not None and native.busy():  # with what cannot be stopped: Python would wait for it
            os._exit(130)
        return 130
    except Exception as error:
        said = _bad_input(error)
        if said is None:
            raise
        _forget_stdout()
        print(f"tcgpu: {_as_typed(said, arguments)}", file=sys.stderr)
        return 2
    return code or 0


@contextmanager
def _log_on_stderr(arguments):
    """Write the package's log, such as that a run takes long, to stderr like other messages."""
    begin = "\r\033[K" if sys.stderr.isatty() else ""
    handler = logging.StreamHandler(sys.stderr)
    handler.format = lambda record: f"{begin}tcgpu: {_as_typed(record.getMessage(), arguments)}"
    log = logging.getLogger("tcgpu")
    log.addHandler(handler)
    try:
        yield
    finally:
        log.removeHandler(handler)


def _bad_input(error):
    """One line about an error that its user can mend; None for any other."""
    if isinstance(error, MemoryError) or any(text in str(error) for text in STARVED):
        return " ".join(["out of memory:", *str(error).split()]).rstrip(":")  # nothing is imported for it
    if isinstance(error, OSError) and error.strerror:
        said = f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    elif isinstance(error, (UsageError, OSError, tcgpu.TcgpuError, BrokenExecutor)):
        said = str(error) or type(error).__name__
    else:
        return None
    return " ".join(said.split())


def _as_typed(message, arguments):
    """A message with the options of the command in place of Python's keywords: --engine cpu for engine='cpu'."""
    options = {action.dest: action.option_strings for action in arguments.parser._actions if action.option_strings}

    def option(keyword):
        name, value = keyword.groups()
        if name not in options:
            return keyword[0]
        if value in ("True", "False"):
            return options[name][value == "False"]  # --relabel, --no-relabel
        return " ".join([options[name][0], *re.findall(r"[^()'\" ]+", value)]).replace(", ", ",")

    if hasattr(arguments, "writes"):
        options["format"] = ["--to"]
    message = re.sub(r"^(\w+)(?= must be )", lambda name: options.get(name[0], name)[0], message)
    message = message.partition(", and in Python ")[0].replace("tcgpu.datasets.catalogue()", "`tcgpu fetch`")
    message = message.replace("tcgpu.count ", "`tcgpu count` ").replace("tcgpu.write ", "`tcgpu convert` ")
    message = re.sub(r"tcgpu\.load\('(.*?)'\)", r"`tcgpu fetch \1`", message)
    return re.sub(KEYWORD, option, message)


def _forget_stdout():
    """What could not be written is not tried once more, and complained about, when Python ends."""
    try:
        sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


if __name__ == "__main__":
    sys.exit(main())
