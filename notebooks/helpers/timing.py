"""How long calls of tcgpu take on this machine."""

from timeit import repeat

from tcgpu.engines.choice import NUMBA


def print_times(calls, names, runs=3):
    """Print the shortest of some runs of each call, in milliseconds. names: what the calls' names mean."""
    if not NUMBA:
        print("Without Numba, as in a browser, nothing is compiled: there are no times that tell anything.")
        return
    for call in calls:
        took = min(repeat(f"tcgpu.{call}", repeat=runs, number=1, globals=names))
        print(f"{call:{max(map(len, calls))}} {1000 * took:6.1f} ms")
