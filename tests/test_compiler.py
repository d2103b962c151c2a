"""Compiled kernels on disk: they are found again, never confused with others, and never half written."""

import io
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType

import numpy as np
import pytest

from tcgpu.engines import kernel_compiler, kernel_language, runtime
from tcgpu.engines.cache_folder import CHECKSUM
from tcgpu.engines.runtime import cuda, int64, uint32
from tcgpu.kernels import edge_sums, prefix_sum
from tcgpu.kernels.adaptive import layout, merging
from tcgpu.kernels.device.columns import find_columns
from tcgpu.kernels.orientation import find_extent
from tcgpu.kernels.report import naive

pytest.importorskip("cuda.bindings.nvvm", reason="no CUDA compiler here: pip install 'tcgpu[test]'")

HOPPER = 9, 0
SIGNATURE = "void(int64[::1])"
STEP = 3


@cuda.jit(device=True)
def twice(x):
    return x + x


def writes_numbers(out):
    out[cuda.threadIdx.x] = twice(STEP)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """An empty folder for compiled kernels."""
    monkeypatch.setenv("TCGPU_CACHE", os.fspath(tmp_path))
    monkeypatch.setattr(kernel_compiler, "MOST_PROCESSES", 0)
    return tmp_path / "kernels"


@pytest.fixture
def compilations(monkeypatch):
    """The kernels that were compiled, by name."""
    found, compile = [], kernel_compiler.compiled
    monkeypatch.setattr(kernel_compiler, "compiled", lambda f, *rest: found.append(f.__name__) or compile(f, *rest))
    return found


def image():
    return kernel_compiler.image(writes_numbers, SIGNATURE, HOPPER)


def test_a_kernel_is_compiled_once(folder, compilations):
    first, second = image(), image()
    assert first == second and compilations == ["writes_numbers"]
    assert first.entry.encode() in first.cubin and first.cubin.startswith(b"\x7fELF")


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"",
        lambda data: data[:-1],
        lambda data: data + b"\0",
        lambda data: data[:200] + bytes([data[200] ^ 1]) + data[201:],
        lambda data: b"another file" + data[12:],
        lambda data: data[:CHECKSUM],
    ],
    ids=["empty", "cut", "longer", "one bit", "another file", "the checksum alone"],
)
def test_a_damaged_file_is_compiled_anew_and_replaced(folder, compilations, damage):
    image()
    (path,) = folder.iterdir()
    path.write_bytes(damage(path.read_bytes()))
    anew = image()
    assert anew.entry.encode() in anew.cubin and image() == anew and compilations == 2 * ["writes_numbers"]


def test_the_key_names_everything_that_the_code_depends_on(monkeypatch):
    def key(function=writes_numbers, signature=SIGNATURE, capability=HOPPER, most=None):
        return kernel_compiler.digest(function, signature, capability, most)

    def writes_more(out):
        out[cuda.threadIdx.x] = twice(STEP) + 1

    keys = {key(), key(writes_more), key(signature="void(int32[::1])"), key(capability=(8, 0)), key(most=256)}
    monkeypatch.setitem(globals(), "STEP", 4)
    keys.add(key())
    monkeypatch.setitem(globals(), "STEP", np.int32(4))
    keys.add(key())
    monkeypatch.setitem(globals(), "twice", cuda.jit(device=True)(lambda x: x * 2))
    keys.add(key())
    monkeypatch.setattr(kernel_compiler, "versions", lambda: ("numba-cuda 99",))
    keys.add(key())
    assert len(keys) == 9


def test_the_key_names_all_elements_of_arrays_in_tuples_and_modules():
    tables, module = (np.zeros(5000), np.zeros(5000)), ModuleType("module")
    module.table = np.zeros(5000)

    def writes_an_element(out):
        out[0] = tables[1][2500] + module.table[2500]

    keys = set()
    for array in (module.table, tables[1], tables[0]):
        keys.add(kernel_compiler.digest(writes_an_element, SIGNATURE, HOPPER))
        array[2500] = 1
    assert len(keys) == 3


def test_the_key_is_the_same_in_every_process_and_after_an_edit_of_a_comment(tmp_path):
    source = "from tcgpu.engines.runtime import cuda\n{}def kernel(out):\n    {}\n    out[0] = cuda.grid(1)\n"
    keys = set()
    for number, comment in enumerate(["", "# a comment"]):
        (tmp_path / f"some{number}.py").write_text(source.format(4 * number * "\n", comment))
        code = f"import some{number}; from tcgpu.engines import kernel_compiler; "
        code += f"print(kernel_compiler.digest(some{number}.kernel, 'void()', (9, 0)))"
        environment = {**os.environ, "PYTHONPATH": f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}"}
        ran = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
        keys.add(ran.stdout)
    assert len(keys) == 1


def test_several_threads_can_write_one_kernel(folder):
    found = kernel_compiler.Image("entry", bytes(range(256)) * 4000)
    path = folder / "some.cubin"
    with ThreadPoolExecutor(8) as pool:
        for _ in pool.map(lambda _: kernel_compiler._write(path, found), range(64)):
            assert kernel_compiler._read(path) == found
    assert list(folder.iterdir()) == [path], "nothing is left beside it"


def test_a_folder_that_cannot_be_written_is_named_once(folder, caplog):
    folder.parent.mkdir(exist_ok=True)
    folder.write_text("a file where the folder would be")
    kernel_compiler._say_once.cache_clear()
    assert image().cubin and image().cubin
    assert len(caplog.messages) == 1 and "compiled kernels are not kept" in caplog.messages[0]
    assert folder.read_text() == "a file where the folder would be"


def test_a_numba_that_takes_other_arguments_is_refused(folder, monkeypatch):
    ptx = kernel_compiler.to_ptx(kernel_compiler.to_ltoir(writes_numbers, SIGNATURE, HOPPER), HOPPER)
    monkeypatch.setattr(kernel_compiler, "to_ptx", lambda *_: ptx.replace("_param_6", "_param_6[8],\n.param .u64 more"))
    with pytest.raises(kernel_compiler.CompilerError, match="writes_numbers for arguments of"):
        image()


def test_numpy_without_row_stack_compiles(tmp_path):
    """As in NumPy 2.5, which numba-cuda 0.30 does not support."""
    code = (
        "import numpy as np\n"
        "if hasattr(np, 'row_stack'): del np.row_stack\n"
        "np.__all__ = [name for name in np.__all__ if name != 'row_stack']\n"
        "from tcgpu.engines import kernel_compiler\n"
        "from tcgpu.kernels.report import naive\n"
        "kernel = naive.naive_kernel\n"
        "print(len(kernel_compiler.image(kernel.py_func, kernel.signatures[0], (9, 0)).cubin) > 1000)\n"
        "print(hasattr(np, 'row_stack'))\n"
    )
    environment = os.environ | {"TCGPU_CACHE": os.fspath(tmp_path)}
    ran = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert ran.stdout == "True\nFalse\n", ran.stderr


@pytest.mark.parametrize(
    "text, message",
    [("int64(int64)", "void"), ("void(int64[", "void"), ("void(int64[::1] int32)", "int32"), ("void(-)", "expected")],
)
def test_invalid_signatures_are_refused(text, message):
    with pytest.raises(ValueError, match=message):
        kernel_language.parameters(text)


@pytest.mark.parametrize("code", ["tcgpu.count(graph, 'naive', engine='sim')", "tcgpu.count(graph, engine='cpu')"])
def test_engines_without_a_gpu_import_no_cuda_package(code):
    """Nor may they: a machine may have none."""
    lines = (
        "import sys\n"
        "class Refuse:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'numba.cuda' or name.split('.')[0] in ('cuda', 'cupy', 'numba_cuda'):\n"
        "            raise ImportError(f'{name} was imported')\n"
        "sys.meta_path.insert(0, Refuse())\n"
        "import tcgpu\n"
        "graph = tcgpu.generate.clique(6)\n"
        f"print({code}, tcgpu.trace(graph, 'bitmap_warp').totals()['load_requests'] > 0)\n"
    )
    ran = subprocess.run([sys.executable, "-c", lines], capture_output=True, text=True)
    assert ran.stdout == "20 True\n", ran.stderr


# ---------------------------------------------------------------------------------------------- in other processes


def image_of(kernel):
    return kernel_compiler.image(kernel.py_func, kernel.signatures[0], HOPPER, kernel.most_threads)


@pytest.fixture
def many_cores(monkeypatch):
    """A machine of eight cores, and the kernels of the only module that is loaded."""
    monkeypatch.setattr(kernel_compiler, "MOST_PROCESSES", 12)
    monkeypatch.setattr(os, "cpu_count", lambda: 8)
    for name, empty in {"_servers": [], "_under_way": {}, "_seen": set()}.items():
        monkeypatch.setattr(kernel_compiler, name, empty)
    kernels = [value for value in vars(merging).values() if isinstance(value, runtime.Kernel)]
    found = [(f"{each.__module__}:{each.__name__}", each) for each in kernels]
    monkeypatch.setattr(kernel_compiler, "_loaded_kernels", lambda: found)
    return kernels


def test_other_processes_compile_what_is_loaded_and_not_cached(folder, many_cores, compilations):
    assert len(many_cores) == 6
    assert all(kernel.__name__ in image_of(kernel).entry for kernel in many_cores)
    assert len(kernel_compiler._servers) == 1 and len(kernel_compiler._under_way) == 6
    assert not compilations, "this process compiles none"
    for forgotten in (kernel_compiler._under_way, kernel_compiler._seen):
        forgotten.clear()
    image_of(find_extent)
    assert not kernel_compiler._under_way, "all of them are kept"


def test_a_server_takes_more_names(folder, many_cores, compilations, monkeypatch):
    found = kernel_compiler._loaded_kernels()
    later = found[4:]
    del found[4:]
    image_of(many_cores[0])
    monkeypatch.setattr(kernel_compiler, "LEAST_KERNELS", 2)
    found += later
    assert all(kernel.__name__ in image_of(kernel).entry for kernel in many_cores)
    assert len(kernel_compiler._servers) == 1 and not compilations


def test_what_another_process_fails_to_compile_is_compiled_here(folder, many_cores, compilations, monkeypatch):
    monkeypatch.setattr(kernel_compiler, "PROGRAM", "raise SystemExit(1)")
    assert len([image_of(kernel) for kernel in many_cores]) == len(compilations) == 6
    assert len(kernel_compiler._under_way) == 6


def test_a_server_is_started_in_advance_only_if_nothing_is_kept(folder, many_cores, compilations):
    kernel_compiler.prepare()
    (server,) = kernel_compiler._servers
    image_of(many_cores[0])
    assert kernel_compiler._servers == [server] and not compilations
    kernel_compiler.prepare()
    assert kernel_compiler._servers == [server]
    server.stdin.close()
    assert server.wait(60) == 0, "a server ends when no more names come"


@pytest.mark.parametrize("cores, kernels", [(8, 3), (4, 6)])
def test_no_process_is_started_for_few_kernels_or_on_few_cores(cores, kernels, folder, many_cores, monkeypatch):
    monkeypatch.setattr(os, "cpu_count", lambda: cores)
    del kernel_compiler._loaded_kernels()[kernels:]
    image_of(many_cores[0])
    assert not kernel_compiler._under_way


def test_threads_that_miss_kernels_together_start_processes_once(folder, many_cores, monkeypatch):
    started = []
    monkeypatch.setattr(kernel_compiler.subprocess, "Popen", lambda command, **how: started.append(command) or Ended())
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(image_of, many_cores[:4]))
    assert len(started) == 1


class Ended:
    """A process that has ended and compiled nothing."""

    stdin = io.BytesIO()

    def poll(self):
        return 1


def test_no_process_is_started_if_its_result_cannot_be_cached(folder, many_cores):
    folder.parent.mkdir(exist_ok=True)
    folder.write_text("a file where the folder would be")
    image_of(many_cores[0])
    assert not kernel_compiler._under_way


def test_all_kernels_of_loaded_modules_are_found_and_no_others(monkeypatch):
    found = dict(kernel_compiler._loaded_kernels())
    assert found["tcgpu.kernels.report.naive:naive_kernel"] is naive.naive_kernel
    assert {each for each in adaptive_kernels() if each.signatures} <= {*found.values()}
    assert len({*found.values()}) == len(found), "a kernel that another module imports is found once"
    monkeypatch.delitem(sys.modules, "tcgpu.kernels.report.naive")
    assert "tcgpu.kernels.report.naive:naive_kernel" not in dict(kernel_compiler._loaded_kernels())


def adaptive_kernels():
    modules = edge_sums, prefix_sum, merging, layout
    return [value for module in modules for value in vars(module).values() if isinstance(value, runtime.Kernel)]


@pytest.mark.parametrize(
    "kernel, like, number",
    [
        (edge_sums.count_ends, find_extent.signatures[2], [2]),
        (edge_sums.count_ends, find_extent.signatures[0], [0]),
        (edge_sums.count_ends, find_columns.signatures[0], [0]),
        (prefix_sum.write_starts, find_extent.signatures[2], [0, 1, 2, 3]),
    ],
)
def test_kernels_for_ends_are_compiled_for_the_type_that_is_missing(kernel, like, number):
    assert [*kernel_compiler._needed(kernel.signatures, like)] == number


def test_a_cached_kernel_needs_no_numba_cuda(folder, monkeypatch):
    """A process whose kernels are all kept does not wait for its import."""
    kernel = naive.naive_kernel
    kept = kernel_compiler.image(kernel.py_func, kernel.signatures[0], HOPPER)
    monkeypatch.setattr(kernel_compiler, "numba_cuda", lambda: pytest.fail("numba.cuda is imported"))
    assert kernel_compiler.image(kernel.py_func, kernel.signatures[0], HOPPER) == kept


def test_a_closure_is_compiled_with_its_values(folder):
    def make(step):
        def kernel(out):
            out[cuda.threadIdx.x] = int64(uint32(step))

        return kernel

    images = {kernel_compiler.image(make(step), SIGNATURE, HOPPER).cubin for step in (1, 2)}
    assert len(images) == 2 and len(list(folder.iterdir())) == 2
