"""Make graphs by the names of their generators."""

import tcgpu
from tcgpu import Graph

makers = tcgpu.generate.GENERATORS


def made(name: str, *sizes: int) -> Graph:
    """The graph of a generator, without a seed of ours."""
    return makers[name](*sizes)


print(made("star", 7).max_degree, made("cycle", 6).m)  # prints 6 6
print(
    [name for name in dir(tcgpu.generate) if name > "r"]
)  # prints ['random', 'rmat', 'road', 'star', 'watts_strogatz']
