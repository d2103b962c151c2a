"""What runs code: kernels on a GPU or in the simulator, compiled functions on the CPU.

choice             which engine this process has for kernels, "gpu" or "sim"
kernel_language    the names that kernels are written in
runtime            launches, arrays, streams and timing, on either engine
simulator          a kernel run as Python, one thread after the other
kernel_compiler    from a kernel to machine code for a GPU, kept on disk
cuda_driver        the calls of CUDA's driver
staging            large arrays on their way to a GPU and back, by pinned memory
native             functions compiled for the CPU, run on all cores
code_cache         where Numba keeps what it compiles for the CPU
worker_process     how a process of a pool starts
forking            locks that are free in a forked child
"""
