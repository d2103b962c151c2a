"""Kernels compiled for this machine's own processor: what a GPU would run, on graphs of a million edges, without one.

numba-cuda makes LLVM code of a kernel before CUDA's compiler has a part in it. Here that code is compiled for the
processor instead, each thread of a GPU's is a fiber (`fibers.c`), and `Processor.launch` takes the place of
`Kernel.launch`: on engine "sim" plans then run a thousand times as fast as in the simulator, on the same NumPy arrays.

What goes wrong raises a `KernelFault`: an index outside its array, shared arrays included; threads that wait for others
in vain, so also lanes of a warp that wait at different collectives. Shared memory is full of rubbish when a block
begins, and what `shfl` brings from a lane that is not there is rubbish, too. With a seed, blocks, warps and lanes take
turns at random, which shows where a barrier or a syncwarp is missing.

What it cannot see: races between blocks, which run one after the other, and between threads that touch the same place
with no meeting in between, for a thread runs until it waits. Memory that a GPU orders by a syncwarp only: here it is in
order after a shuffle or a vote, too. A barrier that waits for all lanes of a warp at one place in the code. Times,
registers, the amount of memory. It cannot run a thread that spins until another one has written something; one that
never ends is ended by pytest's own limit. A kernel that calls what `fibers.c` has not does not load.

Compiled code is kept in a folder, which all processes share, under a name that changes with the kernel. A constant that
a test changes is not changed in there: such a test needs the simulator.
"""

import contextlib
import ctypes
import fcntl
import hashlib
import importlib
import importlib.util
import json
import multiprocessing
import os
import shutil
import subprocess
import threading
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import SimpleNamespace

import numpy as np

FIBERS = Path(__file__).with_name("fibers.c")
# a compiler whose own checks do not take a jump from stack to stack for an error
COMPILER = ("cc", "-O2", "-shared", "-fPIC", "-U_FORTIFY_SOURCE")
CAPABILITY = 9, 0  # the GPU that numba-cuda compiles for
ENTRY = "entry"
DYNAMIC, MOST_DYNAMIC = "dynamic_shared", 227 << 10  # bytes, as on a large GPU

# What a large GPU has, but for few multiprocessors: more blocks take longer here, and find nothing more.
LARGE = {"sms": 2, "threads_per_sm": 2048, "shared_per_block": MOST_DYNAMIC, "shared_per_sm": 228 << 10}


class KernelFault(RuntimeError):
    """A kernel did something that is undefined or not allowed on a GPU."""


def missing():
    """The reason why this machine cannot compile kernels for its processor; None if it can."""
    if not shutil.which(COMPILER[0]):
        return "no C compiler here: the package gcc brings one"
    if importlib.util.find_spec("numba_cuda") is None:
        return "no numba-cuda here: pip install 'tcgpu[test]'"
    return None


class Area(ctypes.Structure):
    """A piece of shared memory."""

    _fields_ = [("begin", ctypes.c_void_p), ("size", ctypes.c_size_t)]


class Processor:
    """Launches kernels compiled for this machine's processor; `folder` keeps the compiled code."""

    def __init__(self, folder):
        self.folder, self.seed = Path(folder), 0
        self._lock, self._loaded = threading.Lock(), {}
        path = self.folder / f"fibers.{_own_digest()}.so"
        with _made_once(path) as missing:
            if missing:
                _link(FIBERS, path)
        self._fibers = ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)
        self._fibers.launch.restype = ctypes.c_char_p
        # what is compiled for a processor must not get among what this process compiles for GPUs
        self._builder = ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), _without_simulator)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._builder.shutdown()

    @contextlib.contextmanager
    def instead_of_the_simulator(self, seed=0, **facts):
        """Engine "sim" inside the `with`, run by this processor; `facts` describe the device."""
        from pytest import MonkeyPatch

        from tcgpu.engines import runtime

        with MonkeyPatch.context() as patch, runtime.using("sim"):
            device = replace(runtime.facts(), **facts)
            patch.setattr(runtime.current(), "facts", lambda: device)
            patch.setattr(runtime.Kernel, "launch", lambda kernel, *args, **how: self.launch(kernel, *args, **how))
            patch.setattr("tcgpu.kernels.simulated.check", lambda *args: None)
            patch.setattr(self, "seed", seed)
            yield self

    def launch(self, kernel, blocks, threads, *args, shared=0, stream=None):
        """Replaces `Kernel.launch`."""
        types = signature_for(kernel, args)
        words = _words(args, types)
        with self._lock:
            entry, areas, dynamic = self._load(kernel, types)
            if dynamic is not None:
                areas[dynamic].size = shared
            if self.seed:
                self.seed += 1
            seed = self.seed * 0x9E3779B97F4A7C15 & (1 << 64) - 1
            fault = self._fibers.launch(
                entry, words.ctypes, ctypes.c_uint32(int(blocks)), int(threads), ctypes.c_uint32(int(shared)),
                areas, len(areas), ctypes.c_uint64(seed),
            )  # fmt: skip
        if fault:
            raise KernelFault(f"{kernel.__name__}, {fault.decode()}")

    def _load(self, kernel, types):
        """The kernel's function for these types, its shared memory, and its dynamic shared memory."""
        key = kernel, types
        if key not in self._loaded:
            number = kernel.signatures.index(next(text for text in kernel.signatures if types_of(text) == types))
            path = path_of(kernel, number, self.folder)
            with _made_once(path) as missing:
                if missing:
                    self._builder.submit(build, kernel.__module__, kernel.__name__, number, path).result()
            library, shared = ctypes.CDLL(path), json.loads(path.with_suffix(".json").read_text())
            areas = (Area * len(shared))()
            for area, (name, size) in zip(areas, shared.items(), strict=True):
                area.begin, area.size = ctypes.addressof(ctypes.c_char.in_dll(library, name)), size
            dynamic = list(shared).index(DYNAMIC) if DYNAMIC in shared else None
            self._loaded[key] = library[ENTRY], areas, dynamic
        return self._loaded[key]


def path_of(kernel, number, folder):
    """The file of a kernel that is compiled for its signature of this number."""
    from tcgpu.engines import kernel_compiler

    digest = kernel_compiler.digest(kernel.py_func, kernel.signatures[number], CAPABILITY)
    return folder / f"{kernel.__module__}.{kernel.__name__}.{number}.{digest}{_own_digest()}.so"


@cache
def _own_digest():
    """A text that changes with what turns a kernel into a shared library."""
    import llvmlite.binding as llvm

    about = Path(__file__).read_text(), FIBERS.read_text(), llvm.get_host_cpu_features().flatten()
    return hashlib.sha256(repr(about).encode()).hexdigest()[:12]


@contextlib.contextmanager
def _made_once(path):
    """Whether a file is missing; while it is made, other processes wait here."""
    with open(path.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield not path.exists()


def _link(source, path):
    """Make a shared library of C or object code."""
    part = path.with_suffix(".part")
    subprocess.run([*COMPILER, "-o", part, source], check=True)
    part.replace(path)


def types_of(signature):
    """The Numba types of a kernel's arguments."""
    from numba.core.sigutils import normalize_signature

    return normalize_signature(signature)[0]


def signature_for(kernel, args):
    """The types of that signature which the arguments fit."""
    for types in map(types_of, kernel.signatures):
        if len(types) == len(args) and all(map(_fits, args, types)):
            return types
    raise TypeError(f"{kernel.__name__} takes no {[getattr(arg, 'dtype', type(arg)) for arg in args]}")


def _fits(arg, kind):
    if not isinstance(arg, np.ndarray):
        return not hasattr(kind, "ndim")
    return (arg.dtype.name, arg.ndim) == (str(kind.dtype), getattr(kind, "ndim", 0)) and arg.flags.c_contiguous


def _words(args, types):
    """The arguments as a kernel gets them, in words of 64 bits: an array is its size, its place, shape and strides."""
    words = []
    for arg, kind in zip(args, types, strict=True):
        if isinstance(arg, np.ndarray):
            words += [0, 0, arg.size, arg.itemsize, arg.ctypes.data, *arg.shape, *arg.strides]
        else:
            number = np.zeros(8, np.uint8)
            value = np.array([arg]).astype(str(kind).replace("boolean", "bool")).view(np.uint8)
            number[: value.size] = value
            words.append(int(number.view(np.uint64)[0]))
    return np.array(words, np.uint64)


# --------------------------------------------------------------------------------------- in the process that compiles

# what C cannot express: functions that return a number together with a bit
PAIRS = """
declare i32 @shuffle(i32, i32, i32, i32)
declare i32 @vote(i32, i32, i32)
define {i32, i1} @nvvm.shfl.sync.i32(i32 %mask, i32 %mode, i32 %value, i32 %where, i32 %clamp) {
  %found = call i32 @shuffle(i32 %mask, i32 %mode, i32 %value, i32 %where)
  %first = insertvalue {i32, i1} undef, i32 %found, 0
  %both = insertvalue {i32, i1} %first, i1 true, 1
  ret {i32, i1} %both
}
define {i32, i1} @nvvm.vote.sync(i32 %mask, i32 %mode, i1 %mine) {
  %value = zext i1 %mine to i32
  %found = call i32 @vote(i32 %mask, i32 %mode, i32 %value)
  %first = insertvalue {i32, i1} undef, i32 %found, 0
  %any = icmp ne i32 %found, 0
  %both = insertvalue {i32, i1} %first, i1 %any, 1
  ret {i32, i1} %both
}
"""


def _without_simulator():
    """Use the real numba.cuda in this process, even if the tests run with its simulator."""
    os.environ.pop("NUMBA_ENABLE_CUDASIM", None)


def build(module, name, number, path):
    """Compile a module's kernel for its signature of this number: a shared library, and the bytes of shared arrays."""
    import llvmlite.binding as llvm

    kernel = getattr(importlib.import_module(module), name)
    if path_of(kernel, number, path.parent) != path:
        raise ValueError(f"{name} is not as its module has it; a test that changes its constants needs the simulator")
    for old in path.parent.glob(f"{module}.{name}.{number}.*"):
        if old != path.with_suffix(".lock"):
            old.unlink()
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_default_triple()
    machine = target.create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=3, reloc="pic"
    )
    code = linked(*lowered(kernel.py_func, types_of(kernel.signatures[number])), machine)
    shared = shared_arrays(code, machine)
    optimize(code, machine)
    path.with_suffix(".json").write_text(json.dumps(shared))
    path.with_suffix(".o").write_bytes(machine.emit_object(code))
    _link(path.with_suffix(".o"), path)
    path.with_suffix(".o").unlink()


def lowered(function, types):
    """The name of a kernel and its LLVM code, as numba-cuda passes them to CUDA's compiler, plus checks."""
    from tcgpu.engines import kernel_compiler

    kernel_compiler.numba_cuda()
    from numba.cuda import cgutils, compiler, dispatcher

    dispatcher.get_current_device = lambda: SimpleNamespace(compute_capability=CAPABILITY)
    if cgutils.do_boundscheck is not check_index:
        unchecked = cgutils.get_item_pointer2
        cgutils.do_boundscheck = check_index
        cgutils.get_item_pointer2 = lambda *args, **kwargs: unchecked(*args, **kwargs | {"boundscheck": True})
    function = kernel_compiler.for_numba(function)
    library, _ = compiler._compile_pyfunc_with_fixup(function, types, device=False, cc=CAPABILITY, abi="numba")
    return library._entry_name, library.llvm_strs


def check_index(context, builder, index, length, axis=None):
    """Code that ends the launch unless an index is within its array."""
    from llvmlite import ir
    from numba.cuda import cgutils

    word = ir.IntType(64)
    outside = cgutils.get_or_insert_function(builder.module, ir.FunctionType(ir.VoidType(), [word, word]), "outside")
    outside.attributes.add("noreturn")
    with cgutils.if_unlikely(builder, builder.icmp_unsigned(">=", index, length)):
        builder.call(outside, [index, length])


def for_processor(text):
    """LLVM code without what only GPUs have: those intrinsics become functions, the name less `llvm.`."""
    text = text.replace("llvm.nvvm.", "nvvm.").replace("!nvvm.annotations", "!annotations")
    size = 'asm sideeffect "mov.u32 $0, %dynamic_smem_size;", "=r"()'
    register = '@"nvvm.read.ptx.sreg.dynamic_smem_size"()'
    return text.replace(size, register) + (f"\ndeclare i32 {register}\n" if size in text else "")


def linked(name, texts, machine):
    """One module of it all, with an entry that takes the arguments out of an array of words."""
    import llvmlite.binding as llvm

    modules = [llvm.parse_assembly(for_processor(text)) for text in texts]
    kernel = next(f for module in modules for f in module.functions if f.name == name and not f.is_declaration)
    types = [str(argument.type) for argument in kernel.arguments]
    loads = "".join(
        f"  %at{k} = getelementptr i64, ptr %words, i64 {k}\n  %word{k} = load {kind}, ptr %at{k}\n"
        for k, kind in enumerate(types)
    )
    given = ", ".join(f"{kind} %word{k}" for k, kind in enumerate(types))
    whole = llvm.parse_assembly(
        f'declare void @"{name}"({", ".join(types)})\n'
        f'define void @{ENTRY}(ptr %words) {{\n{loads}  call void @"{name}"({given})\n  ret void\n}}\n'
    )
    for module in [*modules, llvm.parse_assembly(PAIRS)]:
        module.triple, module.data_layout = machine.triple, str(machine.target_data)
        whole.link_in(module)
    for function in whole.functions:
        if not function.is_declaration and function.name != ENTRY:
            function.linkage = "internal"
    return whole


def shared_arrays(code, machine):
    """Give the shared arrays a place that `fibers.c` gets; the bytes of each, by name."""
    import llvmlite.binding as llvm

    found = [array for array in code.global_variables if str(array.type) == "ptr addrspace(3)"]
    dynamic = [f'@"{array.name}"' for array in found if array.is_declaration]
    sizes = {}
    for array in found:
        if not array.is_declaration:
            array.linkage = "external"  # so that LLVM takes it for something that a barrier may change
            sizes[array.name] = machine.target_data.get_abi_size(array.global_value_type)
    if dynamic:  # all of them begin at the same place
        place = f"@{DYNAMIC} = addrspace(3) global [{MOST_DYNAMIC} x i8] zeroinitializer, align 128\n"
        code.link_in(llvm.parse_assembly(
            place + "".join(f"{name} = alias i8, ptr addrspace(3) @{DYNAMIC}\n" for name in dynamic)
        ))  # fmt: skip
        sizes[DYNAMIC] = MOST_DYNAMIC
    return sizes


def optimize(code, machine):
    import llvmlite.binding as llvm

    code.verify()
    builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=3))
    builder.getModulePassManager().run(code, builder)
