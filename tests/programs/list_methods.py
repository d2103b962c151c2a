"""List the methods, their knobs, and what runs them."""

import tcgpu

methods = tcgpu.methods()
names = [method.name for method in methods]
print("naive" in names, len(names) == len(set(names)))  # prints True True
naive = methods[names.index("naive")]
print(naive.engines, naive.knobs["threads"])  # prints ('gpu', 'webgpu', 'sim') 512
print(str(methods).splitlines()[0].split())  # prints ['name', 'source', 'engines', 'order', 'knobs', 'summary']
