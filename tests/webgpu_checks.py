"""What a WebGPU device has to do, as functions that take one: tests run them natively and inside a browser.

Each function of CHECKS raises an AssertionError, or returns. Nothing here needs pytest.
"""

import struct

from tcgpu.engines.facts import OutOfMemory
from tcgpu.errors import EngineError, KernelError

HEAD = """
struct Params { blocks: u32, n: u32, value: u32, }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read_write> out: array<u32>;
"""
MAIN = """
@compute @workgroup_size(64)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) thread: u32) {
    let block = group.y * 32768u + group.x;
    if (block >= params.blocks) { return; }
    let k = block * 64u + thread;
"""
FILL = HEAD + MAIN + "if (k < params.n) { out[k] = params.value; } }"
ADD = HEAD + MAIN + "if (k < params.n) { out[k] += params.value; } }"
SUM = (HEAD + MAIN + "if (k < params.n) { atomicAdd(&out[0], params.value); } }").replace("<u32>;", "<atomic<u32>>;")
BLOCKS = SUM.replace("k < params.n", "thread == 0u")
ROUNDS = HEAD + MAIN + "for (var r = 0u; r < params.value; r++) { out[k] += 1u; } }"
REVERSE = (
    HEAD
    + "var<workgroup> kept: array<u32, 64>;"
    + MAIN.replace("if (block >= params.blocks) { return; }", "")
    + "kept[thread] = out[k]; workgroupBarrier(); out[k] = kept[63u - thread]; }"
)
ADD_OTHER = HEAD + "@group(0) @binding(2) var<storage, read> other: array<u32>;" + MAIN + "out[k] += other[k]; }"
MANY_PARAMS = """
struct Params { words: array<vec4<u32>, 40>, }
@group(0) @binding(0) var<uniform> params: Params;
@group(0) @binding(1) var<storage, read_write> out: array<u32>;
@compute @workgroup_size(1)
fn main() {
    for (var k = 0u; k < 160u; k++) { out[0] += params.words[k / 4u][k % 4u]; }
}
"""
ONE = "uniform", "read_write"


def words(data):
    return [*struct.unpack(f"<{len(data) // 4}I", data)]


def packed(numbers):
    return struct.pack(f"<{len(numbers)}I", *numbers)


def new(device, numbers):
    """A buffer that begins with these words."""
    buffer = device.buffer(4 * len(numbers))
    device.write(buffer, 0, packed(numbers))
    return buffer


def launch(device, text, n, value, buffer, offset=0, blocks=None):
    """Launch a kernel on the `n` words of a buffer from an offset on."""
    blocks = -(-n // 64) if blocks is None else blocks
    device.dispatch(
        device.pipeline(text, ONE), blocks, packed([blocks, n, value]), [(buffer, offset, buffer.nbytes - offset)]
    )


def raised(error, call, *args):
    """The message of the error that a call raises."""
    try:
        call(*args)
    except error as found:
        return str(found)
    raise AssertionError(f"no {error.__name__}")


def new_memory_is_zero(device):
    for nbytes in (0, 4, 1000, 1 << 20):
        buffer = device.buffer(nbytes)
        assert buffer.nbytes >= nbytes
        assert not any(device.read(buffer, 0, buffer.nbytes))


def what_is_written_is_read(device):
    buffer = new(device, range(100))
    device.write(buffer, 40, packed([7, 8]))
    assert words(device.read(buffer, 36, 16)) == [9, 7, 8, 12]
    assert device.read(buffer, 0, 0) == b""
    device.write(buffer, 0, b"")
    target = bytearray(8)
    device.read_into(buffer, 396, memoryview(target)[4:])
    assert words(target) == [0, 99]


def large_memory_is_copied_in_pieces(device):
    nbytes = (1 << 24) * 5 // 2
    data = bytes(range(256)) * (nbytes // 256)
    buffer = device.buffer(nbytes)
    device.write(buffer, 0, data)
    assert device.read(buffer, 0, nbytes) == data


def a_kernel_fills(device):
    buffer = device.buffer(4000)
    launch(device, FILL, 1000, 5, buffer)
    launch(device, FILL, 300, 6, buffer)
    assert words(device.read(buffer, 0, 4000)) == [6] * 300 + [5] * 700


def no_block_is_no_launch(device):
    buffer = new(device, [3] * 64)
    launch(device, FILL, 64, 5, buffer, blocks=0)
    assert words(device.read(buffer, 0, 256)) == [3] * 64


def threads_add_atomically(device):
    buffer = device.buffer(4)
    launch(device, SUM, 100_000, 3, buffer)
    assert words(device.read(buffer, 0, 4)) == [300_000]


def blocks_are_spread_over_two_dimensions(device):
    for blocks in (32_767, 32_768, 32_769, 70_000):
        buffer = device.buffer(4)
        launch(device, BLOCKS, 1, 1, buffer, blocks=blocks)
        assert words(device.read(buffer, 0, 4)) == [blocks]
    most = 32_768 * device.limits.blocks_per_dimension
    assert f"at most {most:,}" in raised(ValueError, lambda: launch(device, FILL, 1, 1, buffer, blocks=most + 1))


def a_block_shares_memory(device):
    buffer = new(device, range(256))
    launch(device, REVERSE, 256, 0, buffer)
    assert words(device.read(buffer, 0, 256)) == [*range(63, -1, -1)]
    assert words(device.read(buffer, 768, 256)) == [*range(255, 191, -1)]


def buffers_are_copied_and_cleared(device):
    source, target = new(device, range(64)), device.buffer(256)
    device.copy(source, 8, target, 16, 40)
    device.clear(target, 20, 8)
    device.copy(source, 0, target, 0, 0)
    device.clear(target, 0, 0)
    assert words(device.read(target, 0, 64)) == [0] * 4 + [2, 0, 0, *range(5, 12)] + [0] * 2
    device.copy(source, 0, source, 4, 100)  # the ranges overlap
    assert words(device.read(source, 0, 112)) == [0, *range(25), 26, 27]


def a_part_of_a_buffer_is_bound(device):
    buffer = new(device, [1] * 200)
    launch(device, ADD, 10, 4, buffer, offset=256)
    assert words(device.read(buffer, 0, 800)) == [1] * 64 + [5] * 10 + [1] * 126
    for offset in (4, 128):
        assert "multiple of 256" in raised(ValueError, lambda at=offset: launch(device, ADD, 10, 4, buffer, at))
    assert "multiples of 4" in raised(ValueError, device.write, buffer, 2, b"1234")
    assert "multiples of 4" in raised(ValueError, device.read, buffer, 0, 5)


def bindings_may_be_unused(device):
    buffer, other = device.buffer(256), device.buffer(4)
    pipeline = device.pipeline(FILL, ("uniform", "read_write", "read", "read_write"))
    bound = [(buffer, 0, 256), (other, 0, 4), (device.buffer(16), 0, 16)]
    device.dispatch(pipeline, 1, packed([1, 64, 9]), bound)
    assert words(device.read(buffer, 0, 256)) == [9] * 64


def a_text_is_compiled_once(device):
    assert device.pipeline(FILL, ONE) is device.pipeline(FILL, [*ONE])
    assert device.pipeline(FILL, ONE) is not device.pipeline(FILL, (*ONE, "read"))


def work_is_done_in_order(device):
    buffer, other = device.buffer(256), device.buffer(256)
    launch(device, FILL, 64, 1, buffer)
    device.copy(buffer, 0, other, 0, 256)
    launch(device, ADD, 64, 1, buffer)
    device.write(buffer, 0, packed([40]))
    launch(device, ADD, 64, 1, buffer)
    device.clear(buffer, 4, 4)
    launch(device, ADD, 64, 1, buffer)
    assert words(device.read(buffer, 0, 12)) == [42, 1, 4]
    assert words(device.read(other, 0, 8)) == [1, 1]


def thousands_of_launches(device):
    buffer = device.buffer(256)
    for k in range(3000):
        launch(device, ADD, 64, k, buffer)
    assert words(device.read(buffer, 0, 256)) == [3000 * 2999 // 2] * 64


def many_parameters(device):
    buffer = device.buffer(4)
    pipeline = device.pipeline(MANY_PARAMS, ONE)
    for first in range(300):
        device.dispatch(pipeline, 1, packed(range(first, first + 160)), [(buffer, 0, 4)])
    total = sum(sum(range(first, first + 160)) for first in range(300))
    assert words(device.read(buffer, 0, 4)) == [total % 2**32]


def memory_is_freed_after_its_use(device):
    total = device.buffer(256)
    pipeline = device.pipeline(ADD_OTHER, (*ONE, "read"))
    for k in range(300):
        part = device.buffer(4 << 20)
        launch(device, FILL, 64, k, part)
        device.dispatch(pipeline, 1, packed([1, 64, 0]), [(total, 0, 256), (part, 0, 256)])
        del part  # before anything was submitted
    assert words(device.read(total, 0, 8)) == [300 * 299 // 2] * 2


def long_loops_are_not_ended(device):
    buffer = device.buffer(256)
    launch(device, ROUNDS, 64, 200_000, buffer)
    assert words(device.read(buffer, 0, 256)) == [200_000] * 64


def longer_loops_take_longer(device):
    assert device.timed_by == ("timestamps" if "timestamps" in device.features else "clock")

    def timed(rounds, launches=1):
        device.start_timing()
        for _ in range(launches):
            launch(device, ROUNDS, 64, rounds, buffer)
            device.clear(buffer, 0, 4)  # so that each launch has a pass of its own
        return device.stop_timing()

    buffer = device.buffer(256)
    timed(1)
    assert 0 < timed(2000) < timed(400_000)
    assert timed(2000) < timed(20_000, 20)
    launch(device, ROUNDS, 64, 1, buffer)  # not timed
    if device.timed_by == "timestamps":
        assert timed(1, 0) == 0


def an_error_of_the_text_has_its_line(device):
    text = FILL.replace("out[k] = params.value", "\n  outt[k] = 1u")
    message = raised(KernelError, device.pipeline, text, ONE, "fill")
    assert "kernel fill" in message and "outt" in message
    number = text.splitlines().index("  outt[k] = 1u; } }") + 1
    assert f"line {number}: outt[k] = 1u; }} }}" in message
    large = FILL.replace("workgroup_size(64)", f"workgroup_size({2 * device.limits.threads_per_block})")
    assert str(2 * device.limits.threads_per_block) in raised(KernelError, device.pipeline, large, ONE, "large")


def errors_of_the_device_are_raised(device):
    buffer = device.buffer(256)

    def beyond():
        device.copy(buffer, 0, device.buffer(16), 0, 256)
        device.synchronize()

    def unbound():
        device.dispatch(device.pipeline(FILL, (*ONE, "read")), 1, packed([1, 64, 1]), [(buffer, 0, 256)])
        device.synchronize()

    for call in (beyond, unbound):
        assert device.info.name in raised(EngineError, call)
        a_kernel_fills(device)  # it still works


def too_much_memory(device):
    most = device.limits.buffer_bytes
    assert f"{most:,}" in raised(OutOfMemory, device.buffer, most + 16)
    a_kernel_fills(device)


CHECKS = [
    new_memory_is_zero,
    what_is_written_is_read,
    large_memory_is_copied_in_pieces,
    a_kernel_fills,
    no_block_is_no_launch,
    threads_add_atomically,
    blocks_are_spread_over_two_dimensions,
    a_block_shares_memory,
    buffers_are_copied_and_cleared,
    a_part_of_a_buffer_is_bound,
    bindings_may_be_unused,
    a_text_is_compiled_once,
    work_is_done_in_order,
    thousands_of_launches,
    many_parameters,
    memory_is_freed_after_its_use,
    long_loops_are_not_ended,
    longer_loops_take_longer,
    an_error_of_the_text_has_its_line,
    errors_of_the_device_are_raised,
    too_much_memory,
]
