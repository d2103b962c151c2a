"""The errors that tcgpu raises: all of them are a `TcgpuError`."""

import functools
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor
from contextlib import contextmanager
from typing import TypeVar

Function = TypeVar("Function", bound=Callable)
# what NumPy and Python say in place of a MemoryError where pointers have 32 bits, as in a browser
TOO_BIG = "array is too big", "Maximum allowed", "index-sized integer", "too large to convert to C"
SMALLER = (
    "in a browser Python has at most 4 GB; take a smaller graph, or install tcgpu, which then has the machine's memory"
    if sys.platform == "emscripten"
    else "take a smaller graph, or have tcgpu.count read a folder that tcgpu.write made, piece by piece: "
    "device_memory='1GB'"
)
running = ""  # the name of the function that the caller called, for the line that says what is compiled
LAB = "anywidget", "ipywidgets", "matplotlib", "scipy", "traitlets"  # what the extra `lab` brings
FILES = "pyarrow", "zstandard"  # and the extra `files`


class TcgpuError(Exception):
    """Something that tcgpu was given, or that it runs on, does not work; the message names it, and the way out."""


class GraphError(TcgpuError, ValueError):
    """Something is not a graph, or not one that can be used here; the message names what and where."""


class TooLarge(GraphError, MemoryError):
    """Something takes more memory than there is; the message names it, and what helps."""


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


def roomy(function: Function, name: str = "") -> Function:
    """Have a function raise TooLarge where memory is short. What it allocated is free again: no traceback holds it."""

    @functools.wraps(function)
    def called(*args, **options):
        global running
        before, running = running, running or name or function.__name__
        try:
            return function(*args, **options)
        except (MemoryError, ValueError, OverflowError) as error:
            said = str(error) or "MemoryError"
            short = isinstance(error, MemoryError) or any(map(said.count, TOO_BIG))
            if isinstance(error, TcgpuError) or not short:
                raise
        finally:
            running = before
        raise TooLarge(f"{name or function.__qualname__} takes more memory than there is ({said}): {SMALLER}")

    return called  # type: ignore[return-value]


@contextmanager
def needing(what: str) -> Iterator[None]:
    """Raise MissingPackage, with the way to install it, if the `with` imports a package of an extra that is not there.

    what: begins the sentence: what needs the package.
    """
    try:
        yield
    except ImportError as error:
        package = (error.name or "").partition(".")[0]
        if package not in LAB + FILES:
            raise
        extra = "files" if package in FILES else "lab"
        raise MissingPackage(f"{what} needs {package}, which is not installed: pip install 'tcgpu[{extra}]'") from None
