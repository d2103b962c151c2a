"""A graph in a folder is never loaded whole: a process counts it with less memory than the graph takes."""

import json
import subprocess
import sys

import numpy as np
import pytest
from sampling import share

NEAR = 8  # vertex j is a neighbour of j + 1 to j + NEAR
VERTICES = 1_500_000

# Private memory that can be written to is limited from here on; mapped files that are only read do not count.
COUNT = """
import mmap, resource, sys, threading
mmap.ACCESS_COPY = mmap.ACCESS_READ  # as where the system has too little memory to promise copies of all pages
import numpy as np, tcgpu
small, large, memory, margin = sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4])
tcgpu.count(small, engine="cpu", device_memory="300kB")  # compiles, starts threads
status = lambda key: next(int(line.split()[1]) << 10 for line in open("/proc/self/status") if line.startswith(key))
anonymous, peak, done = status("RssAnon"), [0], threading.Event()
def watch():
    while not done.wait(0.005):
        peak[0] = max(peak[0], status("RssAnon"))
watcher = threading.Thread(target=watch)
watcher.start()
resource.setrlimit(resource.RLIMIT_DATA, (status("VmData") + margin, resource.RLIM_INFINITY))
graph = tcgpu.read(large) if memory.endswith("read") else large
found = tcgpu.count(graph, engine="cpu", device_memory=memory.removesuffix("read"))
try:
    np.array(tcgpu.read(large).row_idx)
    loads = True
except MemoryError:
    loads = False
done.set()
watcher.join()
print(found, max(peak[0], anonymous) - anonymous, loads)
"""


def write_band(folder, n):
    """Write the graph of a band matrix without a Graph; returns its triangles and bytes."""
    folder.mkdir()
    length = np.minimum(NEAR, n - 1 - np.arange(n))
    col_ptr = np.concatenate(([0], np.cumsum(length)))
    rows = np.arange(n, dtype=np.int32)[:, None] + np.arange(1, NEAR + 1, dtype=np.int32)
    row_idx = rows[rows < n]
    np.save(folder / "col_ptr.npy", col_ptr)
    np.save(folder / "row_idx.npy", row_idx)
    (folder / "graph.json").write_text(json.dumps({"vertices": n, "edges": row_idx.size}))
    return int((length * (length - 1) // 2).sum()), col_ptr.nbytes + row_idx.nbytes


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a process's anonymous memory, and limits it")
@pytest.mark.parametrize("memory", share(["10MB", "1GB", "10MBread"], "memory"))
def test_a_folder_larger_than_memory(tmp_path, memory):
    write_band(tmp_path / "small", 20_000)
    triangles, size = write_band(tmp_path / "large", VERTICES)
    margin = 32 << 20
    assert size > 1.5 * margin
    command = [sys.executable, "-c", COUNT, tmp_path / "small", tmp_path / "large", memory, str(margin)]
    ran = subprocess.run(command, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    found, peak, loads = ran.stdout.split()
    assert int(found) == triangles and loads == "False" and int(peak) < margin
