"""tcgpu: counting the triangles of a graph, on a GPU, in its simulator, or on all cores of a CPU.

    >>> import tcgpu
    >>> tcgpu.count(tcgpu.generate.clique(5))
    10

Importing the package imports nothing heavy: each name below is fetched from its room when it is first used.
"""

import importlib

__version__ = "0.1.0"

# verb -> the room that owns it
_ROOM_OF = {
    "Graph": "graph",
    "TcgpuError": "errors",
    "GraphError": "errors",
    "FormatError": "errors",
    "MethodError": "errors",
    "EngineError": "errors",
    "WorkerLost": "errors",
    "DeviceGraph": "kernels.device_graph",
    "read": "formats",
    "write": "formats",
    "load": "datasets",
    "Method": "registry",
    "measure": "measurement",
    "methods": "registry",
    "count": "api",
    "triangles": "api",
    "support": "api",
    "list_triangles": "api",
    "clustering": "api",
    "average_clustering": "api",
    "transitivity": "api",
    "is_triangle_free": "api",
    "count_subgraphs": "subgraphs",
    "trace": "tracing",
    "explore": "lab.explorer",
    "step": "lab.stepper",
    "k_truss": "api",
    "truss_numbers": "api",
}
# whole rooms that are used by name
_ROOMS = {"generate": "generators", "datasets": "datasets", "plots": "lab.plots", "distributed": "distributed"}

__all__ = [*_ROOM_OF, *_ROOMS]


def __getattr__(name):
    if name in _ROOM_OF:
        value = getattr(importlib.import_module(f"tcgpu.{_ROOM_OF[name]}"), name)
    elif name in _ROOMS:
        value = importlib.import_module(f"tcgpu.{_ROOMS[name]}")
    else:
        raise AttributeError(f"module 'tcgpu' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__():
    return sorted({*globals(), *__all__})
