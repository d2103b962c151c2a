"""Check what a reader answers in a notebook. Each answer is None until the reader sets it."""

from tcgpu.checking import Report


def verdict(answer, right, because=""):
    """Say whether an answer is right, and why.

    right: the value, or a function of the answer that returns whether it is right; `tcgpu.check` is one for kernels.
    because: the reason, in words, or a function of the answer that returns it.
    """
    if answer is None:
        return "not answered yet"
    found = right(answer) if callable(right) else answer == right
    if isinstance(found, Report):
        return "\n".join(map(str, [found.headline, *found.problems[:1]]))
    reason = because(answer) if callable(because) else because
    return ("right" if found else f"{answer} is not right") + (f": {reason}" if reason else "")
