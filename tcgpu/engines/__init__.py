"""What runs code: kernels on a GPU or in the simulator, compiled functions on the CPU; `runtime` is the door."""
