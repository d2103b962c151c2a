"""Send a function of a user's to another process with everything that it needs, its source included.

The other process need not have its file or notebook. It finds the source where `inspect` looks for it: in `linecache`.
"""

import linecache
import pickle
import sys

from tcgpu.engines.kernel_language import is_device_function, names_of


def dumps(function, more):
    """Bytes of a function and of what else belongs to it; `more` is anything that can be pickled."""
    from numba import cloudpickle  # which takes longer to import than most counts take

    module = sys.modules.get(function.__module__)
    known = module is None or module.__name__.split(".")[0] in ("tcgpu", "__main__")
    if not known:  # a module that the other process may not have
        cloudpickle.register_pickle_by_value(module)
    try:
        return cloudpickle.dumps((function, more, sources(function, {})))
    finally:
        if not known:
            cloudpickle.unregister_pickle_by_value(module)


def loads(data):
    """The function, and `more`."""
    function, more, files = pickle.loads(data)
    for name, lines in files.items():
        linecache.cache[name] = (sum(map(len, lines)), None, lines, name)
    return function, more


def sources(function, found):
    """File name -> lines, for the function and all kernels and device functions that it names; added to `found`."""
    name = function.__code__.co_filename
    if name not in found:
        found[name] = linecache.getlines(name, function.__globals__)
    names = names_of(function)
    for used in {*function.__code__.co_names, *function.__code__.co_freevars} & set(names):
        if is_device_function(names[used]) and names[used].py_func is not function:
            sources(names[used].py_func, found)
    return found
