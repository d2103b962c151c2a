"""A WebGPU device of the browser that Python runs in: Pyodide, in a worker, which may wait for promises."""

from contextlib import contextmanager
from functools import cache

import js
from pyodide.ffi import JsException, can_run_sync, create_proxy, run_sync, to_js

from tcgpu.engines.facts import OutOfMemory
from tcgpu.engines.webgpu import device as common
from tcgpu.errors import EngineError, KernelError

NO_ADAPTER = "this browser has WebGPU, but no GPU for it: see its page about graphics, and whether acceleration is on"


def missing():
    """Why there is no WebGPU, in a sentence; None if the browser has it."""
    if not getattr(js.navigator, "gpu", None):
        return "this browser has no WebGPU, or not for a page without https: take a new Chrome, Edge, Firefox or Safari"
    if not hasattr(js.WebAssembly, "Suspending"):
        return "Python cannot wait for WebGPU in this browser, which lacks JSPI: take a new Chrome or Edge"
    return None


def adapters():
    """Pairs: what DeviceInfo says of an adapter, but for its number, and the adapter."""
    adapter = _waited(js.navigator.gpu.requestAdapter(_object({"power_preference": "high-performance"})))
    return [(_facts(adapter.info), adapter)] if adapter else []


def _facts(info):
    return {
        "name": info.description or info.device or f"{info.vendor} {info.architecture}".strip(),
        "vendor": info.vendor,
        "backend": "browser",
        "kind": "software" if info.isFallbackAdapter else "other",
        "driver": "",
    }


def _waited(promise):
    """What a promise becomes."""
    if not can_run_sync():
        raise EngineError("Python cannot wait for the GPU in a callback of the browser: start an asyncio task there")
    try:
        return run_sync(promise)
    except JsException as error:
        raise EngineError(f"WebGPU: {error.message}") from None


class Named:
    """An object of JavaScript under the package wgpu's names: `create_buffer(size=4)` is `createBuffer({size: 4})`."""

    def __init__(self, proxy):
        self.proxy = proxy

    def __getattr__(self, name):
        found = getattr(self.proxy, _camel(name))
        return found if isinstance(found, (int, float)) else Named(found)

    def __call__(self, *args, **described):
        given = [*args, described] if described else args
        return Named(self.proxy(*map(_object, given)))

    __getitem__ = __getattr__


@cache
def _camel(name):
    first, *others = name.replace("-", "_").split("_")
    return first + "".join(map(str.capitalize, others))


def _object(value):
    return value if isinstance(value, int) else to_js(_unnamed(value), dict_converter=js.Object.fromEntries)


def _unnamed(value):
    if isinstance(value, Named):
        return value.proxy
    if isinstance(value, dict):
        return {_camel(name): _unnamed(each) for name, each in value.items()}
    return [_unnamed(each) for each in value] if isinstance(value, list) else value


class Device(common.Device):
    """See `device.Device`."""

    def __init__(self, info, adapter):
        features = {"timestamps"} if adapter.features.has("timestamp-query") else set()
        names = ["timestamp-query"] if features else []
        limits = {name: getattr(adapter.limits, name) for name in dir(adapter.limits) if name.startswith("max")}
        wanted = _object({"required_features": names, "required_limits": limits})
        proxy = _waited(adapter.requestDevice(wanted))
        self._problems, self._lost = [], []  # errors that the browser reported
        proxy.addEventListener("uncapturederror", create_proxy(lambda event: self._problems.append(event.error)))
        proxy.lost.then(create_proxy(self._lost.append))
        super().__init__(info, Named(proxy), features)

    @contextmanager
    def _errors(self):
        """Raise what the browser reported; it does when something waits for it."""
        try:
            yield
        except JsException as error:
            raise EngineError(f"{self.info.name}: {error.message}") from None
        if self._lost:
            raise EngineError(f"{self.info.name} was lost: {self._lost[0].message}")
        if self._problems:
            error, *_ = self._problems
            self._problems.clear()
            self._raise(error)

    def _raise(self, error):
        if "OutOfMemory" in str(error.constructor.name):
            raise OutOfMemory(f"{self.info.name} has too little free memory")
        raise EngineError(f"{self.info.name}: {error.message}")

    def _new_buffer(self, size, *usage):
        if size <= common.PIECE_BYTES:  # to wait for an answer takes longer than all else; `_problems` has it later
            return super()._new_buffer(size, *usage)
        self.raw.push_error_scope("out-of-memory")
        made = super()._new_buffer(size, *usage)
        if error := _waited(self.raw.proxy.popErrorScope()):
            self._raise(error)
        return made

    def _compile(self, text, layout, name):
        self.raw.push_error_scope("validation")
        module = self.raw.create_shader_module(code=text, label=name)
        made = self._pipeline_of(module, layout, name)
        error, line = _waited(self.raw.proxy.popErrorScope()), ""
        if error:
            for message in _waited(module.proxy.getCompilationInfo()).messages:
                if message.type == "error":
                    number = message.lineNum
                    line = f": {message.message}\nline {number}: {text.splitlines()[number - 1].strip()}"
            raise KernelError(f"kernel {name} in WGSL: {error.message}{line}")
        return made

    def _map(self, raw, target):
        _waited(raw.proxy.mapAsync(common.MAP_READ, 0, target.nbytes))
        js.Uint8Array.new(raw.proxy.getMappedRange(0, target.nbytes)).assign_to(target)
        raw.unmap()

    def _wait(self):
        _waited(self.queue.proxy.onSubmittedWorkDone())
