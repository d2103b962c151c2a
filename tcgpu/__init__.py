"""tcgpu: counting the triangles of a graph, on a GPU, in its simulator, or on all cores of a CPU.

    >>> import tcgpu
    >>> tcgpu.count(tcgpu.generate.clique(5))
    10

Importing the package imports nothing heavy: each name is imported when it is first used.
"""

import importlib
import importlib.machinery
import sys
import warnings
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tcgpu import datasets, distributed, plots
    from tcgpu import generators as generate
    from tcgpu.api import count, is_triangle_free, list_triangles, support, triangles
    from tcgpu.coefficients import average_clustering, clustering, similarity, transitivity, triad_census
    from tcgpu.datasets import load
    from tcgpu.declarations import Knob, Method
    from tcgpu.engines.kernel_language import cuda, int32, int64, uint32, uint64
    from tcgpu.engines.runtime import kernel
    from tcgpu.errors import EngineError, FormatError, GraphError, KernelError, MethodError, TcgpuError, WorkerLost
    from tcgpu.formats import read, write
    from tcgpu.graph import Graph
    from tcgpu.growth import add_edges
    from tcgpu.hardware import devices
    from tcgpu.insight import trace
    from tcgpu.insight.checking import check
    from tcgpu.insight.estimates import estimate
    from tcgpu.insight.result import load_trace
    from tcgpu.insight.simulation import simulate
    from tcgpu.kernels import Plan, launch
    from tcgpu.kernels.device_graph import DeviceGraph
    from tcgpu.kernels.method import method
    from tcgpu.lab.explorer import explore
    from tcgpu.lab.stepper import step
    from tcgpu.measurement import measure
    from tcgpu.registry import methods, register, unregister
    from tcgpu.subgraphs import reduce_triangles
    from tcgpu.subgraphs.four_vertices import motifs
    from tcgpu.subgraphs.of_k_vertices import cliques, count_subgraphs
    from tcgpu.truss import k_truss, truss_numbers

__version__ = "0.3.0.dev0"

if sys.platform == "emscripten":  # in a browser each session is the first, of which Matplotlib would say so in a cell
    importlib.import_module("logging").getLogger("matplotlib.font_manager").setLevel("ERROR")

# module -> its public names
_NAMES = {
    "api": "count is_triangle_free list_triangles support triangles",
    "coefficients": "average_clustering clustering similarity transitivity triad_census",
    "datasets": "load",
    "declarations": "Knob Method",
    "engines.kernel_language": "cuda int32 int64 uint32 uint64",
    "engines.runtime": "kernel",
    "errors": "EngineError FormatError GraphError KernelError MethodError TcgpuError WorkerLost",
    "formats": "read write",
    "graph": "Graph",
    "growth": "add_edges",
    "hardware": "devices",
    "insight": "trace",
    "insight.checking": "check",
    "insight.estimates": "estimate",
    "insight.simulation": "simulate",
    "insight.result": "load_trace",
    "kernels": "Plan launch",
    "kernels.device_graph": "DeviceGraph",
    "kernels.method": "method",
    "lab.explorer": "explore",
    "lab.stepper": "step",
    "measurement": "measure",
    "registry": "methods register unregister",
    "subgraphs": "reduce_triangles",
    "subgraphs.four_vertices": "motifs",
    "subgraphs.of_k_vertices": "cliques count_subgraphs",
    "truss": "k_truss truss_numbers",
}
_MODULE_OF = {name: module for module, names in _NAMES.items() for name in names.split()}
# public name -> the module that it is
_MODULES = {"generate": "generators", "datasets": "datasets", "plots": "plots", "distributed": "distributed"}
# public name of 0.1 -> its name now
_RENAMED = {"parts": "distributed"}
# module of 0.2 that documentation named -> where it is now, with what is inside it
_MOVED = {
    "checking": "insight.checking",
    "engines.faults": "insight.faults",
    "formats.files": "files",
    "four_vertices": "subgraphs.four_vertices",
    "lab.plots": "plots",
    "simulation": "insight.simulation",
    "tracing": "insight",
}

__all__ = [
    "DeviceGraph", "EngineError", "FormatError", "Graph", "GraphError", "KernelError", "Knob", "Method",
    "MethodError", "Plan", "TcgpuError", "WorkerLost", "add_edges", "average_clustering", "check", "cliques",
    "clustering", "count", "count_subgraphs", "cuda", "datasets", "devices", "distributed", "estimate", "explore",
    "generate", "int32", "int64", "is_triangle_free", "k_truss", "kernel", "launch", "list_triangles", "load",
    "load_trace", "measure", "method", "methods", "motifs", "plots", "read", "reduce_triangles", "register",
    "similarity", "simulate", "step", "support", "trace", "transitivity", "triad_census", "triangles",
    "truss_numbers", "uint32", "uint64", "unregister", "write",
]  # fmt: skip


def _imported(name):
    if name in _RENAMED:
        warnings.warn(f"tcgpu.{name} is tcgpu.{_RENAMED[name]} now", DeprecationWarning, stacklevel=2)
        return _imported(_RENAMED[name])
    if name not in _MODULE_OF and name not in _MODULES:
        raise AttributeError(f"module 'tcgpu' has no attribute {name!r}")
    from tcgpu.errors import needing
    from tcgpu.progress import uninterrupted

    with uninterrupted(), needing(f"tcgpu.{name}"):  # a library that is imported by half may never be imported again
        value = importlib.import_module(f"tcgpu.{_MODULE_OF.get(name) or _MODULES[name]}")
    if name in _MODULE_OF:
        value = getattr(value, name)
    globals()[name] = value
    return value


if not TYPE_CHECKING:  # for which a name that there is not would be anything
    __getattr__ = _imported


def __dir__():
    return sorted(__all__)


class _Moved:
    """Imports a module of `_MOVED`, asked for when there is none of that name."""

    def find_spec(self, name, *_):
        for old, new in _MOVED.items():
            if f"{name}.".startswith(f"tcgpu.{old}."):
                found = name.replace(old, new, 1)
                warnings.warn(f"{name} is {found} now", DeprecationWarning, stacklevel=2)
                return importlib.machinery.ModuleSpec(name, self, origin=found)
        return None

    def create_module(self, spec):
        return None

    def exec_module(self, module):
        sys.modules[module.__name__] = importlib.import_module(module.__spec__.origin)


sys.meta_path.insert(0, _Moved())  # the folder of a module that moved would find what is inside it by its old name
