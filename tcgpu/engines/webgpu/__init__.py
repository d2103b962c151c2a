"""The engine "webgpu": kernels on any GPU, by WebGPU; natively through the package wgpu, and in a browser.

device      finds the devices, opens one, and says what it can do
wgpu_native a device through the package wgpu: Vulkan, Metal or Direct3D 12
browser     a device of the browser that Python runs in
"""
