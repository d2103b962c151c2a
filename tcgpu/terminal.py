"""What the command line shows: values, tables, how far a command has come."""

import json

from tcgpu.progress import underway


def print_json(value):
    print(json.dumps(value))


def print_table(rows, right=()):
    """Columns as wide as their widest entry; those whose positions are in `right` line up on that side."""
    widths = [max(map(len, column)) for column in zip(*rows)]
    sides = [str.rjust if k in right else str.ljust for k in range(len(widths))]
    for row in rows:
        print("  ".join(side(cell, width) for side, cell, width in zip(sides, row, widths)).rstrip())


def progress(arguments, what):
    """Tell on stderr what goes on, and how far or for how long: at a terminal, or with --progress."""
    return underway(True if arguments.progress else None, what)
