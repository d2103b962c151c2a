"""Compile kernels to machine code: numba-cuda makes LTO-IR, CUDA's linker makes a cubin, and a folder caches it.

Only this module and `integer_operations` import `numba.cuda`, to compile a kernel: a process whose kernels are all in
the folder never imports it.

The key of a cubin is a digest of the bytecode of the kernel and of every device function it calls, the constants they
use, the signature, the compute capability, and the versions of the compilers. Several processes may write the same file
at once (see `cache_folder`); a damaged file is compiled again and replaced.
"""

import atexit
import hashlib
import importlib
import importlib.metadata
import importlib.util
import logging
import os
import platform
import re
import select
import signal
import subprocess
import sys
import time
import traceback
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import FunctionType, SimpleNamespace
from typing import NamedTuple
from unittest.mock import patch

import numpy as np

from tcgpu.engines import kernel_language
from tcgpu.engines.cache_folder import cache_folder, read, say_compiling, writable, write
from tcgpu.engines.forking import fork_safe_lock
from tcgpu.engines.meaning import all_names, meaning

log = logging.getLogger("tcgpu")

COMPILERS = ("numba-cuda", "numba", "llvmlite", "cuda-bindings", "nvidia-nvvm", "nvidia-nvjitlink", "numpy")


class Image(NamedTuple):
    """A compiled kernel: the name of its entry, and its machine code."""

    entry: str
    cubin: bytes


class CompilerError(RuntimeError):
    """numba-cuda or CUDA's linker behaved in a way that this package does not support."""


# ---------------------------------------------------------------------------------------------------- compiled and kept


def image(function, signature, capability, most_threads=None):
    """The Image of a kernel for one signature and compute capability, read from the folder or compiled."""
    path = path_of(function, signature, capability, most_threads)
    found = _read(path)
    if found is None:
        say_compiling()
        with _lock:
            compile_others(path, signature, capability)
    if found is None and path in _under_way:  # in another process
        process = _under_way[path]
        while not path.exists() and process.poll() is None:
            time.sleep(0.003)
        found = _read(path)
    if found is None:
        found = compiled(function, signature, capability, most_threads)
        _write(path, found)
    return found


def path_of(function, signature, capability, most_threads=None):
    """The file of a compiled kernel."""
    return folder() / f"{digest(function, signature, capability, most_threads)}.cubin"


def folder():
    return cache_folder() / "kernels"


def digest(function, signature, capability, most_threads=None):
    """The key of a compiled kernel: 40 hexadecimal digits."""
    parts = [signature, capability, most_threads, platform.python_version(), versions(), _rewriting()]
    parts.append(meaning(function))
    return hashlib.sha256(repr(parts).encode()).hexdigest()[:40]


@cache
def _rewriting():
    """A digest of the two modules that rewrite integer operations."""
    folder = Path(__file__).parent
    sources = [(folder / name).read_bytes() for name in ("integers.py", "integer_operations.py")]
    return hashlib.sha256(b"".join(sources)).hexdigest()


@cache
def versions():
    """The version of each package used for compiling; "" for one that is not installed."""
    return tuple(f"{name} {version(name)}" for name in COMPILERS)


def version(package):
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _read(path):
    """The Image in a file; None if there is none, or if it is damaged."""
    content = read(path)
    if content is None:
        return None
    entry, _, cubin = content.partition(b"\n")
    return Image(entry.decode(), cubin)


def _write(path, image):
    """Write an Image to the folder; if that fails, log it once in a process."""
    try:
        write(path, f"{image.entry}\n".encode() + image.cubin)
    except OSError as error:
        _say_once(f"compiled kernels are not kept, and each process compiles them anew: {path.parent}: {error}")


@cache
def _say_once(text):
    log.warning(text)


# ------------------------------------------------------------------------------------------------- in other processes

LEAST_CORES, MOST_PROCESSES = 6, 12  # on fewer cores, by our reckoning, processes would save nothing
LEAST_KERNELS = 4  # for which processes are started
RECORD, IDLE = 256, 5  # bytes that name a kernel, as processes read them; seconds for which they wait for another one
PROGRAM = "import sys; from tcgpu.engines import kernel_compiler; kernel_compiler.serve(int(sys.argv[1]))"

_servers = []  # processes that run PROGRAM; the last one takes names
_under_way = {}  # the file of a kernel -> the server that compiles it
_seen = set()  # what `compile_others` has found before: names like module:kernel:number of the signature


def compile_others(path, signature, capability):
    """Have other processes compile all kernels of the modules that are loaded, unless few are missing: a verb is about
    to need many of them. `image` waits for one that is being compiled.

    path, signature: of the kernel that is missing, which they compile first, and by whose types those of the ends of
    raw edges are known.
    """
    if _processes() < 2 or not writable(folder()):
        return
    missing = {}
    for name, kernel in _loaded_kernels():
        for number in _needed(kernel.signatures, signature):
            if (each := f"{name}:{number}") not in _seen:
                _seen.add(each)
                file = path_of(kernel.py_func, kernel.signatures[number], capability, kernel.most_threads)
                if not file.exists():
                    missing[file] = each
    if len(missing) < LEAST_KERNELS:
        return
    if not _servers or _servers[-1].poll() is not None:
        _start_server()
    first = sorted(missing, key=lambda file: file != path)
    records = ("{}.{}:{}".format(*capability, missing[file]).ljust(RECORD).encode() for file in first)
    with suppress(BrokenPipeError):  # it ended: `image` sees that
        _servers[-1].stdin.write(b"".join(records))
    _under_way.update(dict.fromkeys(missing, _servers[-1]))


def prepare():
    """Start a server in advance, if no kernel at all is in the folder: it imports the compiler while this process
    imports CuPy."""
    if _processes() > 1 and writable(folder()) and not any(folder().iterdir()):
        _start_server()


def _processes():
    """How many processes compile."""
    cores = os.cpu_count()
    return min(MOST_PROCESSES, cores * 3 // 4) if cores >= LEAST_CORES and hasattr(os, "fork") else 0


def _start_server():
    path = os.pathsep.join(path or os.curdir for path in sys.path)
    how = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "env": os.environ | {"PYTHONPATH": path}}
    command = [sys.executable, "-c", PROGRAM, str(_processes())]
    _servers.append(subprocess.Popen(command, bufsize=0, stdin=subprocess.PIPE, start_new_session=True, **how))


def serve(processes):
    """Compile kernels to the folder. This process imports the compiler and compiles one, which takes seconds; then it
    forks others, so that these do not have to. Each takes the next record from standard input, until none comes."""
    os.set_blocking(0, False)
    numba_cuda()
    going = _compile_next()
    children = []
    while going and len(children) < processes - 1:
        children.append(os.fork())
        if children[-1] == 0:
            children = []
            break
    while going:
        going = _compile_next()
    for child in children:
        os.waitpid(child, 0)


def _compile_next():
    """Compile the kernel that the next record names, by a compute capability like 9.0, a module, a name and the number
    of a signature. False if none comes."""
    if not select.select([0], [], [], IDLE)[0]:
        return False
    try:
        record = os.read(0, RECORD)
    except BlockingIOError:  # another process has read it
        return True
    if record:
        capability, module, kernel, number = record.decode().strip().split(":")
        kernel = getattr(importlib.import_module(module), kernel)
        what = kernel.py_func, kernel.signatures[int(number)], tuple(map(int, capability.split(".")))
        path = path_of(*what, kernel.most_threads)
        if _read(path) is None:
            _write(path, compiled(*what, kernel.most_threads))
    return bool(record)


def _loaded_kernels():
    """(name like module:kernel, Kernel) of all kernels in this package's modules, in the order of their imports."""
    from tcgpu.engines.runtime import Kernel  # it imports this module, for engine "gpu"

    for module, there in list(sys.modules.items()):
        if module.startswith("tcgpu."):
            for name, value in list(vars(there).items()):
                if isinstance(value, Kernel) and value.__module__ == module:
                    yield f"{module}:{name}", value


def _needed(signatures, like):
    """The numbers of a kernel's signatures that are needed if the one `like` is: all, or that of the same type of raw
    edges, if there is one for each of the four."""
    first = [each.removeprefix("void(").split(", ")[:2] for each in (like, *signatures)]
    if len(signatures) != 4 or any(u != v for u, v in first[1:]):
        return range(len(signatures))
    return [first.index(first[0], 1) - 1 if first[0] in first[1:] else 0]


@atexit.register
def _stop_servers():
    for server in _servers:
        if server.poll() is None:
            os.killpg(server.pid, signal.SIGKILL)


# ----------------------------------------------------------------------------------------------------------- numba-cuda

_lock = fork_safe_lock()


def compiled(function, signature, capability, most_threads=None):
    """Compile a kernel for one signature; returns its Image."""
    code = to_ltoir(function, signature, capability, most_threads)
    ptx = to_ptx(code, capability)
    entry, widths = re.search(r"\.entry\s+(\S+?)\s*\((.*?)\)", ptx, re.DOTALL).groups()
    found = [int(bits) for bits in re.findall(r"\.param\s+\.[a-z](\d+)", widths)]
    expected = [bits for parameter in kernel_language.parameters(signature) for bits in parameter.bits]
    if found != expected:
        raise CompilerError(
            f"numba-cuda {version('numba-cuda')} compiles {function.__name__} for arguments of {found} bits, and tcgpu "
            f"packs {expected}: install a version of numba-cuda that tcgpu's extras allow"
        )
    return Image(entry, _linked(code, capability, "linked_cubin"))


def to_ltoir(function, signature, capability, most_threads=None):
    """A kernel as code that the linker optimizes (LTO-IR). This neither needs nor queries a GPU."""
    cuda = numba_cuda()
    dispatcher = importlib.import_module("numba.cuda.dispatcher")
    with _lock, patch.object(dispatcher, "get_current_device", lambda: SimpleNamespace(compute_capability=capability)):
        try:
            code, _ = cuda.compile(
                for_numba(function), signature, device=False, abi="numba", cc=capability, output="ltoir",
                launch_bounds=most_threads,
            )  # fmt: skip
        except Exception as error:
            error.add_note(f"in {_place(error) or function}")
            raise
    return code


def _place(error):
    """The line of a kernel or device function that a Numba error is about; Numba rarely names it."""
    places = [frame.f_locals.get("loc") for frame, _ in traceback.walk_tb(error.__traceback__)]
    places = [place for place in places if hasattr(place, "filename") and hasattr(place, "line")]
    return f'File "{places[-1].filename}", line {places[-1].line}' if places else None


def to_ptx(code, capability):
    """The PTX of LTO-IR, for reading and tests: machine code made from it is up to 5 % slower than its own."""
    return _linked(code, capability, "linked_ptx", "-ptx").decode().rstrip("\0")


def resources(code, capability):
    """The linker's report of the registers and the memory that a kernel uses."""
    return _linked(code, capability, "info_log", "-verbose", "-no-cache").decode()  # what is cached is not reported


class Compiled(NamedTuple):
    """What a kernel became of a compute capability, which it says without a GPU."""

    registers: int  # of a thread
    spilled: int  # bytes that a thread writes to memory because its registers do not suffice
    local: bool  # whether variables are kept in local memory
    floats: tuple[str, ...]  # the types of floating point that it computes with: "f32", "f64"
    barriers: int  # of a block, in the code
    ptx: str


def facts(function, signature, capability, most_threads=None):
    """Compile a kernel for a compute capability, and return what became of it, as a Compiled."""
    code = to_ltoir(function, signature, capability, most_threads)
    ptx, said = to_ptx(code, capability), resources(code, capability)
    return Compiled(
        registers=int(re.search(r"Used (\d+) registers", said)[1]),
        spilled=max(map(int, re.findall(r"(\d+) bytes (?:spill|stack frame)", said))),
        local=".local" in ptx,
        floats=tuple(sorted(set(re.findall(r"\.(f64|f32)\b", ptx)))),
        barriers=len(re.findall(r"\b(?:bar|barrier)\.(?:sync|red|cta)", ptx)),
        ptx=ptx,
    )


def why_missing():
    """Why kernels can't be compiled here; None if they can."""
    try:
        found = importlib.util.find_spec("cuda.bindings.nvvm") and importlib.util.find_spec("numba.cuda")
    except ModuleNotFoundError:
        found = None
    return None if found else "no CUDA compiler here: pip install 'tcgpu[test]'"


def _linked(code, capability, result, *options):
    """The result of CUDA's linker for some LTO-IR; result: its name in nvJitLink."""
    from cuda.bindings import nvjitlink

    options = ["-lto", "-arch=sm_{}{}".format(*capability), *options]
    handle = nvjitlink.create(len(options), options)
    try:
        nvjitlink.add_data(handle, nvjitlink.InputType.LTOIR, code, len(code), "kernel")
        nvjitlink.complete(handle)
        data = bytearray(getattr(nvjitlink, f"get_{result}_size")(handle))
        getattr(nvjitlink, f"get_{result}")(handle, data)
    finally:
        nvjitlink.destroy(handle)
    return bytes(data)


@cache
def numba_cuda():
    """The module `numba.cuda`.

    NumPy 2.5 has removed a name that numba-cuda 0.30 uses in a module that it imports at its first compilation. The
    name is there while that module is imported, and gone afterwards.
    """
    with patch.object(np, "row_stack", np.vstack, create=True):
        from numba import cuda

        importlib.import_module("numba.cuda.np.arrayobj")
    return cuda


@cache
def for_numba(function):
    """The function for numba-cuda: with Numba's objects for those of `kernel_language`, and integers as in NumPy."""
    numba_cuda()
    operations = importlib.import_module("tcgpu.engines.integer_operations")
    tree, rewriting = kernel_language.source_tree(function), operations.CompiledIntegers(function)
    code = kernel_language.compiled_tree(rewriting.visit(tree), function)
    used = {*all_names(code), "__builtins__", "__name__", "__file__"}
    names = {name: _numbas(value) for name, value in kernel_language.names_of(function).items() if name in used}
    names |= {name: operations.helper(*what) for name, what in rewriting.helpers.items()} | {"__uint32": np.uint32}
    return FunctionType(code, names, function.__name__, function.__defaults__)


@cache
def _numba_device_function(function):
    return numba_cuda().jit(device=True)(for_numba(function))


def _numbas(value):
    if isinstance(value, kernel_language.CallersFunction):
        kernel_language.refuse_recursion(value.function)
        return numba_cuda().jit(device=True)(value.function)
    if isinstance(value, kernel_language.DeviceFunction):
        return _numba_device_function(value.py_func)
    return numba_cuda() if kernel_language.is_cuda(value) else value
