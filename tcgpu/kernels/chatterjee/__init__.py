"""The kernels of Chatterjee et al.: the levels of a breadth-first search (`breadth`), and every combination of vertices
of two adjacent levels, tested by its index (`levels`)."""
