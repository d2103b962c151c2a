"""The method of Chatterjee et al.: chunks of two adjacent levels (`chunks`), the breadth-first search that finds levels
(`breadth`), and the kernels that test every combination of three vertices of a chunk by its index (`levels`), or of up
to five for other subgraphs than triangles (`combinations`)."""
