"""Take a sparse matrix from SciPy, and give one back."""

import numpy as np
from scipy.sparse import csr_array

import tcgpu

dense = np.ones((5, 5), np.int8)
matrix = csr_array(dense)
print(tcgpu.count(matrix))  # prints 10
graph = tcgpu.Graph.from_scipy(matrix)
lower = graph.lower()
print(((lower.T @ lower) * lower).sum(), graph.to_scipy().nnz)  # prints 10 20
