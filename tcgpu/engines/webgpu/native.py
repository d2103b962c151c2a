"""A WebGPU device through the package wgpu, which brings wgpu-native: Vulkan, Metal or Direct3D 12."""

import importlib.util
import re
from contextlib import contextmanager

from tcgpu.engines.facts import OutOfMemory
from tcgpu.engines.webgpu import device as common
from tcgpu.errors import EngineError, KernelError

NO_ADAPTER = (
    "WebGPU finds no GPU here: install a driver for Vulkan (Debian: libvulkan1, and mesa-vulkan-drivers or NVIDIA's)"
)
BOUNDS_CHECKS = True  # an index beyond an array reads or writes another element of it, as in a browser
BACKENDS = {"Vulkan": "Vulkan", "Metal": "Metal", "D3D12": "D3D12"}  # wgpu's names -> ours
KINDS = {"DiscreteGPU": "discrete", "IntegratedGPU": "integrated", "CPU": "software"}
# wgpu's features -> ours
FEATURES = {
    "shader-int64": "int64",
    "shader-int64-atomic-all-ops": "int64-atomics",
    "timestamp-query": "timestamps",
    "subgroup": "subgroups",
}


def missing():
    """Why there is no WebGPU, in a sentence; None if the package is there."""
    if importlib.util.find_spec("wgpu") is None:
        return "WebGPU needs the package wgpu, which is not installed: pip install 'tcgpu[webgpu]'"
    return None


def adapters():
    """Pairs: what `DeviceInfo` says of an adapter, and the adapter."""
    import wgpu
    from wgpu.backends.wgpu_native import extras

    try:
        extras.set_instance_extras(backends=["Vulkan", "Metal", "DX12"])  # OpenGL takes half a second, and is not used
    except RuntimeError:
        pass  # something else in this process uses wgpu already
    return [
        (_facts(adapter.info), adapter)
        for adapter in wgpu.gpu.enumerate_adapters_sync()
        if adapter.info["backend_type"] in BACKENDS
    ]


def _facts(info):
    return {
        "name": info["device"],
        "vendor": info["vendor"],
        "backend": BACKENDS[info["backend_type"]],
        "kind": KINDS.get(info["adapter_type"], "other"),
        "driver": info["description"],
    }


class Device(common.Device):
    """See `device.Device`."""

    def __init__(self, info, adapter):
        from wgpu.backends.wgpu_native import _api

        self._api = _api
        wanted = [name for name in FEATURES if name in adapter.features]
        self._raw = adapter.request_device_sync(required_features=wanted)  # with all of the adapter's limits
        self._queue = self._raw.queue
        features = {FEATURES[name] for name in wanted}
        period = _api.libf.wgpuQueueGetTimestampPeriod(self._queue._internal)
        super().__init__(info, features - {"subgroups"}, _limits(self._raw.limits), period)
        if "subgroups" in features and self._subgroups_of(adapter) == (32, 32) and common.has_subgroups_of_32(self):
            self.features |= {"subgroups-of-32"}

    def _subgroups_of(self, adapter):
        """The smallest and largest size of a subgroup."""
        info = self._api.ffi.new("WGPUAdapterInfo *")
        self._api.libf.wgpuAdapterGetInfo(adapter._internal, info)
        sizes = info.subgroupMinSize, info.subgroupMaxSize
        self._api.libf.wgpuAdapterInfoFreeMembers(info[0])
        return sizes

    @contextmanager
    def _errors(self):
        import wgpu

        try:
            yield
        except wgpu.GPUError as error:
            # wgpu 0.32 calls this a validation error, too
            if isinstance(error, wgpu.GPUOutOfMemoryError) or "Not enough memory" in str(error):
                raise OutOfMemory(f"{self.info.name} has too little free memory") from None
            raise EngineError(f"{self.info.name}: {error}") from None

    def _raw_buffer(self, nbytes, usage):
        return self._raw.create_buffer(size=nbytes, usage=usage)

    def _raw_write(self, raw, offset, data):
        self._queue.write_buffer(raw, offset, data)

    def _raw_read(self, raw, offset, nbytes):
        return self._queue.read_buffer(raw, offset, nbytes)

    def _raw_layout(self, bindings):
        entries = [
            {
                "binding": number,
                "visibility": "COMPUTE",
                "buffer": {"type": common.ACCESS[access], "has_dynamic_offset": access == "uniform"},
            }
            for number, access in enumerate(bindings)
        ]
        return self._raw.create_bind_group_layout(entries=entries)

    def _raw_pipeline(self, text, layout, name):
        import wgpu

        try:
            module = self._module(text, name)
            return self._raw.create_compute_pipeline(
                label=name,
                layout=self._raw.create_pipeline_layout(bind_group_layouts=[layout]),
                compute={"module": module, "entry_point": "main"},
            )
        except wgpu.GPUError as error:
            place = re.search(r"wgsl:(\d+):", str(error))
            line = f"\nline {place[1]}: {text.splitlines()[int(place[1]) - 1].strip()}" if place else ""
            raise KernelError(f"kernel {name}, in WGSL: {error}{line}") from None

    def _module(self, text, name):
        """The shader's module, compiled without the counters that end long loops."""
        ffi, lib = self._api.ffi, self._api.lib
        code, label = ffi.new("char[]", text.encode()), ffi.new("char[]", name.encode())
        source = ffi.new("WGPUShaderSourceWGSL *")
        source.chain.sType = lib.WGPUSType_ShaderSourceWGSL
        source.code.data, source.code.length = code, len(text.encode())
        descriptor = ffi.new("WGPUShaderModuleDescriptor *")
        descriptor.nextInChain = ffi.cast("WGPUChainedStruct *", source)
        descriptor.label.data, descriptor.label.length = label, len(name.encode())
        checks = lib.WGPUShaderRuntimeChecks_BoundsChecks if BOUNDS_CHECKS else 0
        made = self._api.libf.wgpuDeviceCreateShaderModuleTrusted(self._raw._internal, descriptor, checks)
        return self._api.GPUShaderModule(name, made, self._raw)

    def _raw_group(self, layout, bound):
        entries = [
            {"binding": number, "resource": {"buffer": raw, "offset": offset, "size": nbytes}}
            for number, (raw, offset, nbytes) in enumerate(bound)
        ]
        return self._raw.create_bind_group(layout=layout, entries=entries)

    def _raw_encoder(self):
        return self._raw.create_command_encoder()

    def _raw_begin_pass(self, encoder, stamps):
        if stamps is None:
            return encoder.begin_compute_pass()
        queries, begin, end = stamps
        writes = {"query_set": queries, "end_of_pass_write_index": end}
        if begin is not None:
            writes["beginning_of_pass_write_index"] = begin
        return encoder.begin_compute_pass(timestamp_writes=writes)

    def _raw_dispatch(self, recording, pipeline, group, params_at, x, y):
        recording.set_pipeline(pipeline)
        recording.set_bind_group(0, group, [params_at])
        recording.dispatch_workgroups(x, y)

    def _raw_copy(self, encoder, *args):
        encoder.copy_buffer_to_buffer(*args)

    def _raw_clear(self, encoder, *args):
        encoder.clear_buffer(*args)

    def _raw_submit(self, encoder):
        self._queue.submit([encoder.finish()])

    def _raw_wait(self):
        self._api.libf.wgpuDevicePoll(self._raw._internal, True, self._api.ffi.NULL)

    def _raw_queries(self, number):
        return self._raw.create_query_set(type="timestamp", count=number)

    def _raw_resolve(self, encoder, queries, number, raw):
        encoder.resolve_query_set(queries, 0, number, raw, 0)


def _limits(limits):
    buffer_bytes = min(limits["max-buffer-size"], limits["max-storage-buffer-binding-size"])
    return common.Limits(
        threads_per_block=min(limits["max-compute-invocations-per-workgroup"], limits["max-compute-workgroup-size-x"]),
        shared_bytes=limits["max-compute-workgroup-storage-size"],
        buffer_bytes=buffer_bytes // common.ALIGNMENT * common.ALIGNMENT,
        buffers_per_kernel=limits["max-storage-buffers-per-shader-stage"],
        blocks_per_dimension=limits["max-compute-workgroups-per-dimension"],
    )
