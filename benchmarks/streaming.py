"""The cost of counting a graph on a GPU whose memory is smaller than the graph: columns are copied there in turn.

A row a graph and way to count it, all from columns by degree in host memory:

    in memory   all on the device, by `adaptive` and by `warp_search`, the kernel that streaming has
    streamed    through limited device memory, in percent of the graph's size there: `col_ptr`, `row_idx`, `col_of`
    mapped      the same with the graph in a folder that is mapped into memory

    process_ms      from the call to the count
    to_memory       process_ms over that of the same kernel in memory
    to_default      process_ms over that of `adaptive` in memory
    copies_ms, kernels_ms, whole_ms     by the device's events
    hidden          the share of the copies' time in which kernels ran
    device_bytes    memory allocated on the device
    host_bytes      the largest growth of the process's anonymous memory (not mapped from a file) during the count

    python benchmarks/streaming.py [--graph NAME ...] [--repeats 5] [--into FOLDER]

Written to streaming-GPU.csv in the folder; the start and end of each copy and kernel, for one limit, to
overlap-GPU.csv. Without a GPU, the simulator counts a small graph, to test this script.
"""

import argparse
import re
import statistics
import sys
import tempfile
import threading
from pathlib import Path
from unittest import mock

import gpu
import numpy as np

from tcgpu import api, formats, generate, measurement, records
from tcgpu.distributed import device_parts
from tcgpu.distributed.stream import Streaming
from tcgpu.engines import runtime
from tcgpu.graph import Graph

sys.path.append(str(Path(__file__).resolve().parents[1] / "notebooks"))
from helpers.measured import Overlap

GRAPHS = {"rmat20": gpu.GRAPHS["rmat20"], "rmat22": gpu.GRAPHS["rmat22"]}
SMALL = {"rmat9": lambda: generate.edges("rmat", 9, 4)}  # for the simulator
SHARES = (1 / 20, 1 / 10, 1 / 5, 1 / 2, 1.25)  # of the graph: what the device may hold of it
MAPPED = 1 / 10  # the share of the graph in a folder, and of the one whose copies and kernels are written down
KERNEL = "warp_search"
SHOWN = ("way", "method", "share", "parts", "process_ms", "to_memory", "to_default", "hidden", "host_bytes")


def measured(name, graph, folder, repeats, lanes):
    """The rows of a graph that has been ordered; `lanes` gets the copies and kernels of one of them."""
    size = graph.nbytes + graph.col_of.nbytes
    about = {"graph": name, "vertices": graph.n, "edges": graph.m, "order": graph.order, "graph_bytes": size,
             "engine": runtime.engine(), "repeats": repeats}  # fmt: skip
    default, kernel = (in_memory(graph, method, repeats) for method in ("adaptive", KERNEL))
    for row in (default, kernel):
        yield about | row | ratios(row, default, kernel)
    formats.write(graph, folder, "folder")
    for share in SHARES:
        row, overlap = streamed(graph, int(share * size), repeats)
        row |= {"way": f"streamed, {share:.0%}", "share": round(share, 4)}
        yield about | row | ratios(row, default, kernel)
        if share == MAPPED:
            lanes += [{"graph": name, "engine": about["engine"], "share": share} | each for each in in_turn(overlap)]
    row, _ = streamed(formats.open_folder(folder), int(MAPPED * size), repeats)
    row |= {"way": f"mapped, {MAPPED:.0%}", "share": MAPPED}
    yield about | row | ratios(row, default, kernel)


def in_memory(graph, method, repeats):
    """A row of counts with all of the graph on the device, in the order that it has."""
    found = set()
    process = gpu.by_clock(lambda: found.add(api.count(graph, method, order="natural")), repeats)
    return {"way": "in memory", "method": method, "triangles": only(found)} | spread(process)


def streamed(graph, limit, repeats):
    """A row of counts in no more than `limit` bytes of the device, and the Overlap of one more."""
    found, streaming = set(), Streaming(graph, limit)
    process = gpu.by_clock(lambda: found.add(Streaming(graph, limit).count()), repeats)
    with HostMemory() as memory, Timeline() as timeline:
        found.add(streaming.count())
    overlap = timeline.overlap()
    row = {
        "method": KERNEL,
        "limit_bytes": limit,
        "parts": sum(not part.empty for part in streaming.layout.parts),
        "triangles": only(found),
        "copies_ms": round(overlap.copies_ms, 3),
        "kernels_ms": round(overlap.kernels_ms, 3),
        "whole_ms": round(overlap.whole_ms, 3),
        "hidden": round(overlap.hidden, 3),
        "device_bytes": streaming.layout.device_bytes,
        "host_bytes": memory.grown,
    }
    return row | spread(process), overlap


class Timeline:
    """A context manager: while it is active, the device times each copy to it and each kernel that counts a part."""

    def __enter__(self):
        self.copies, self.kernels = [], []
        copy_in = self._timed(runtime.current().Stream.copy_in, self.copies, lambda *args, **named: args[0])
        launch = self._timed(device_parts.launch_count, self.kernels, lambda *args, **named: named["stream"])
        self._patches = (
            mock.patch.object(runtime.current().Stream, "copy_in", copy_in),
            mock.patch.object(device_parts, "launch_count", launch),
        )
        for patch in self._patches:
            patch.start()
        return self

    def __exit__(self, *failure):
        for patch in self._patches:
            patch.stop()

    @staticmethod
    def _timed(work, events, stream_of):
        """`work` between two events of its stream."""

        def timed(*args, **named):
            begin = stream_of(*args, **named).event(timing=True)
            work(*args, **named)
            events.append((begin, stream_of(*args, **named).event(timing=True)))

        return timed

    def overlap(self):
        """The times of copies and kernels, from the first copy on."""
        first = self.copies[0][0] if self.copies else None
        return Overlap(*(
            np.array([[event.ms_since(first) for event in events] for events in each]).reshape(-1, 2)
            for each in (self.copies, self.kernels)
        ))  # fmt: skip


def in_turn(overlap):
    """A row for each copy and each kernel: its start and end."""
    for what in ("copies", "kernels"):
        for begin, end in getattr(overlap, what):
            yield {"what": what, "begin_ms": round(begin, 4), "end_ms": round(end, 4)}


def only(found):
    """The count of all runs."""
    (count,) = found
    return count


def spread(ms):
    return {"process_ms": round(statistics.median(ms), 3), "process_ms_spread": round(max(ms) - min(ms), 3)}


def ratios(row, default, kernel):
    return {
        "to_memory": round(row["process_ms"] / kernel["process_ms"], 3),
        "to_default": round(row["process_ms"] / default["process_ms"], 3),
    }


class HostMemory:
    """A context manager: the largest growth of this process's anonymous memory, read every few milliseconds."""

    def __enter__(self):
        self._begin = self._most = anonymous()
        self._over = threading.Event()
        self._looks = threading.Thread(target=self._look)
        self._looks.start()
        return self

    def _look(self):
        while not self._over.wait(0.002):
            self._most = max(self._most, anonymous())

    def __exit__(self, *failure):
        self._over.set()
        self._looks.join()

    @property
    def grown(self):
        return self._most - self._begin


def anonymous():
    """Bytes of this process's anonymous memory, as Linux counts them."""
    return int(re.search(r"RssAnon:\s*(\d+) kB", Path("/proc/self/status").read_text())[1]) << 10


def check(rows):
    """SystemExit if not all rows of a graph have the same count."""
    for graph in {row["graph"] for row in rows}:
        if len(found := {row["triangles"] for row in rows if row["graph"] == graph}) > 1:
            raise SystemExit(f"the counts of {graph} differ: {', '.join(f'{count:,}' for count in sorted(found))}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--graph", action="append", metavar="NAME", help="part of a graph's name; may be repeated")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--into", metavar="FOLDER", help="where the record goes")
    arguments = parser.parse_args()
    machine, rows, lanes = measurement.machine(runtime.ENGINE), records.Rows(), records.Rows()
    for name, edges in (GRAPHS if runtime.ENGINE == "gpu" else SMALL).items():
        if arguments.graph and not any(part in name for part in arguments.graph):
            continue
        graph = Graph.from_edges(*edges()).ordered("degree")
        with tempfile.TemporaryDirectory() as folder:
            for row in measured(name, graph, Path(folder, "graph"), arguments.repeats, lanes):
                rows.append(row | machine)
                print(", ".join(f"{key} {row[key]}" for key in SHOWN if key in row), flush=True)
        check(rows)
        if arguments.into:
            where = {key: machine[key] for key in ("gpu_name", "date", "tcgpu") if key in machine}
            for what, record in {"streaming": rows, "overlap": records.Rows(lane | where for lane in lanes)}.items():
                record.write_csv(Path(arguments.into, records.record_path(what, rows).name))


if __name__ == "__main__":
    main()
