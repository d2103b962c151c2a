"""Show the source of a function, or a part of it, in a notebook."""

import inspect
import textwrap


def show(function, first, last):
    """Print the source of a function from the line that has the text `first` to before the text `last`."""
    source = inspect.getsource(getattr(function, "py_func", function))
    begin = source.rindex("\n", 0, source.index(first)) + 1
    print(textwrap.dedent(source[begin : source.index(last, begin)]))


def show_whole(*functions):
    """Print the source of each function."""
    for function in functions:
        print(inspect.getsource(getattr(function, "py_func", function)))
