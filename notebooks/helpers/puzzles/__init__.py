"""Ten kernels with something missing, for notebook 02_puzzles. Each file beside this one has one of them, whole.

A file's first text is the puzzle; paragraphs that begin with "Hint: " are folded there. Lines between `# given: TEXT`
and `# end` are the answer: the notebook has TEXT instead. TARGET says what an answer may request at most, in the words
of `tcgpu.trace`; CHECKED the knobs that `tcgpu.check` leaves as they are; WITHOUT which of the given
device functions it must not call.
"""

import inspect
import re
from importlib import import_module

from helpers.answers import kernel_verdict
from helpers.puzzles.given import common, triangles_at

__all__ = ["NAMES", "common", "triangles_at", "verdict"]

NAMES = (
    "my_nonzero", "dot_product", "stride", "shared_tile", "block_sum",
    "warp_sum", "column_bits", "own_bits", "lanes_search", "beat_naive",
)  # fmt: skip
HIDDEN = re.compile(r"((?: *# given: .*\n)+)(?:.*\n)*? *# end\n")


def module(name):
    """The module of a puzzle, by the name of its kernel."""
    return import_module(f"helpers.puzzles.p{NAMES.index(name) + 1:02}_{name}")


def verdict(name, answer):
    """Say whether a kernel solves a puzzle, and if not, why; then what it requests, beside the reference."""
    puzzle = module(name)
    fixed, without = getattr(puzzle, "CHECKED", {}), getattr(puzzle, "WITHOUT", ())
    return kernel_verdict(answer, getattr(puzzle, name), puzzle.TARGET, fixed, name, without)


def text(name):
    """The title of a puzzle, its text, and its hints."""
    title, *paragraphs = (" ".join(part.split()) for part in inspect.getdoc(module(name)).split("\n\n"))
    hints = [paragraph.removeprefix("Hint: ") for paragraph in paragraphs if paragraph.startswith("Hint: ")]
    return title, "\n\n".join(paragraphs[: len(paragraphs) - len(hints)]), hints


def solution(name):
    """The kernel of a puzzle as the reader should have it in the end."""
    return re.sub(r" *# (given: .*|end)\n", "", _code(name))


def given(name):
    """The kernel of a puzzle with `...` where something is missing."""
    return HIDDEN.sub(lambda found: found[1].replace("# given: ", ""), _code(name))


def _code(name):
    """What follows the imports and constants in a puzzle's file: TILE, which its kernel uses, too."""
    source = inspect.getsource(module(name))
    return re.search(r"^(?:TILE = .*\n\n\n)?@(?:.*\n)*", source, re.MULTILINE)[0]
