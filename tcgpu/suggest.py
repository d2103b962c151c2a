"""Messages about unknown names: the nearest known name, and all there are."""

from inspect import BoundArguments, Signature


def unknown(what, name, names):
    """The message that no `what`, a method say, has this name."""
    names = [str(known) for known in names]
    there_are = f"there are {', '.join(names)}" if names else "there is none"
    return f"no {what} {name!r}{did_you_mean(name, names)}; {there_are}"


def check_known(what, name, names, error):
    """Return the name; an error with the message of `unknown` if it is not one of `names`."""
    if name not in names:
        raise error(unknown(what, name, names))
    return name


def did_you_mean(name, names):
    """A question in parentheses about the nearest of `names`; empty if none is near."""
    from difflib import get_close_matches

    near = get_close_matches(str(name), [str(known) for known in names], n=1, cutoff=0.65)
    return f" (did you mean {near[0]!r}?)" if near else ""


def bound(function: str, signature: Signature, args: tuple, keywords: dict) -> BoundArguments:
    """The arguments of a call, bound to a signature; TypeError names the function, and what it takes."""
    try:
        return signature.bind(*args, **keywords)
    except TypeError as error:
        raise TypeError(f"{function}() {error}; it takes {', '.join(signature.parameters)}") from None
