"""The explorer: a panel to pick a graph and methods, run them, and see times, counts and traces. Begin with `panel`."""

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from tcgpu.engines.choice import Engine
from tcgpu.errors import MethodError
from tcgpu.graph import Order
from tcgpu.lab.explorer.panel import Explorer
from tcgpu.registry import BUILT_IN, METHODS, Method, as_list, named, register
from tcgpu.suggest import check_known

__all__ = ["Explorer", "explore"]


def explore(
    graph: Any = "mesh_16x16",
    methods: Sequence[str | Method] | None = None,
    *,
    kernel: str | None = None,
    order: Order | None = None,
    engine: Engine | None = None,
    page: Literal["Sweep", "Compare", "Trace"] | None = None,
    settings: Mapping[str, Any] | None = None,
) -> Explorer:
    """Open an explorer: a widget that is shown as the last line of a cell.

    Parameters
    ----------
    graph : str, path or graph
        The graph that is picked at first: a name that `tcgpu.load` takes, a path, or anything that `tcgpu.count` takes.
    methods : sequence of str or Method, optional
        The methods that are picked at first. A Method of your own is registered: see `tcgpu.register`.
    kernel : str, optional
        A method for a small explorer of its own: pick a graph, run this method, see its place on the curve.
    order, engine : str, optional
        The order and the engine that are picked at first; without them, the defaults of each method and machine.
    page : {"Sweep", "Compare", "Trace"}, optional
        The page that is shown at first: by default "Sweep", and "Compare" if `methods` are given.
    settings : dict, optional
        The values of other controls, as the line has them that "share" shows: `{"naive.threads": 64}`.
    """
    if kernel:
        check_known("method", kernel, [name for name, each in METHODS.items() if "sim" in each.engines], MethodError)
        methods, page = dict.fromkeys(("naive", "column_block", kernel)), "Kernel"
    page = page or ("Sweep" if methods is None else "Compare")
    methods = ("naive", "column_block", "cpu") if methods is None else as_list(methods)
    for method in methods:
        if isinstance(method, Method) and named(method).name not in BUILT_IN:
            register(method)
    methods = [getattr(method, "name", method) for method in methods]
    return Explorer(graph, methods, order=order, engine=engine, page=page, settings=settings or {}, kernel=kernel)
