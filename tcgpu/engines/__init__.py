"""What runs code: kernels on a GPU or in the simulator, compiled functions on the CPU.

choice             which engine this process has for kernels, "gpu" or "sim"
kernel_language    the names that kernels are written in, and signatures
runtime            launches, arrays, streams and timing: the door to the engines
sim, gpu, webgpu   the engines; with facts, the properties of a device
simulator          runs a kernel as Python, one thread after the other
kernel_compiler    from a kernel to machine code for a GPU, kept on disk
cuda_driver        launches by CUDA's driver
staging            copies of large arrays to and from a GPU, through pinned memory
native             functions for the CPU: compiled, run on all cores; or interpreted, without Numba
meaning            a digest of a function and all that it reaches
code_cache         where Numba keeps what it compiles for the CPU
cache_folder       where compiled code and downloads are kept
forking            locks that are free in a forked child
"""
