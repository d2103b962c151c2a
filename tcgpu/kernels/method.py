"""The decorator `method`: it makes a Method of a kernel, or of a function that plans several launches.

A kernel gets its arguments by their names:

    n, m                   vertices and edges of the graph
    col_ptr, row_idx       the columns of L: the rows of column j are row_idx[col_ptr[j]:col_ptr[j + 1]], ascending
    col_of                 the column of each nonzero
    row_ptr, col_idx       the rows of L: the columns of row i are col_idx[row_ptr[i]:row_ptr[i + 1]], ascending
    degree                 how many neighbours each vertex has
    total                  one int64, to which the kernel adds the number of triangles
    threads, blocks        those of the launch
    worker, workers        which of how many shares of the graph to count: 0 and 1, or what an executor says
    any knob, any array    that the declaration names

Arrays are int32, but `col_ptr`, `row_ptr` and `total` are int64; whole numbers are int64.
"""

import ast
import inspect
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from types import FunctionType
from typing import Any, overload

import numpy as np

from tcgpu.arrays import bincount
from tcgpu.declarations import USUAL_KNOBS, Knob, Method
from tcgpu.engines import runtime
from tcgpu.engines.kernel_language import NO_SOURCE, parameters, source_tree
from tcgpu.errors import KernelError, MethodError
from tcgpu.graph import Order, as_graph, known_order
from tcgpu.kernels import Plan, Scan, Step, check_share, enough_blocks, simulated
from tcgpu.kernels.formulas import Formula
from tcgpu.suggest import check_known, did_you_mean

THREADS, BLOCKS = 128, 64  # of a kernel whose declaration does not say
SIZES = ("n", "m")
SHARE = ("worker", "workers")
TASKS = {"columns": "n", "nonzeros": "m"}  # what a thread takes -> how many there are
ROW_US = 1.3  # microseconds of the simulator for a row that is read: those of `naive`


# name of an array of every graph -> its type, and how it is made
ARRAYS: dict[str, tuple[type, Callable]] = {
    "col_ptr": (np.int64, lambda graph: graph.col_ptr),
    "row_idx": (np.int32, lambda graph: graph.row_idx),
    "col_of": (np.int32, lambda graph: graph.col_of),
    "row_ptr": (np.int64, lambda graph: np.append(0, np.cumsum(bincount(graph.row_idx, minlength=graph.n)))),
    "col_idx": (np.int32, lambda graph: graph.col_of[np.argsort(graph.row_idx, kind="stable")]),
    "degree": (np.int32, lambda graph: graph.degrees.astype(np.int32)),
}


@overload
def method(function: Callable, /) -> Method: ...


@overload
def method(name: str | None = None, /, **declared: Any) -> Callable[[Callable], Method]: ...


def method(
    name: Any = None,
    /,
    *,
    threads: Any = None,
    blocks: Any = None,
    arrays: dict[str, Any] | None = None,
    shared: int | str = 0,
    signature: str | None = None,
    order: Order = "natural",
    tasks: tuple[str, ...] | None = None,
    prepare: Callable[..., Any] = as_graph,
    source: str = "your own",
    summary: str | None = None,
    **knobs: Any,
) -> Any:
    """Decorate a kernel as a method; or a function that plans launches: one whose first parameter is `graph`.

    Such a function gets the graph, knobs by their names, and, if it has a parameter `share`, which share of the graph
    to count, (index, of). It returns a list of `tcgpu.launch(...)`, or a `tcgpu.Plan`.

    The Method that it makes is for every verb: `tcgpu.count(graph, mine)`, `tcgpu.trace(graph, [mine, "naive"])`.
    After `tcgpu.register(mine)` its name is, too.

    Parameters
    ----------
    name
        Of the method; without one, that of the function.
    threads, blocks
        The defaults of these knobs. A kernel without them gets 128 threads and 64 blocks.
    arrays
        Arrays that the kernels use beside those of the graph: name -> size, or (size, type), or (size, type, fill).
        A size is a number of elements or a formula such as "blocks * n / 32" of n, m and knobs; the type is int64 and
        the fill 0 if they are left out. The fill is 0, -1, or None for an array with arbitrary values.
    shared
        Bytes of dynamic shared memory of a block, or a formula.
    signature
        The types of the kernel's parameters, such as "void(int64[::1], int32[::1], int64[::1])"; without one they are
        those of the arguments.
    order
        The vertex order to count in: "natural", "degree", "bfs", "random" or "auto".
    tasks
        ("columns", work) or ("nonzeros", work) if a thread takes one of these at a time, with `work` as
        `tcgpu.insight.sampling.WORK` lists it. Then no more blocks are launched than have tasks. A third name, one of
        `tcgpu.insight.sampling.LANES`, says what the threads of a task take in turns.
    prepare
        A function of a graph and an order that makes the graph to plan for; without one, it is a `tcgpu.Graph`.
    source, summary
        Where the method is from, and what it does in a line; without one, the first line of the docstring.
    **knobs
        Knobs with their defaults: whole numbers, numbers, True or False; or a `tcgpu.Knob`. A kernel's parameters of
        these names get the values.
    """
    if callable(name):
        return method()(name)
    if name is not None and (not isinstance(name, str) or not name.strip()):
        raise MethodError(f"the name of a method is a text, not {name!r}")
    known_order(order)
    if tasks is not None and not (isinstance(tasks, tuple) and len(tasks) > 1):
        raise MethodError(f'tasks is a tuple such as ("columns", "merge"), not {tasks!r}')
    knobs = {key: value for key, value in {"threads": threads, "blocks": blocks}.items() if value is not None} | knobs
    about = {"order": order, "source": source, "tasks": tasks}
    more = {"prepare": prepare, "arrays": arrays, "shared": shared, "signature": signature, "summary": summary}

    def decorate(function):
        own = name or getattr(function, "__name__", "")
        declaration = Declaration(own, function, arrays or {}, shared)
        make = declaration.planner if declaration.plans else declaration.launcher
        declared, planned = make(function, knobs, signature, tasks)
        return Method(
            name=own,
            summary=summary or (inspect.getdoc(function) or "").partition("\n")[0] or "a method of your own",
            declared=declared,
            planned=planned,
            prepared=prepare,
            shares=bool({"share", "workers"} & {*declaration.parameters}),
            function=function,
            arguments={"name": own, **about, **more, **knobs},
            **about,
        )

    return decorate


class Declaration:
    """What the author of a method declares: checked against the function, then made a plan of."""

    def __init__(self, name, function, arrays, shared):
        self.name, self.arrays, self.shared = name, arrays, shared
        if isinstance(function, runtime.Kernel):
            raise MethodError(f"{name} is decorated as a kernel already: `tcgpu.method` decorates the plain function")
        if not isinstance(function, FunctionType):
            raise MethodError(f"tcgpu.method decorates a function, not {function!r}")
        self.parameters = list(inspect.signature(function).parameters)
        for parameter in inspect.signature(function).parameters.values():
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
                raise MethodError(f"{name} takes {parameter}: each argument of a method has a name")
            if parameter.default is not parameter.empty:
                raise MethodError(f"{name} has a default, {parameter}: write it into @tcgpu.method(...) as a knob")
        self.plans = self.parameters[:1] == ["graph"]

    # ------------------------------------------------------------------------------------------------------ the knobs

    def declare(self, knobs):
        """The Knobs of these defaults; also prepares the formulas of sizes."""
        self.knobs = {key: self.knob(key, default) for key, default in knobs.items()}
        whole = {key for key, knob in self.knobs.items() if not knob.real and key not in SIZES}
        names = {*SIZES, "threads", "blocks"} & {*SIZES, *self.knobs} | whole
        self.sizes = {key: self.array(key, given, names) for key, given in self.arrays.items()}
        self.shared_bytes = Formula(self.shared, names, f"the shared memory of {self.name}")
        return tuple(self.knobs.values())

    def knob(self, name, default):
        if name in (*SIZES, *SHARE, *ARRAYS, *self.arrays, "graph", "share", "total"):
            raise MethodError(f"{self.name} has a knob {name!r}, which is the name of something else: choose another")
        if isinstance(default, Knob):
            knob = default
        elif name in USUAL_KNOBS:
            knob = replace(USUAL_KNOBS[name], default=default)
        elif isinstance(default, bool):
            knob = Knob(default, f"of {self.name}", choices=(False, True))
        elif isinstance(default, (int, np.integer)):
            low, high = min(0, int(default)), max(2**31 - 1, int(default))
            knob = Knob(int(default), f"of {self.name}", -(2**31) if low else 0, high)
        elif isinstance(default, (float, np.floating)):
            knob = Knob(float(default), f"of {self.name}", real=True)
        else:
            raise MethodError(
                f"the default of knob {name!r} is a number, True or False, not {default!r}; a tcgpu.Knob has choices"
            )
        knob = replace(knob, name=name)
        knob.check(knob.default)
        return knob

    def array(self, name, given, names):
        """(Formula of the size, type, fill) of an array that is declared."""
        what = f"the size of array {name!r}"
        if name in (*SIZES, *SHARE, *ARRAYS, "total"):
            raise MethodError(f"{self.name} declares an array {name!r}, which every graph has: choose another name")
        parts = given if isinstance(given, tuple) else (given,)
        size, dtype, fill = (*parts, *(None, np.int64, 0)[len(parts) :])[:3]
        if len(parts) > 3 or not (fill is None or type(fill) is int and fill in (0, -1)):
            raise MethodError(f"array {name!r} is a size, a type and a fill of 0, -1 or None, not {given!r}")
        try:
            dtype = np.dtype(dtype)
        except TypeError:
            raise MethodError(f"the type of array {name!r} is one such as tcgpu.uint32, not {dtype!r}") from None
        if dtype.kind not in "biuf":
            raise MethodError(f"the type of array {name!r} is one of numbers, such as tcgpu.uint32, not {dtype}")
        return Formula(size, names, what), dtype, fill

    def used(self, *names):
        """MethodError if a knob or an array is declared that nothing uses: probably a name is misspelt."""
        formulas = [self.shared_bytes, *(size for size, _, _ in self.sizes.values())]
        known = {*names, *self.parameters}
        for formula in formulas:
            known |= {node.id for node in ast.walk(formula.tree) if isinstance(node, ast.Name)}
        for what, declared in (("knob", self.knobs), ("array", self.sizes)):
            for name in declared:
                if name not in known:
                    hint = did_you_mean(name, self.parameters)
                    raise MethodError(f"{self.name} declares {what} {name!r} and has no parameter of that name{hint}")

    # ------------------------------------------------------------------------------------------------------- one kernel

    def launcher(self, function, knobs, signature, tasks):
        """The Knobs of a kernel, and the function that plans its launch."""
        declared = self.declare({"threads": THREADS, "blocks": BLOCKS} | knobs)
        known = {*SIZES, *SHARE, *ARRAYS, "total", *self.sizes, *self.knobs}
        for parameter in self.parameters:
            if parameter not in known:
                hint = did_you_mean(parameter, known)
                raise MethodError(
                    f"{self.name} has a parameter {parameter!r}{hint}, which is no array of a graph and no knob; "
                    f"arrays are {', '.join([*ARRAYS, 'total', *self.sizes])}; a knob needs a default, as in "
                    f"@tcgpu.method({parameter}=8), an array a size, as in arrays={{{parameter!r}: 'n'}}"
                )
        self.used("threads", "blocks")
        if "total" not in self.parameters:
            raise MethodError(f"{self.name} has no parameter 'total': a kernel adds what it counts to total[0]")
        for knob in declared:
            if knob.default is None or isinstance(knob.default, str):
                raise MethodError(f"knob {knob.name!r} of kernel {self.name} is a number, not {knob.default!r}")
        for node in returns_of(definition(function, self.name)):
            if not (node.value is None or getattr(node.value, "value", 0) is None):
                raise MethodError(
                    f"{self.name} returns {ast.unparse(node.value)!r}: a kernel returns nothing; add what it counts to "
                    "total[0]"
                )
        kernel = runtime.Kernel(function, (signature,) if signature else ())
        if signature:
            self.check_signature(signature)
        if tasks is not None:
            check_known("kind of tasks", tasks[0], TASKS, MethodError)
        return declared, partial(self.plan_kernel, kernel, tasks)

    def check_signature(self, signature):
        """MethodError unless a signature is one, and has the types of the arrays that the kernel gets."""
        try:
            found = parameters(signature)
        except (TypeError, ValueError) as error:
            raise MethodError(f"the signature of {self.name}: {error}") from None
        if len(found) != len(self.parameters):
            raise MethodError(
                f"the signature of {self.name} has {len(found)} types for {len(self.parameters)} parameters"
            )
        types = {name: dtype for name, (dtype, _) in ARRAYS.items()} | {"total": np.int64}
        types |= {name: dtype for name, (_, dtype, _) in self.sizes.items()}
        for name, given in zip(self.parameters, found, strict=True):
            if given != (np.dtype(types.get(name, given.dtype)), int(name in types)):
                known = runtime.array_type(types[name]) if name in types else "a number"
                raise MethodError(f"in the signature of {self.name}, the type of {name!r} is {known}")

    def plan_kernel(self, kernel, tasks, graph, share=(0, 1), **values):
        values |= zip(SHARE, check_share(share), strict=True)
        most = values["blocks"]
        if tasks is not None:
            values["blocks"] = enough_blocks(most, getattr(graph, TASKS[tasks[0]]), values["threads"])
        values |= {"n": graph.n, "m": graph.m}
        args = tuple(values.get(name, name) for name in self.parameters)
        step = Step(kernel, values["blocks"], values["threads"], args, self.shared_bytes(values), most)
        return self.plan([step], graph, values)

    # ------------------------------------------------------------------------------------------------- several launches

    def planner(self, function, knobs, signature, tasks):
        """The Knobs of a function that plans launches, and that function as Method.plan calls it."""
        if signature is not None:
            raise MethodError(f"{self.name} plans launches: signatures are those of its kernels, tcgpu.kernel(...)")
        declared = self.declare(knobs)
        for parameter in self.parameters[1:]:
            if parameter != "share" and parameter not in self.knobs:
                hint = did_you_mean(parameter, self.knobs)
                raise MethodError(
                    f"{self.name} has a parameter {parameter!r}{hint}, which is no knob: give it a default, as in "
                    f"@tcgpu.method({parameter}=8)"
                )
        self.used(*self.sizes)
        return declared, partial(self.plan_function, function)

    def plan_function(self, function, graph, share=(0, 1), **values):
        """The Plan that the function returns, or that of the launches that it returns."""
        named = {name: (values | {"share": check_share(share)})[name] for name in self.parameters[1:]}
        made = function(graph, **named)
        if isinstance(made, Plan):
            return made
        steps = list(made) if isinstance(made, (list, tuple)) else [made]
        if not steps or not all(isinstance(step, (Step, Scan)) for step in steps):
            raise MethodError(f"{self.name} returns a list of tcgpu.launch(...), or a tcgpu.Plan, not {made!r}")
        return self.plan(steps, graph, values | {"n": graph.n, "m": graph.m})

    # ---------------------------------------------------------------------------------------------------------- both

    def plan(self, steps, graph, values):
        """The Plan of these steps.

        Each name among their arguments is an array of the graph, or one declared; a NumPy array is copied.
        """
        copied, created = {}, {}

        def held(arg):
            """The argument of a step: an array by its name."""
            if isinstance(arg, np.ndarray):
                arg, array = f"array {len(copied)}", arg
                copied[arg] = array
            elif arg in ARRAYS:
                copied[arg] = ARRAYS[arg][1](graph)
            elif arg in self.sizes:
                size, dtype, fill = self.sizes[arg]
                created[arg] = (size(values), dtype, fill)
            elif isinstance(arg, str) and arg in values:
                value = f"graph.{arg}" if arg in ("n", "m") else arg
                raise MethodError(
                    f"{self.name} launches a kernel with a parameter {arg!r} without its value: "
                    f"tcgpu.launch(..., {arg}={value})"
                )
            elif isinstance(arg, str) and arg != "total":
                known = [*ARRAYS, "total", *self.sizes]
                raise MethodError(
                    f"{self.name} launches a kernel on an array {arg!r}{did_you_mean(arg, known)}, which no graph has "
                    f"and arrays= does not declare; arrays are {', '.join(known)}"
                )
            return arg

        steps = [
            Scan(*map(held, (step.counts, *step.written)))
            if isinstance(step, Scan)
            else replace(step, args=tuple(map(held, step.args)))
            for step in steps
        ]
        work = simulated.work(graph, row_us=ROW_US)
        refills = {name: fill for name, (_, _, fill) in created.items() if fill is not None} | {"total": 0}
        return Plan(method=self.name, copied=copied, created=created, steps=steps, work=work, refills=refills)


def returns_of(tree):
    """The `return` statements in a tree, without those of functions inside it."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Return):
            yield node
        elif not isinstance(node, ast.FunctionDef):
            yield from returns_of(node)


def definition(function, name):
    """The syntax tree of a kernel; MethodError if it has no source, or is none."""
    try:
        return source_tree(function).body[0]
    except (KernelError, TypeError, SyntaxError):
        raise MethodError(NO_SOURCE.format(name)) from None
