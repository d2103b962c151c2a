"""WebGPU's devices: which there are, and what both kinds, `wgpu_native` and `browser`, have in common.

A `Device` records work in the order of the calls, and submits it when something has to wait for it, so that a GPU that
is timed does not wait for Python. Offsets and sizes are in bytes; those of copies are multiples of 4.
"""

import os
import struct
import sys
import threading
import time
import weakref
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, lru_cache
from importlib import import_module
from types import SimpleNamespace

from tcgpu.engines.facts import OutOfMemory
from tcgpu.errors import EngineError
from tcgpu.progress import uninterrupted

WIDTH = 1 << 15  # blocks in x; a launch with more has several rows of them
ALIGNMENT = 256  # of the offset at which a buffer is bound
PARAMETER_BYTES = 1 << 16  # bytes of the launches that are submitted together
PIECE_BYTES = 1 << 24  # bytes that are copied to or from the host at a time
GROUPS = 512  # bind groups that are kept

# WebGPU's flags
MAP_READ, COPY_SOURCE, COPY_TARGET, UNIFORM, STORAGE, QUERIES = 1, 4, 8, 64, 128, 512
COMPUTE = 4
ACCESS = {"uniform": "uniform", "read": "read-only-storage", "read_write": "storage"}

# Best first; one GPU may be there twice, through two backends
KINDS = "discrete", "integrated", "other", "software"
BACKENDS = "Metal", "Vulkan", "D3D12", "browser"
WRONG = "llvmpipe"  # it ends a thread's loops after about 65,000 rounds
WRONG_ALONE = (
    f"the only WebGPU device here is {WRONG}, which ends long loops, so that counts are wrong: install a GPU's driver "
    f"for Vulkan, or set TCGPU_WEBGPU={WRONG} to use it all the same"
)


@dataclass(frozen=True)
class DeviceInfo:
    """A device of this machine. `number` counts from the best one."""

    name: str
    vendor: str
    backend: str  # one of BACKENDS
    kind: str  # one of KINDS
    driver: str
    number: int = 0


# ----------------------------------------------------------------------------------------------------------- which ones


@cache
def _module():
    """The module of the devices that this Python reaches."""
    return import_module("tcgpu.engines.webgpu." + ("browser" if sys.platform == "emscripten" else "wgpu_native"))


@cache
def _found():
    """DeviceInfo -> adapter, of all devices, best first."""
    ranked = sorted(_module().adapters(), key=lambda each: _rank(**each[0]))
    return {DeviceInfo(**facts, number=number): adapter for number, (facts, adapter) in enumerate(ranked)}


def _rank(name, kind, backend, **others):
    return WRONG in name, KINDS.index(kind), BACKENDS.index(backend)


def _chosen(info):
    """Whether the environment variable TCGPU_WEBGPU has the number of a device, or a part of its name."""
    choice = os.environ.get("TCGPU_WEBGPU", "").strip().lower()
    if choice.isdecimal():
        return info.number == int(choice)
    return choice in info.name.lower() if choice else WRONG not in info.name


def devices():
    """The DeviceInfo of each device: best hardware first, software last. llvmpipe is there only if it was chosen."""
    found = {} if _module().missing() else _found()
    return [info for info in found if WRONG not in info.name or _chosen(info)]


def why_missing():
    """Why there is no device, and what to do, in a sentence; None if there is one."""
    missing, here = _module().missing(), devices()
    if missing or any(map(_chosen, here)):
        return missing
    if here:
        there = ", ".join(f"{info.number} {info.name}" for info in here)
        return f"TCGPU_WEBGPU={os.environ['TCGPU_WEBGPU']} is none of the WebGPU devices here: {there}"
    return WRONG_ALONE if _found() else _module().NO_ADAPTER


_opening, _open = threading.RLock(), {}


def chosen_device():
    """The DeviceInfo of the device that is chosen, or the best; it is not opened. EngineError if there is none."""
    if reason := why_missing():
        raise EngineError(reason)
    return next(filter(_chosen, devices()))


def open_device(info=None):
    """The Device of a DeviceInfo, by default the one that is chosen, or the best. A process opens each once."""
    info = info or chosen_device()
    with _opening:
        if info not in _open:
            _open[info] = _module().Device(info, _found()[info])
        return _open[info]


# ------------------------------------------------------------------------------------------------------------- a device


class Buffer:
    """Memory of a device, zeros at first; freed when nothing refers to it."""

    def __init__(self, raw, nbytes):
        self.raw, self.nbytes = raw, nbytes
        weakref.finalize(self, raw.destroy).atexit = False


@dataclass(frozen=True, eq=False)
class Pipeline:
    """A compiled kernel."""

    raw: object
    layout: object  # of what is bound


class Device:
    """A device that is open. Its `raw` has the calls of the package wgpu.

    An error of one dispatch is raised when work is submitted, and none of what was recorded with it is done.

    A subclass has what they do not have in common: `_compile(text, layout, name)` makes a raw pipeline; `_wait()` does
    until all work is done; `_map(raw, target)`, too, and copies from a buffer that the host may read; the context
    `_errors()` raises the device's errors as ours.
    """

    def __init__(self, info, raw, features, nanoseconds_per_tick=1):
        self.info, self.raw, self.queue = info, raw, raw.queue
        self.limits, self.features = _limits(raw.limits), frozenset(features)
        self.timed_by = "timestamps" if "timestamps" in features else "clock"
        self._process, self._lock = os.getpid(), threading.RLock()
        self._pipelines = {}  # (text, bindings) -> Pipeline
        self._encoder = self._pass = None  # they record what is not submitted yet
        self._held = []  # the buffers of it: they must not be freed before
        self._parameters = bytearray()  # of its launches, which are written to `_uniform`
        self._uniform = raw.create_buffer(size=PARAMETER_BYTES, usage=UNIFORM | COPY_TARGET)
        self._staging = []  # buffers for the host that no thread uses now
        self._timed = None  # how many passes are timed, if any are to be
        self._nanoseconds_per_tick = nanoseconds_per_tick
        if self.timed_by == "timestamps":
            self._queries = raw.create_query_set(type="timestamp", count=2)
            self._ticks = Buffer(raw.create_buffer(size=16, usage=QUERIES | COPY_SOURCE), 16)

    def __repr__(self):
        return f"<WebGPU device {self.info.name} through {self.info.backend}>"

    @contextmanager
    def _call(self):
        """One call at a time, which Ctrl-C does not end: what is recorded by half would end the process."""
        if os.getpid() != self._process:
            raise EngineError("a WebGPU device does not work in a forked process: start processes by spawn")
        with uninterrupted(), self._lock, self._errors():
            yield

    # memory

    def buffer(self, nbytes):
        """A new Buffer of at least so many bytes."""
        size = max(16, -(-nbytes // 16) * 16)
        if size > self.limits.buffer_bytes:
            raise OutOfMemory(f"{size:,} bytes: {self.info.name} has buffers of at most {self.limits.buffer_bytes:,}")
        try:
            return self._new_buffer(size)
        except OutOfMemory:
            self.synchronize()  # then all buffers are freed to which nothing refers
            return self._new_buffer(size)

    def _new_buffer(self, size, usage=STORAGE | COPY_SOURCE | COPY_TARGET):
        with self._call():
            return Buffer(self.raw.create_buffer(size=size, usage=usage), size)

    def write(self, buffer, offset, data):
        """Copy the bytes of host memory to a buffer."""
        data = memoryview(data).cast("B")
        _check_words(offset, data.nbytes)
        for at in range(0, data.nbytes, PIECE_BYTES):
            if at:
                self.synchronize()  # until then the driver keeps a copy of each piece
            with self._call():
                self._flush()
                self.queue.write_buffer(buffer.raw, offset + at, data[at : at + PIECE_BYTES])
                self._recording()  # so that there is something to submit, and the copies with it

    def read(self, buffer, offset, nbytes):
        """Bytes of a buffer, as a bytearray, after all work until now."""
        target = bytearray(nbytes)
        self.read_into(buffer, offset, target)
        return target

    def read_into(self, buffer, offset, target):
        """Copy from a buffer to writable host memory, after all work until now."""
        target = memoryview(target).cast("B")
        _check_words(offset, target.nbytes)
        for at in range(0, target.nbytes, PIECE_BYTES):
            piece = target[at : at + PIECE_BYTES]
            with self._call():
                between = (
                    self._staging.pop() if self._staging else self._new_buffer(PIECE_BYTES, MAP_READ | COPY_TARGET)
                )
                self._recording().copy_buffer_to_buffer(buffer.raw, offset + at, between.raw, 0, piece.nbytes)
                self._flush()
            with self._errors():
                self._map(between.raw, piece)
            self._staging.append(between)

    def copy(self, source, source_offset, target, target_offset, nbytes):
        """Copy from a buffer to a buffer, or inside one."""
        _check_words(source_offset, target_offset, nbytes)
        if not nbytes:
            return
        if source is target:  # WebGPU refuses it
            between = self.buffer(nbytes)
            self.copy(source, source_offset, between, 0, nbytes)
            source, source_offset = between, 0
        with self._call():
            self._held += source, target
            self._recording().copy_buffer_to_buffer(source.raw, source_offset, target.raw, target_offset, nbytes)

    def clear(self, buffer, offset, nbytes):
        _check_words(offset, nbytes)
        if nbytes:
            with self._call():
                self._held.append(buffer)
                self._recording().clear_buffer(buffer.raw, offset, nbytes)

    # kernels

    def pipeline(self, text, bindings, name="main"):
        """The Pipeline of a kernel in WGSL, the function `main`; compiled once.

        bindings: what the bindings 0, 1, ... of group 0 are: "uniform", the parameters, comes first, then "read" or
        "read_write" for each buffer. The text need not use all of them, and has no `enable`.
        """
        key = text, tuple(bindings)
        with self._call():
            if key not in self._pipelines:
                kinds = [{"type": ACCESS[each], "has_dynamic_offset": each == "uniform"} for each in bindings]
                entries = [{"binding": k, "visibility": COMPUTE, "buffer": kind} for k, kind in enumerate(kinds)]
                layout = self.raw.create_bind_group_layout(entries=entries)
                self._pipelines[key] = Pipeline(self._compile(text, layout, name), layout)
            return self._pipelines[key]

    def _pipeline_of(self, module, layout, name):
        layout = self.raw.create_pipeline_layout(bind_group_layouts=[layout])
        main = {"module": module, "entry_point": "main"}
        return self.raw.create_compute_pipeline(label=name, layout=layout, compute=main)

    def dispatch(self, pipeline, blocks, params, buffers):
        """Launch a kernel; does not wait.

        blocks: their number. A block's own is `group.y * WIDTH + group.x`; those beyond the last must do nothing.
        params: bytes of the uniform. buffers: (Buffer, offset, size) for each binding after it. A buffer that is bound
        twice is "read" in both places, or "read_write" in both and then of ranges that do not overlap.
        """
        size = max(1, -(-len(params) // ALIGNMENT)) * ALIGNMENT
        rows = -(-blocks // WIDTH)
        if any(offset % ALIGNMENT for _, offset, _ in buffers):
            raise ValueError(f"a buffer is bound at an offset that is no multiple of {ALIGNMENT}")
        if rows > self.limits.blocks_per_dimension:
            raise ValueError(f"{blocks:,} blocks: at most {WIDTH * self.limits.blocks_per_dimension:,} are possible")
        if not blocks:
            return
        with self._call():
            if len(self._parameters) + size > PARAMETER_BYTES:
                self._flush()
            self._held += [buffer for buffer, *_ in buffers]
            bound = ((buffer.raw, *part) for buffer, *part in buffers)
            group = self._group(pipeline.layout, (self._uniform, 0, size), *bound)
            self._pass = self._pass or self._recording().begin_compute_pass(**self._stamps())
            self._pass.set_pipeline(pipeline.raw)
            self._pass.set_bind_group(0, group, [len(self._parameters)])
            self._pass.dispatch_workgroups(min(blocks, WIDTH), rows)
            self._parameters += params.ljust(size, b"\0")

    @lru_cache(GROUPS)  # noqa: B019 (a device lives as long as the process)
    def _group(self, layout, *bound):
        entries = [
            {"binding": k, "resource": {"buffer": raw, "offset": offset, "size": nbytes}}
            for k, (raw, offset, nbytes) in enumerate(bound)
        ]
        return self.raw.create_bind_group(layout=layout, entries=entries)

    # order

    def _recording(self):
        """The encoder of commands, outside a pass."""
        ended, self._pass = self._pass, None
        if ended:
            ended.end()
        self._encoder = self._encoder or self.raw.create_command_encoder()
        return self._encoder

    def _flush(self):
        """Submit all work until now."""
        encoder, self._encoder = self._encoder and self._recording(), None
        parameters, self._parameters = self._parameters, bytearray()
        held, self._held = self._held, []
        if parameters:
            self.queue.write_buffer(self._uniform, 0, parameters)
        if encoder:
            self.queue.submit([encoder.finish()])
        held.clear()

    def flush(self):
        """Submit all work until now; does not wait."""
        with self._call():
            self._flush()

    def synchronize(self):
        """Wait until all work until now is done."""
        self.flush()
        with self._errors():
            self._wait()

    # timing

    def start_timing(self):
        """Begin a measurement; there is one at a time."""
        if self.timed_by == "clock":
            self.synchronize()
        with self._call():
            self._flush()  # what is timed has passes of its own
        self._timed, self._began = 0, time.perf_counter_ns()

    def stop_timing(self):
        """Nanoseconds from the start of the first dispatch since `start_timing` to the end of the last one."""
        timed, self._timed = self._timed, None
        if self.timed_by == "clock":
            self.synchronize()
            return time.perf_counter_ns() - self._began
        if not timed:
            return 0
        with self._call():
            self._recording().resolve_query_set(self._queries, 0, 2, self._ticks.raw, 0)
        begin, end = struct.unpack("<QQ", self.read(self._ticks, 0, 16))
        return round((end - begin) * self._nanoseconds_per_tick)

    def _stamps(self):
        """The queries that a pass writes: the first pass that is timed its begin, each its end, over the one before."""
        if self._timed is None or self.timed_by == "clock":
            return {}
        writes = {"query_set": self._queries, "end_of_pass_write_index": 1}
        if not self._timed:
            writes["beginning_of_pass_write_index"] = 0
        self._timed += 1
        return {"timestamp_writes": writes}


def _check_words(*numbers):
    if any(number % 4 for number in numbers):
        raise ValueError(f"offsets and sizes are multiples of 4 bytes, not {numbers}")


def _limits(limits):
    """What a device allows, of what WebGPU calls so."""
    buffer_bytes = min(limits["max-buffer-size"], limits["max-storage-buffer-binding-size"])
    return SimpleNamespace(
        threads_per_block=min(limits["max-compute-invocations-per-workgroup"], limits["max-compute-workgroup-size-x"]),
        shared_bytes=limits["max-compute-workgroup-storage-size"],
        buffer_bytes=buffer_bytes // ALIGNMENT * ALIGNMENT,  # of one buffer
        buffers_per_kernel=limits["max-storage-buffers-per-shader-stage"],
        blocks_per_dimension=limits["max-compute-workgroups-per-dimension"],
    )


PROBE = """
@group(0) @binding(1) var<storage, read_write> is_warp: array<u32>;
@compute @workgroup_size(THREADS)
fn main(@builtin(local_invocation_index) thread: u32, @builtin(subgroup_size) size: u32,
        @builtin(subgroup_invocation_id) lane: u32) {
    is_warp[thread] = select(0u, 1u, size == 32u && lane == thread % 32u);
}
"""


def has_subgroups_of_32(device):
    """Whether the subgroups of a device are CUDA's warps: 32 threads in the order of their numbers."""
    for threads in (32, 96, 256):
        pipeline = device.pipeline(PROBE.replace("THREADS", str(threads)), ("uniform", "read_write"), "probe")
        found = device.buffer(4 * threads)
        device.dispatch(pipeline, 1, b"", [(found, 0, found.nbytes)])
        if device.read(found, 0, 4 * threads) != struct.pack("<I", 1) * threads:
            return False
    return True
