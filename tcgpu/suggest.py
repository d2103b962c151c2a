"""What is said of a name that nothing has: the nearest one that something has, and all there are."""

from difflib import get_close_matches


def unknown(what, name, names):
    """The message about a name of a `what`, a method say, that is none of `names`."""
    names = [str(known) for known in names]
    return f"no {what} {name!r}{did_you_mean(name, names)}; there are {', '.join(names)}"


def did_you_mean(name, names):
    """A question in parentheses about the nearest of `names`; nothing where none is near."""
    near = get_close_matches(str(name), [str(known) for known in names], n=1)
    return f" (did you mean {near[0]!r}?)" if near else ""
