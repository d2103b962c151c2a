"""A kernel of one's own, decorated with `tcgpu.method`: it counts, and every verb takes it; mistakes get a sentence."""

import inspect
import linecache
import logging
import textwrap
from importlib.metadata import EntryPoint

import numpy as np
import pytest
from kernel_shapes import small_graphs

import tcgpu
from tcgpu import cuda, int32, int64, registry, uint32
from tcgpu.engines import kernel_compiler
from tcgpu.errors import KernelError, MethodError
from tcgpu.kernels import formulas
from tcgpu.kernels import method as declaring

CLIQUE = tcgpu.generate.clique(7)
GRAPHS = small_graphs()
SMALL = ("nothing", "no edges", "one edge", "one triangle", "wheel", "empty columns between", "skewed")


@tcgpu.method(threads=64, blocks=8)
def per_column(col_ptr, row_idx, total):
    """A thread per column."""
    count = int64(0)
    j = cuda.grid(1)
    while j < col_ptr.size - 1:
        for e in range(col_ptr[j], col_ptr[j + 1]):
            i = row_idx[e]
            p, q = e + 1, col_ptr[i]
            while p < col_ptr[j + 1] and q < col_ptr[i + 1]:
                x, y = row_idx[p], row_idx[q]
                count += x == y
                p += x <= y
                q += y <= x
        j += cuda.gridsize(1)
    cuda.atomic.add(total, 0, count)


@tcgpu.method("row by row", threads=32, blocks=4, least=2)
def per_row(n, row_ptr, col_idx, degree, least, total):
    """A thread per row: each pair of its columns is looked up in the row of the larger one."""
    for i in range(cuda.grid(1), n, cuda.gridsize(1)):
        if degree[i] >= least:
            for p in range(row_ptr[i], row_ptr[i + 1]):
                for q in range(row_ptr[i], p):
                    for r in range(row_ptr[col_idx[p]], row_ptr[col_idx[p] + 1]):
                        if col_idx[r] == col_idx[q]:
                            cuda.atomic.add(total, 0, 1)


@tcgpu.method(threads=32, blocks=3, arrays={"bits": ("blocks * ((n + 31) // 32)", uint32)}, shared="8 * threads")
def with_bits(col_ptr, row_idx, bits, total):
    """A block per column, as bits; a block adds up its counts in shared memory."""
    counts, thread = cuda.shared.array(0, int64), cuda.threadIdx.x
    first = cuda.blockIdx.x * (bits.size // cuda.gridDim.x)
    counts[thread] = 0
    for j in range(cuda.blockIdx.x, col_ptr.size - 1, cuda.gridDim.x):
        for e in range(col_ptr[j] + thread, col_ptr[j + 1], cuda.blockDim.x):
            cuda.atomic.or_(bits, first + (row_idx[e] >> 5), uint32(1) << uint32(row_idx[e] & 31))
        cuda.syncthreads()
        for e in range(col_ptr[j] + thread, col_ptr[j + 1], cuda.blockDim.x):
            for q in range(col_ptr[row_idx[e]], col_ptr[row_idx[e] + 1]):
                counts[thread] += bits[first + (row_idx[q] >> 5)] >> uint32(row_idx[q] & 31) & 1
        cuda.syncthreads()
        for e in range(col_ptr[j] + thread, col_ptr[j + 1], cuda.blockDim.x):
            bits[first + (row_idx[e] >> 5)] = 0
        cuda.syncthreads()
    cuda.syncthreads()
    if thread == 0:
        for other in range(1, cuda.blockDim.x):
            counts[0] += counts[other]
        cuda.atomic.add(total, 0, counts[0])


@tcgpu.kernel
def measure_columns(col_ptr, lengths):
    j = cuda.grid(1)
    while j < lengths.size:
        lengths[j] = col_ptr[j + 1] - col_ptr[j]
        j += cuda.gridsize(1)


@tcgpu.kernel
def count_sorted(vertices, lengths, col_ptr, row_idx, least, total):
    k = cuda.grid(1)
    while k < vertices.size:
        j = vertices[k]
        if lengths[j] >= least:
            for e in range(col_ptr[j], col_ptr[j + 1]):
                for p in range(e + 1, col_ptr[j + 1]):
                    for q in range(col_ptr[row_idx[e]], col_ptr[row_idx[e] + 1]):
                        if row_idx[p] == row_idx[q]:
                            cuda.atomic.add(total, 0, 1)
        k += cuda.gridsize(1)


@tcgpu.method(threads=32, blocks=4, least=2, arrays={"lengths": ("n", int32, None)})
def long_first(graph, threads, blocks, least):
    """Two kernels in a row, on columns that the host has sorted by length."""
    vertices = np.argsort(-graph.column_lengths, kind="stable").astype(np.int32)
    return [
        tcgpu.launch(measure_columns, graph.n, threads, blocks),
        tcgpu.launch(count_sorted, graph.n, threads, blocks, vertices=vertices, least=least),
    ]


OWN = [per_column, per_row, with_bits, long_first]


@pytest.fixture
def registered():
    """Methods that were registered are gone after the test."""
    before = dict(registry.METHODS)
    yield tcgpu.register
    registry.METHODS.clear()
    registry.METHODS.update(before)


# ------------------------------------------------------------------------------------------------------------ the verbs


@pytest.mark.parametrize("own", OWN, ids=lambda own: own.name)
@pytest.mark.parametrize("name", SMALL)
def test_it_counts_with_any_launch_shape(own, name):
    graph, expected = GRAPHS[name], tcgpu.count(GRAPHS[name], "cpu")
    assert tcgpu.count(graph, own, engine="sim") == expected
    for threads, blocks in ((1, 1), (33, 3), (5, 7)):
        assert tcgpu.count(graph, own, engine="sim", threads=threads, blocks=blocks) == expected
    assert tcgpu.count(graph, own, engine="sim", order="degree") == expected


@pytest.mark.parametrize("own", OWN, ids=lambda own: own.name)
def test_it_is_measured_traced_and_estimated_beside_the_built_in_ones(own):
    rows = tcgpu.measure(CLIQUE, [own, "naive"], engine="sim", knobs={"threads": 32}, repeats=2)
    assert [row["method"] for row in rows] == [own.name, "naive"] and {row["triangles"] for row in rows} == {35}
    traces = tcgpu.trace(CLIQUE, [own, "naive"], threads=32)
    assert [trace.method for trace in traces] == [own.name, "naive"]
    trace = tcgpu.trace(CLIQUE, own)
    assert trace.triangles == 35 and trace.totals()["load_requests"] > 0 and trace.knobs == own.knobs
    written = inspect.getsource(own if own is not long_first else count_sorted).splitlines()
    assert {row["text"] for row in trace.lines(kernel=trace.main().kernel)} < {line.strip() for line in written}
    found = tcgpu.estimate(CLIQUE, [own, "naive"])
    assert [each.method for each in found] == [own.name, "naive"] and all(each.ms > 0 for each in found)


def test_a_knob_and_the_launch_shape_reach_the_kernel():
    @tcgpu.method(threads=32, blocks=2, step=5, twice=True, part=0.5)
    def adds(n, m, threads, blocks, step, twice, part, total):
        if cuda.grid(1) == 0:
            total[0] = n + 10 * m + 1000 * threads + 100_000 * blocks + 1_000_000 * step + (part > 0.25 and twice)

    assert adds.knobs == {"threads": 32, "blocks": 2, "step": 5, "twice": True, "part": 0.5}
    assert tcgpu.count([(0, 1)], adds, engine="sim") == 2 + 10 + 32_000 + 200_000 + 5_000_000 + 1
    assert tcgpu.count([(0, 1)], adds, engine="sim", step=7, twice=False) == 2 + 10 + 32_000 + 200_000 + 7_000_000
    with pytest.raises(MethodError, match=r"step is a whole number from 0 to .*, not 'a'"):
        tcgpu.count(CLIQUE, adds, engine="sim", step="a")
    with pytest.raises(MethodError, match=r"twice is one of False, True, not 3"):
        tcgpu.count(CLIQUE, adds, engine="sim", twice=3)
    with pytest.raises(MethodError, match=r"'adds' has no knob 'stepp' \(did you mean 'step'\?\)"):
        tcgpu.count(CLIQUE, adds, engine="sim", stepp=3)


def test_arrays_that_a_kernel_leaves_full_are_filled_again_before_each_run():
    @tcgpu.method(threads=1, blocks=1, arrays={"seen": ("n", int32, -1)})
    def once(seen, total):
        if seen[0] == -1:
            total[0] = 7
        seen[0] = 1

    assert [row["triangles"] for row in tcgpu.measure(CLIQUE, once, engine="sim", repeats=3)] == [7]


def test_a_kernel_may_use_names_of_the_function_around_it_and_device_functions():
    step = 4

    @cuda.jit(device=True)
    def larger(value):
        return value + step

    @tcgpu.method(threads=1, blocks=1)
    def closure(total):
        total[0] = larger(step)

    assert tcgpu.count(CLIQUE, closure, engine="sim") == 8


def test_verbs_that_take_few_methods_refuse_it_by_its_name():
    with pytest.raises(MethodError, match="list_triangles has the methods cpu, not 'per_column'"):
        tcgpu.list_triangles(CLIQUE, method=per_column)
    with pytest.raises(MethodError, match="k_truss has the methods cpu, k_truss, not 'per_column'"):
        tcgpu.k_truss(CLIQUE, 3, method=per_column)
    with pytest.raises(MethodError, match="method 'per_column' does not tell edge from edge"):
        tcgpu.triangles(CLIQUE, method=per_column, engine="sim")
    assert tcgpu.transitivity(CLIQUE, method=per_column, engine="sim") == 1
    assert not tcgpu.is_triangle_free(CLIQUE, method=per_column, engine="sim")


def test_the_source_of_a_method_is_that_of_its_function():
    assert inspect.getsource(per_column).startswith("@tcgpu.method(threads=64, blocks=8)\ndef per_column(")
    assert repr(per_column) == "<method 'per_column': A thread per column.>"


# ---------------------------------------------------------------------------------------------------------- names of it


def test_a_registered_method_goes_by_its_name(registered):
    with pytest.raises(MethodError, match="no method 'per_column'"):
        tcgpu.count(CLIQUE, "per_column")
    assert registered(per_column) is per_column and per_column in tcgpu.methods()
    assert tcgpu.count(CLIQUE, "per_column", engine="sim") == 35
    tcgpu.unregister("per_column")
    assert per_column not in tcgpu.methods()
    with pytest.raises(MethodError, match="no registered method 'per_column'"):
        tcgpu.unregister("per_column")


def test_a_cell_that_runs_again_replaces_its_own_method_but_no_built_in_one(registered):
    again = tcgpu.method("per_column", threads=32)(per_column.function)
    registered(per_column)
    registered(again)
    assert registry.METHODS["per_column"] is again
    taken = tcgpu.method("naive")(per_column.function)
    for use in (registered, lambda own: tcgpu.count(CLIQUE, own), lambda own: tcgpu.trace(CLIQUE, [own])):
        with pytest.raises(MethodError, match="there is a built-in method 'naive': give yours another name"):
            use(taken)
    with pytest.raises(MethodError, match="'naive' is a built-in method: it stays"):
        tcgpu.unregister("naive")
    with pytest.raises(MethodError, match=r"not <function .*; decorate it with @tcgpu.method"):
        tcgpu.count(CLIQUE, per_column.function)


def test_packages_register_methods_by_entry_points(monkeypatch, registered, caplog):
    """One of theirs that is broken, or has a name that is taken, is left out; the others are there."""
    group = registry.ENTRY_POINTS
    points = [
        EntryPoint("rows", f"{__name__}:per_row", group),
        EntryPoint("broken", "no_such_package_at_all:mine", group),
        EntryPoint("no_method", f"{__name__}:SMALL", group),
    ]
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: points)
    registry._entry_points.cache_clear()
    with caplog.at_level(logging.WARNING, "tcgpu"):
        assert tcgpu.count(CLIQUE, "row by row", engine="sim") == 35
    assert len(caplog.messages) == 2 and "no_such_package_at_all" in caplog.text
    assert per_row in tcgpu.methods()


# --------------------------------------------------------------------------------------------------------- the compiler


def signatures(own):
    """(Kernel, signature) of each launch of a method's plan."""
    return [(step.kernel, *step.kernel.signatures) for step in own.plan(CLIQUE).steps]


def test_types_are_those_of_the_arguments():
    assert [found for _, found in signatures(per_row)] == [
        "void(int64, int64[::1], int32[::1], int32[::1], int64, int64[::1])"
    ]
    assert [found for _, found in signatures(long_first)] == [
        "void(int64[::1], int32[::1])",
        "void(int32[::1], int32[::1], int64[::1], int32[::1], int64, int64[::1])",
    ]
    given = "void(int64[::1], int32[::1], int64[::1])"
    assert signatures(tcgpu.method(signature=given)(per_column.function))[0][1] == given


@pytest.mark.ptx
@pytest.mark.parametrize("capability", [(7, 5), (8, 0), (9, 0)])
@pytest.mark.parametrize("own", OWN, ids=lambda own: own.name)
def test_it_compiles_for_each_gpu(own, capability):
    for kernel, signature in signatures(own):
        ptx = kernel_compiler.to_ptx(kernel_compiler.to_ltoir(kernel.py_func, signature, capability), capability)
        assert "sm_{}{}".format(*capability) in ptx and ".f64" not in ptx


# ------------------------------------------------------------------------------------------------------------- mistakes


def declared(head, body="total[0] = 0", **options):
    """What `tcgpu.method(**options)` says of a function with this head."""
    name = f"<{head}>"
    source = f"def mine({head}):\n{textwrap.indent(body, '    ')}\n"
    linecache.cache[name] = (len(source), None, source.splitlines(True), name)
    namespace = {"cuda": cuda}
    exec(compile(source, name, "exec"), namespace)
    with pytest.raises(MethodError) as caught:
        tcgpu.count(CLIQUE, tcgpu.method(**options)(namespace["mine"]), engine="sim")
    return str(caught.value)


@pytest.mark.parametrize(
    "head, options, words",
    [
        ("col_ptr, row_ix, total", {}, "parameter 'row_ix' (did you mean 'row_idx'?), which is no array of a graph"),
        ("col_ptr, row_idx", {}, "no parameter 'total': a kernel adds what it counts to total[0]"),
        ("total, lanes=8", {}, "mine has a default, lanes=8: write it into @tcgpu.method(...) as a knob"),
        ("*total", {}, "each argument of a method has a name"),
        ("total", {"lanes": 8}, "declares knob 'lanes' and has no parameter of that name"),
        ("lane, total", {"lanes": 8}, "parameter 'lane' (did you mean 'lanes'?)"),
        ("bits, total", {"arrays": {"bit": "n"}}, "parameter 'bits' (did you mean 'bit'?)"),
        ("total", {"arrays": {"bits": "n"}}, "declares array 'bits' and has no parameter of that name"),
        ("total", {"threads": 0}, "threads is a whole number from 1 to 1,024, not 0"),
        ("total", {"blocks": "many"}, "blocks is a whole number from 1 to 2,147,483,647, not 'many'"),
        ("lanes, total", {"lanes": "8"}, "the default of knob 'lanes' is a number, True or False, not '8'"),
        ("lanes, total", {"lanes": None}, "the default of knob 'lanes' is a number"),
        ("n, total", {"n": 3}, "has a knob 'n', which is the name of something else"),
        ("bits, total", {"arrays": {"bits": "block * n"}}, "has the name 'block' (did you mean 'blocks'?)"),
        ("bits, total", {"arrays": {"bits": "n *"}}, "the size of array 'bits', 'n *', is no formula"),
        ("bits, total", {"arrays": {"bits": "n ** 9"}}, "has 'n ** 9': a formula takes whole numbers"),
        ("bits, total", {"arrays": {"bits": "open('x')"}}, "has \"open('x')\": a formula takes"),
        ("bits, total", {"arrays": {"bits": "n - 8"}}, "is -1 here: it is 0 or more"),
        ("bits, total", {"arrays": {"bits": "n / (m - 21)"}}, "divides by 0 here"),
        ("bits, total", {"arrays": {"bits": 1.5}}, "is a whole number or a formula such as 'n / 32', not 1.5"),
        ("bits, total", {"arrays": {"bits": ("n", "strange")}}, "the type of array 'bits' is one such as tcgpu.uint32"),
        ("bits, total", {"arrays": {"bits": ("n", object)}}, "is one of numbers, such as tcgpu.uint32, not object"),
        ("bits, total", {"arrays": {"bits": ("n", int32, 5)}}, "a fill of 0, -1 or None"),
        ("degree, total", {"arrays": {"degree": "n"}}, "declares an array 'degree', which every graph has"),
        ("total", {"shared": "8 * thread"}, "the shared memory of mine, '8 * thread', has the name 'thread' (did you"),
        ("total", {"shared": -4}, "the shared memory of mine, -4, "),
        ("total", {"signature": "void(int32)"}, "in the signature of mine, the type of 'total' is int64[::1]"),
        ("n, total", {"signature": "void(int32[:], int64[::1])"}, "signature of mine, the type of 'n' is a number"),
        ("total", {"signature": "int64[::1]"}, "a kernel's signature is void(...)"),
        ("n, total", {"signature": "void(int64[::1])"}, "the signature of mine has 1 types for 2 parameters"),
        ("total", {"order": "degrees"}, "no order 'degrees' (did you mean 'degree'?)"),
        ("total", {"tasks": "columns"}, 'tasks is a tuple such as ("columns", "merge"), not \'columns\''),
        ("total", {"tasks": ("rows", "merge")}, "no kind of tasks 'rows'; there are columns, nonzeros"),
        ("total", {"name": 3}, "the name of a method is a text, not 3"),
    ],
)
def test_a_mistake_in_the_declaration_gets_a_sentence(head, options, words):
    if "name" in options:
        with pytest.raises(MethodError, match="is a text"):
            tcgpu.method(options["name"])
        return
    assert words in declared(head, **options)


def test_a_function_inside_a_kernel_may_return_something():
    @tcgpu.method(threads=1, blocks=1)
    def calls_its_own(total):
        def larger(x):
            return x + 1

        total[0] = larger(4)

    assert tcgpu.count(CLIQUE, calls_its_own, engine="sim") == 5


def test_a_kernel_that_returns_something_gets_a_sentence():
    assert "mine returns 'n': a kernel returns nothing; add what it counts" in declared("n, total", "return n")


def test_a_knob_that_a_launch_does_not_pass_on_is_named():
    @tcgpu.kernel
    def in_steps(row_idx, step, total):
        cuda.atomic.add(total, 0, step)

    @tcgpu.method(threads=32, blocks=2, step=3)
    def forgets(graph, threads, blocks, step):
        return [tcgpu.launch(in_steps, graph.m, threads, blocks)]

    with pytest.raises(MethodError, match=r"'step' without its value: tcgpu.launch\(..., step=step\)"):
        tcgpu.count(tcgpu.generate.clique(4), forgets, engine="sim")


def test_mistakes_of_a_function_that_plans_get_a_sentence():
    assert "mine returns a list of tcgpu.launch(...), or a tcgpu.Plan, not 3" in declared("graph", "return 3")
    assert "or a tcgpu.Plan, not []" in declared("graph", "return []")
    assert "parameter 'lane' (did you mean 'lanes'?), which is no knob" in declared("graph, lane", "return 1", lanes=2)
    assert "signatures are those of its kernels" in declared("graph", "return 1", signature="void()")
    own = tcgpu.method(arrays={"length": "n"})(lambda_like_plan)
    with pytest.raises(MethodError, match=r"array 'lengths' \(did you mean 'length'\?\), which no graph has"):
        tcgpu.count(CLIQUE, own, engine="sim")


def lambda_like_plan(graph):
    return [tcgpu.launch(measure_columns, graph.n, 32, 1)]


def test_a_function_without_source_gets_a_sentence():
    namespace = {}
    exec("def mine(total):\n    total[0] = 1", namespace)
    for function in (namespace["mine"], lambda total: None):
        with pytest.raises(MethodError, match="tcgpu reads the source of a kernel, and finds none of"):
            tcgpu.method()(function)
    with pytest.raises(MethodError, match="decorates a function, not <built-in function len>"):
        tcgpu.method()(len)
    with pytest.raises(MethodError, match="decorated as a kernel already"):
        tcgpu.method()(measure_columns)
    with pytest.raises(KernelError, match="finds none of 'mine': Python's prompt keeps none; write it with `def` in a"):
        tcgpu.simulate(namespace["mine"], 1, 1, np.zeros(1, np.int64))


def test_the_built_in_methods_are_made_by_the_same_means():
    for built_in in tcgpu.methods():
        if built_in.name != "cpu":
            about = {name: getattr(built_in, name) for name in ("source", "summary", "order", "tasks")}
            knobs = {knob.name: knob for knob in built_in.declared}
            again = tcgpu.method("again", prepare=built_in.prepared, **about, **knobs)(built_in.function)
            assert again.knobs == built_in.knobs and again.summary == built_in.summary
            assert tcgpu.count(GRAPHS["one triangle"], again, engine="sim") == 1


def test_a_method_may_find_the_triangles_of_edges():
    own = tcgpu.method("edge by edge")(per_column.function)
    own.for_edges(registry.METHODS["bitmap_thread"].support_plan)
    assert tcgpu.support(CLIQUE, method=own, engine="sim").tolist() == [5] * 21
    assert tcgpu.triangles(CLIQUE, method=own, engine="sim").tolist() == [15] * 7


@pytest.mark.parametrize(
    "text, expected", [("n / 32", 2), ("blocks * n / 32", 4), ("min(n, 8) % 3 + 2 * (m - 1) // 4", 5), (7, 7)]
)
def test_a_formula_is_exact_and_rounded_up(text, expected):
    values = {"n": 33, "m": 7, "blocks": 3}
    assert formulas.Formula(text, set(values), "a size")(values) == expected


def test_the_documented_arrays_are_those_that_there_are():
    for name in declaring.ARRAYS:
        assert name in declaring.__doc__
