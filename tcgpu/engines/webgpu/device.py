"""WebGPU's devices: which there are, and what both kinds, `native` and `browser`, have in common.

A `Device` records work in the order of the calls, and submits it when something has to wait for it. Nothing waits but
`read`, `synchronize` and the timing. Offsets and sizes are in bytes.
"""

import os
import struct
import sys
import threading
import time
import weakref
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from itertools import count

from tcgpu.engines.facts import OutOfMemory
from tcgpu.errors import EngineError

WIDTH = 1 << 15  # blocks in x; a launch with more has several rows of them
ALIGNMENT = 256  # of what is bound
RING = 1 << 16  # bytes of parameters: when they are used up, the work is submitted
GROUPS = 512  # bind groups that are kept

# WebGPU's flags for what a buffer is used for
MAP_READ, COPY_SOURCE, COPY_TARGET, UNIFORM, STORAGE, QUERIES = 1, 4, 8, 64, 128, 512
ACCESS = {"uniform": "uniform", "read": "read-only-storage", "read_write": "storage"}

# Best first. One GPU may be there twice, through two of these
KINDS = "discrete", "integrated", "other", "software"
BACKENDS = "Metal", "Vulkan", "D3D12", "browser"
WRONG = "llvmpipe"  # it ends a thread's loops after about 65,000 rounds: counts are wrong


@dataclass(frozen=True)
class DeviceInfo:
    """A device of this machine. `number` counts from the best one."""

    name: str
    vendor: str
    backend: str  # one of BACKENDS
    kind: str  # one of KINDS
    driver: str
    number: int = 0


@dataclass(frozen=True)
class Limits:
    """What a device allows; sizes in bytes."""

    threads_per_block: int
    shared_bytes: int
    buffer_bytes: int  # of one buffer, all of which a kernel can use
    buffers_per_kernel: int
    blocks_per_dimension: int
    memory_bytes: int | None = None  # None: WebGPU does not say


# ------------------------------------------------------------------------------------------------ which devices there are


@cache
def _module():
    """The module of devices for this Python: `browser` or `native`."""
    return import_module("tcgpu.engines.webgpu." + ("browser" if sys.platform == "emscripten" else "native"))


@cache
def _found():
    """DeviceInfo -> adapter, of all devices, best first; none where WebGPU is missing."""
    if _module().missing():
        return {}
    # `sorted` keeps the order of equals, and adapters are not compared
    ranked = sorted(
        _module().adapters(),
        key=lambda each: (WRONG in each[0]["name"], KINDS.index(each[0]["kind"]), BACKENDS.index(each[0]["backend"])),
    )
    return {DeviceInfo(**facts, number=number): adapter for number, (facts, adapter) in enumerate(ranked)}


def _wanted():
    """What the environment variable TCGPU_WEBGPU chooses: a number, or a part of a name."""
    return os.environ.get("TCGPU_WEBGPU", "").strip().lower()


def _is_wanted(info):
    wanted = _wanted()
    return info.number == int(wanted) if wanted.isdigit() else wanted in info.name.lower()


def devices():
    """The devices, as a list of DeviceInfo: best hardware first, software last. A wrong one is there only if chosen."""
    return [info for info in _found() if WRONG not in info.name or (_wanted() and _is_wanted(info))]


def why_missing():
    """Why there is no device, and what to do, in a sentence; None if there is one."""
    missing = _module().missing()
    if missing:
        return missing
    if any(_is_wanted(info) for info in devices()):
        return None
    if devices():
        there = ", ".join(f"{info.number} {info.name}" for info in devices())
        return f"TCGPU_WEBGPU={os.environ['TCGPU_WEBGPU']} is none of the WebGPU devices here: {there}"
    if _found():
        return (
            f"the only WebGPU device here is {WRONG}, which ends long loops, so that counts are wrong: install a GPU's "
            f"driver for Vulkan, or set TCGPU_WEBGPU={WRONG} to use it all the same"
        )
    return _module().NO_ADAPTER


def open_device(info=None):
    """The Device of a DeviceInfo; by default the one that TCGPU_WEBGPU chooses, or the best. A process opens it once."""
    if info is None:
        reason = why_missing()
        if reason:
            raise EngineError(reason)
        info = next(info for info in devices() if _is_wanted(info))
    with _opening:
        if info not in _open:
            _open[info] = _module().Device(info, _found()[info])
        return _open[info]


_opening, _open = threading.RLock(), {}


# ---------------------------------------------------------------------------------------------------------- the devices


class Buffer:
    """Memory of a device, zeroed at first; freed when nothing refers to it."""

    numbers = count()

    def __init__(self, raw, nbytes):
        self.raw, self.nbytes, self.number = raw, nbytes, next(Buffer.numbers)
        weakref.finalize(self, raw.destroy).atexit = False


@dataclass(frozen=True, eq=False)
class Pipeline:
    """A compiled kernel."""

    raw: object
    bindings: tuple  # of "uniform", "read" and "read_write"


class Device:
    """A device that is open. A subclass has WebGPU's own calls, whose names begin with `_raw`."""

    def __init__(self, info, features, limits, nanoseconds_per_tick=1.0):
        self.info, self.features, self.limits = info, frozenset(features), limits
        self.timed_by = "timestamps" if "timestamps" in features else "clock"
        self._lock = threading.RLock()
        self._pipelines = {}  # (text, bindings) -> Pipeline
        self._layouts = {}  # bindings -> layout of their bind groups
        self._groups = {}  # (bindings, what is bound) -> bind group
        self._encoder = self._pass = None  # what records the work that is not submitted yet
        self._held = []  # buffers of that work: they must not be freed before it is submitted
        self._ring = self._raw_buffer(RING, UNIFORM | COPY_TARGET)
        self._params, self._used = bytearray(RING), 0  # what is to be written to the ring
        self._timing = self._stamped = False
        self._nanoseconds_per_tick = nanoseconds_per_tick
        if self.timed_by == "timestamps":
            self._queries = self._raw_queries(2)
            self._ticks = self._raw_buffer(16, QUERIES | COPY_SOURCE)

    def __repr__(self):
        return f"<WebGPU device {self.info.name} through {self.info.backend}>"

    @contextmanager
    def _call(self):
        """One call at a time, with the device's errors as ours."""
        with self._lock, self._errors():
            yield

    # memory

    def buffer(self, nbytes):
        """A new Buffer of at least so many bytes."""
        size = max(16, -(-nbytes // 16) * 16)
        if size > self.limits.buffer_bytes:
            largest = self.limits.buffer_bytes
            raise OutOfMemory(f"an array of {size:,} bytes: {self.info.name} has arrays of at most {largest:,} bytes")
        with self._call():
            return Buffer(self._raw_buffer(size, STORAGE | COPY_SOURCE | COPY_TARGET), size)

    def write(self, buffer, offset, data):
        """Copy the bytes of host memory to a buffer."""
        data = memoryview(data).cast("B")
        _check_words(offset, data.nbytes)
        if data.nbytes:
            with self._call():
                self._flush()
                self._raw_write(buffer.raw, offset, data)

    def read(self, buffer, offset, nbytes):
        """Bytes of a buffer, after all work until now."""
        _check_words(offset, nbytes)
        if not nbytes:
            return b""
        self.flush()
        with self._errors():  # other threads go on
            return self._raw_read(buffer.raw, offset, nbytes)

    def copy(self, source, source_offset, target, target_offset, nbytes):
        """Copy from a buffer to a buffer; also inside one, where the ranges may overlap."""
        _check_words(source_offset, target_offset, nbytes)
        if not nbytes:
            return
        if source is target:  # WebGPU refuses it
            between = self.buffer(nbytes)
            self.copy(source, source_offset, between, 0, nbytes)
            source, source_offset = between, 0
        with self._call():
            self._raw_copy(self._recording(), source.raw, source_offset, target.raw, target_offset, nbytes)
            self._held += source, target

    def clear(self, buffer, offset, nbytes):
        """Set bytes of a buffer to 0."""
        _check_words(offset, nbytes)
        if nbytes:
            with self._call():
                self._raw_clear(self._recording(), buffer.raw, offset, nbytes)
                self._held.append(buffer)

    # kernels

    def pipeline(self, text, bindings, name=""):
        """The Pipeline of a kernel in WGSL, whose function is `main`; compiled once.

        bindings: what the bindings 0, 1, ... of group 0 are: "uniform", the parameters, comes first, then "read" or
        "read_write" for each buffer. The text need not use all of them, and has no `enable`.
        """
        key = text, tuple(bindings)
        with self._call():
            if key not in self._pipelines:
                if key[1] not in self._layouts:
                    self._layouts[key[1]] = self._raw_layout(key[1])
                raw = self._raw_pipeline(text, self._layouts[key[1]], name)
                self._pipelines[key] = Pipeline(raw, key[1])
            return self._pipelines[key]

    def dispatch(self, pipeline, blocks, params, buffers):
        """Launch a kernel; does not wait.

        blocks: block number `group.y * WIDTH + group.x`; the last row has more blocks than these, which must do nothing.
        params: bytes of the uniform. buffers: (Buffer, offset, size) for each binding after it.
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
            if self._used + size > RING:
                self._flush()
            group = self._group(pipeline.bindings, size, buffers)
            if self._pass is None:
                self._pass = self._raw_begin_pass(self._recording(), self._stamps())
            self._raw_dispatch(self._pass, pipeline.raw, group, self._used, min(blocks, WIDTH), rows)
            self._held += [buffer for buffer, _, _ in buffers]
            self._params[self._used : self._used + len(params)] = params
            self._used += size

    def _group(self, bindings, size, buffers):
        """The bind group of the ring's next `size` bytes and these buffers."""
        key = bindings, size, tuple((buffer.number, offset, nbytes) for buffer, offset, nbytes in buffers)
        if key not in self._groups:
            if len(self._groups) >= GROUPS:
                self._groups.clear()
            bound = [(self._ring, 0, size), *((buffer.raw, offset, nbytes) for buffer, offset, nbytes in buffers)]
            self._groups[key] = self._raw_group(self._layouts[bindings], bound)
        return self._groups[key]

    # order

    def _recording(self):
        """The encoder of commands, outside a pass."""
        self._end_pass()
        if self._encoder is None:
            self._encoder = self._raw_encoder()
        return self._encoder

    def _end_pass(self):
        if self._pass is not None:
            ended, self._pass = self._pass, None
            ended.end()

    def _flush(self):
        self._end_pass()
        if self._encoder is None:
            return
        encoder, self._encoder = self._encoder, None
        used, self._used = self._used, 0
        held, self._held = self._held, []
        if used:
            self._raw_write(self._ring, 0, memoryview(self._params)[:used])
        self._raw_submit(encoder)
        held.clear()

    def flush(self):
        """Submit all work until now; does not wait."""
        with self._call():
            self._flush()

    def synchronize(self):
        """Wait until all work is done."""
        self.flush()
        with self._errors():
            self._raw_wait()

    # timing

    def start_timing(self):
        """Begin to time: one measurement at a time."""
        if self.timed_by == "clock":
            self.synchronize()
            self._began = time.perf_counter_ns()
            return
        with self._call():
            self._end_pass()
            self._timing, self._stamped = True, False

    def stop_timing(self):
        """Nanoseconds from the start of the first dispatch since `start_timing` to the end of the last one."""
        if self.timed_by == "clock":
            self.synchronize()
            return time.perf_counter_ns() - self._began
        with self._call():
            self._timing = False
            if not self._stamped:
                return 0
            self._raw_resolve(self._recording(), self._queries, 2, self._ticks)
            self._flush()
        with self._errors():
            begin, end = struct.unpack("<QQ", self._raw_read(self._ticks, 0, 16))
        return round((end - begin) * self._nanoseconds_per_tick)

    def _stamps(self):
        """Which queries the next pass writes at its begin and end; each pass that is timed writes the last one again."""
        if not self._timing:
            return None
        first, self._stamped = not self._stamped, True
        return (self._queries, 0 if first else None, 1)


def _check_words(*numbers):
    if any(number % 4 for number in numbers):
        raise ValueError(f"offsets and sizes are multiples of 4 bytes, not {numbers}")


# ------------------------------------------------------------------------------------------------- subgroups, tried out

PROBE = """
@group(0) @binding(1) var<storage, read_write> found: array<u32>;
@compute @workgroup_size(THREADS)
fn main(@builtin(local_invocation_index) thread: u32, @builtin(subgroup_size) size: u32,
        @builtin(subgroup_invocation_id) lane: u32) {
    found[thread] = select(0u, 1u, size == 32u && lane == thread % 32u);
}
"""


def has_subgroups_of_32(device):
    """Whether the subgroups of a device are CUDA's warps: 32 threads in the order of their numbers."""
    for threads in (32, 96, 256):
        pipeline = device.pipeline(PROBE.replace("THREADS", str(threads)), ("uniform", "read_write"), "probe")
        found = device.buffer(4 * threads)
        device.dispatch(pipeline, 1, b"", [(found, 0, found.nbytes)])
        if any(each != 1 for each in struct.unpack(f"<{threads}I", device.read(found, 0, 4 * threads))):
            return False
    return True
