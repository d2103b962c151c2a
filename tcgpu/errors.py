"""The errors that tcgpu raises: all of them are a `TcgpuError`."""

from collections.abc import Iterator
from concurrent.futures import BrokenExecutor
from contextlib import contextmanager

LAB = "anywidget", "ipywidgets", "matplotlib", "scipy", "traitlets"  # what the extra `lab` brings


class TcgpuError(Exception):
    """Something that tcgpu was given, or that it runs on, does not work; the message names it, and the way out."""


class GraphError(TcgpuError, ValueError):
    """Something is not a graph, or not one that can be used here; the message names what and where."""


class FormatError(GraphError):
    """A file does not have the format that it should have; the message names the file and the line or field."""


class MethodError(TcgpuError, ValueError):
    """No such method, order or knob, or one that cannot do this."""


class EngineError(TcgpuError, ValueError):
    """No such engine, or one that this machine or this method does not have."""


class KernelError(TcgpuError):
    """A kernel does something that it must not do; the message names the kernel, the line and the thread."""


class WorkerLost(TcgpuError, BrokenExecutor):
    """A worker died and its executor does not go on. What was counted is right, but it is not all."""


class MissingPackage(TcgpuError, ImportError):
    """A package that this needs is not installed; the message names it."""


@contextmanager
def needing(what: str) -> Iterator[None]:
    """Raise MissingPackage, with the way to install it, if the `with` imports a package of LAB that is not there.

    what: begins the sentence: what needs the package.
    """
    try:
        yield
    except ImportError as error:
        package = (error.name or "").partition(".")[0]
        if package not in LAB:
            raise
        raise MissingPackage(f"{what} needs {package}, which is not installed: pip install 'tcgpu[lab]'") from None
