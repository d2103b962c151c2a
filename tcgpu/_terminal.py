"""What the command line shows: values, tables, signs of life."""

import json
import sys
import threading
import time
from contextlib import contextmanager

HEARTBEAT = 1.0  # seconds between signs of life


def print_json(value):
    print(json.dumps(value))


def print_table(rows, right=()):
    """Columns as wide as their widest entry; those whose positions are in `right` line up on that side."""
    widths = [max(map(len, column)) for column in zip(*rows)]
    sides = [str.rjust if k in right else str.ljust for k in range(len(widths))]
    for row in rows:
        print("  ".join(side(cell, width) for side, cell, width in zip(sides, row, widths)).rstrip())


@contextmanager
def progress(arguments, what):
    """Tell on stderr what goes on, and for how long already: to a person at a terminal, or with --progress."""
    at_terminal = sys.stderr.isatty()
    if not (at_terminal or arguments.progress):
        yield
        return
    begin, done = time.monotonic(), threading.Event()
    before, after = ("\r", "\033[K") if at_terminal else ("", "\n")

    def tell():
        print(f"{before}tcgpu: {what}, {time.monotonic() - begin:.0f} s", end=after, file=sys.stderr, flush=True)

    def keep_telling():
        while not done.wait(HEARTBEAT):
            tell()

    if arguments.progress:
        tell()
    teller = threading.Thread(target=keep_telling, daemon=True)
    teller.start()
    try:
        yield
    finally:
        done.set()
        teller.join()
        if at_terminal:
            print("\r\033[K", end="", file=sys.stderr, flush=True)
