"""A WebGPU device through the package wgpu, which brings wgpu-native: Vulkan, Metal or Direct3D 12."""

import importlib.util
import os
import re
import time
from contextlib import contextmanager, suppress

from tcgpu.engines.facts import OutOfMemory
from tcgpu.engines.webgpu import device as common
from tcgpu.errors import EngineError, KernelError
from tcgpu.progress import uninterrupted

NO_ADAPTER = (
    "WebGPU finds no GPU here: install a driver for Vulkan (Debian: libvulkan1, and mesa-vulkan-drivers or NVIDIA's)"
)
KINDS = {"DiscreteGPU": "discrete", "IntegratedGPU": "integrated", "CPU": "software"}
# wgpu's features -> ours
FEATURES = {
    "shader-int64": "int64",
    "shader-int64-atomic-all-ops": "int64-atomics",
    "timestamp-query": "timestamps",
    "subgroup": "subgroups",
    "subgroup-barrier": "subgroup-barriers",
}
WARPS = "NVIDIA", "Apple"  # their groups of threads are always 32; others choose for each kernel


def missing():
    """Why there is no WebGPU, in a sentence; None if the package is there."""
    if importlib.util.find_spec("wgpu") is None:
        return "WebGPU needs the package wgpu, which is not installed: pip install 'tcgpu[webgpu]'"
    return None


def adapters():
    """Pairs: what DeviceInfo says of an adapter, but for its number, and the adapter."""
    if "XDG_RUNTIME_DIR" not in os.environ:
        os.environ.setdefault("NODEVICE_SELECT", "1")  # Mesa's choice among GPUs complains where there is no screen
    import wgpu
    from wgpu.backends.wgpu_native import extras

    with suppress(RuntimeError):  # something else in this process uses wgpu already
        extras.set_instance_extras(backends=["Vulkan", "Metal", "DX12"])  # to look for OpenGL would take half a second
    found = wgpu.gpu.enumerate_adapters_sync()
    return [(_facts(each.info), each) for each in found if each.info["backend_type"] in common.BACKENDS]


def _facts(info):
    return {
        "name": info["device"],
        "vendor": info["vendor"],
        "backend": info["backend_type"],
        "kind": KINDS.get(info["adapter_type"], "other"),
        "driver": info["description"],
    }


class Device(common.Device):
    """See `device.Device`. What the package wgpu lacks is called in its C library."""

    def __init__(self, info, adapter):
        from wgpu.backends.wgpu_native import _api

        self._api = _api
        self._mapped = _api.ffi.callback("void(WGPUMapAsyncStatus, WGPUStringView, void *, void *)", lambda *_: None)
        names = [name for name in FEATURES if name in adapter.features]
        raw = adapter.request_device_sync(required_features=names)  # with all of the adapter's limits
        features = {FEATURES[name] for name in names}
        period = _api.libf.wgpuQueueGetTimestampPeriod(raw.queue._internal)
        super().__init__(info, raw, features - {"subgroups", "subgroup-barriers"}, period)
        if {"subgroups", "subgroup-barriers"} <= features and info.name.startswith(WARPS):
            self.features |= {"subgroups-of-32"} if common.has_subgroups_of_32(self) else set()
        if info.backend == "Vulkan" and info.name.startswith("NVIDIA"):  # PTX says it of bar.sync
            self.features |= {"ordered-barriers"}

    @contextmanager
    def _errors(self):
        import wgpu

        try:
            yield
        except wgpu.GPUError as error:
            # wgpu 0.32 calls it a validation error, too
            if isinstance(error, wgpu.GPUOutOfMemoryError) or "Not enough memory" in str(error):
                raise OutOfMemory(f"{self.info.name} has too little free memory") from None
            raise EngineError(f"{self.info.name}: {error}") from None

    def _compile(self, text, layout, name):
        import wgpu

        try:
            return self._pipeline_of(self._module(text, name), layout, name)
        except wgpu.GPUError as error:
            place = re.search(r"wgsl:(\d+):", str(error))
            line = f"\nline {place[1]}: {text.splitlines()[int(place[1]) - 1].strip()}" if place else ""
            raise KernelError(f"kernel {name} in WGSL: {error}{line}") from None

    def _module(self, text, name):
        """The module of a text, compiled without counters in its loops: they would end long ones."""
        api = self._api
        source = api.new_struct_p("WGPUShaderSourceWGSL *", code=api.to_c_string_view(text))
        source.chain.sType = api.lib.WGPUSType_ShaderSourceWGSL
        chain = api.ffi.addressof(source, "chain")
        described = api.new_struct_p(
            "WGPUShaderModuleDescriptor *", nextInChain=chain, label=api.to_c_string_view(name)
        )
        checks = api.lib.WGPUShaderRuntimeChecks_BoundsChecks  # an index beyond an array stays inside, as in a browser
        made = api.libf.wgpuDeviceCreateShaderModuleTrusted(self.raw._internal, described, checks)
        return api.GPUShaderModule(name, made, self.raw)

    def _map(self, raw, target):
        api = self._api  # the package's own function has a thread wait, which takes twice as long
        callback = api.new_struct(
            "WGPUBufferMapCallbackInfo", mode=api.lib.WGPUCallbackMode_AllowProcessEvents, callback=self._mapped
        )
        api.libf.wgpuBufferMapAsync(raw._internal, common.MAP_READ, 0, target.nbytes, callback)
        self._wait()
        found = api.libf.wgpuBufferGetConstMappedRange(raw._internal, 0, target.nbytes)
        if not found:
            raise EngineError(f"{self.info.name} was lost")
        target[:] = api.ffi.buffer(found, target.nbytes)
        api.libf.wgpuBufferUnmap(raw._internal)

    def _wait(self):
        """Wait in Python, so that Ctrl-C ends it; the package's own function does not work."""
        began = time.perf_counter()
        while True:
            with uninterrupted():  # or what it calls back may be lost
                found = self._api.libf.wgpuDevicePoll(self.raw._internal, False, self._api.ffi.NULL)
            if found & 1:  # it is a bool of one byte: what the other bytes are does not count
                return
            waited = time.perf_counter() - began
            if waited > 5e-5:
                time.sleep(min(waited / 8, 1e-3))
