"""Output of the command line: values, tables, progress."""

import json

from tcgpu.progress import underway


def print_json(value):
    print(json.dumps(value))


def print_table(rows, right=()):
    """Print columns as wide as their widest entry; those whose indices are in `right` are aligned right."""
    widths = [max(map(len, column)) for column in zip(*rows)]
    sides = [str.rjust if k in right else str.ljust for k in range(len(widths))]
    for row in rows:
        print("  ".join(side(cell, width) for side, cell, width in zip(sides, row, widths)).rstrip())


def progress(arguments, what):
    """Show progress on stderr, at a terminal or with --progress."""
    return underway(True if arguments.progress else None, what)
