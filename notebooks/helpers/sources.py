"""Show a text in a notebook, or a part of it: the source of a function, a kernel in another language."""

import inspect
import textwrap


def text_of(*functions):
    """The source of functions, one after the other."""
    return "\n".join(inspect.getsource(getattr(function, "py_func", function)) for function in functions)


def show(function, first, last=""):
    """Print the source of a function from the line that has the text `first` to before the text `last`, or its end."""
    show_part(text_of(function), first, last)


def show_part(text, first, last=""):
    """Print a text from the line that has the text `first` to before the text `last`, or to the end."""
    begin = text.rindex("\n", 0, text.index(first)) + 1
    print(textwrap.dedent(text[begin : text.index(last, begin) if last else None]))


def show_whole(*functions):
    """Print the source of each function."""
    for function in functions:
        print(text_of(function))
