"""Raw edges in host memory that are counted through limited memory of a GPU, which cleans them in pieces.

A row for each way to count a graph500 graph, from two arrays of raw edges on the host to the count:

    no limit       all edges are copied to the device, cleaned there and counted by `adaptive`
    4 GB, ...      with `device_memory=`, by `warp_search`
    4 GB, host     the same if the host cleans the edges, as it does if they are few

    process_ms     from the call to the count
    peak_bytes     the most device memory, with what CuPy's pool keeps for the next array

    python benchmarks/pieces.py [--scale 25] [--repeats 5] [--into FOLDER]

Written to pieces-GPU.csv in the folder. Without a GPU, the simulator counts a small graph, to test this script.
"""

import argparse
import statistics
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from unittest import mock

import gpu
from large import EDGE_FACTOR, draw

from tcgpu import api, measurement, records
from tcgpu.distributed import stream
from tcgpu.engines import runtime
from tcgpu.kernels import columns_in_pieces

GB = 10**9
LIMITS = 4 * GB, 3 * GB, 2 * GB  # bytes
SMALL = 6  # the scale for the simulator
SHOWN = "graph", "way", "triangles", "process_ms", "process_ms_spread", "peak_bytes"


def measured(scale, limits, repeats):
    """The rows of one graph."""
    u, v = map(runtime.to_host, draw(scale))
    ways = {"no limit": (None, False)}
    ways |= {f"{limit / GB:g} GB": (limit, False) for limit in limits}
    ways |= {f"{limits[0] / GB:g} GB, host": (limits[0], True)}
    found = set()
    for way, (limit, by_host) in ways.items():
        with mock.patch.object(stream, "MANY_EDGES", 1 << 62 if by_host else 0):
            times = gpu.by_clock(lambda limit=limit: found.add(api.count((u, v), device_memory=limit)), repeats)
            with peak_memory() as peaks:
                found.add(api.count((u, v), device_memory=limit))
        if len(found) > 1:
            raise SystemExit(f"the counts differ: {', '.join(f'{count:,}' for count in sorted(found))}")
        yield {
            "graph": f"graph500-scale{scale}-ef16", "vertices": 1 << scale, "records": EDGE_FACTOR << scale, "way": way,
            "engine": runtime.engine(), "limit_bytes": limit or "", "triangles": min(found), "repeats": repeats,
            "process_ms": round(statistics.median(times), 2),
            "process_ms_spread": round(max(times) - min(times), 2), "peak_bytes": max(peaks) - peaks[0],
        }  # fmt: skip


@contextmanager
def peak_memory():
    """A list of how many bytes CuPy's pool has: at the start, whenever it is emptied, and at the end."""
    release = runtime.release_device_memory
    release()
    sizes = [pool_bytes()]
    with mock.patch.object(runtime.current(), "release_device_memory", lambda: sizes.append(pool_bytes()) or release()):
        yield sizes
    sizes.append(pool_bytes())


def pool_bytes():
    """The bytes that CuPy's pool has; the simulator has none."""
    return import_module("cupy").get_default_memory_pool().total_bytes() if runtime.engine() == "gpu" else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--scale", type=int, default=25)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--into", metavar="FOLDER", help="where the record goes")
    arguments = parser.parse_args()
    machine, rows, simulated = measurement.machine(runtime.ENGINE), records.Rows(), runtime.ENGINE == "sim"
    if simulated:
        columns_in_pieces.LEAST_PIECE = 1
    for row in measured(SMALL if simulated else arguments.scale, LIMITS, arguments.repeats):
        rows.append(row | machine)
        print(*(row[name] for name in SHOWN), flush=True)
    if arguments.into:
        rows.write_csv(Path(arguments.into, records.record_path("pieces", rows).name))


if __name__ == "__main__":
    main()
