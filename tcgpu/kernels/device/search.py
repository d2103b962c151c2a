"""Binary searches in ascending values, by one thread each.

Neighbouring lanes that search the same values for neighbouring keys read nearly the same addresses.
"""

from tcgpu.engines.runtime import cuda


@cuda.jit(device=True)
def last_up_to(values, low, high, key):
    """The last index in low..high - 1 whose value is `key` or less; `low` if there is none.

    If the values are column pointers, this is the column that holds nonzero `key`.
    """
    while high - low > 1:
        middle = low + high >> 1
        if values[middle] <= key:
            low = middle
        else:
            high = middle
    return low


@cuda.jit(device=True)
def first_from(values, low, high, key):
    """The first index in low..high - 1 whose value is `key` or more; `high` if there is none."""
    while low < high:
        middle = low + high >> 1
        if values[middle] < key:
            low = middle + 1
        else:
            high = middle
    return low


@cuda.jit(device=True)
def find(values, low, high, key):
    """The index in low..high - 1 whose value is `key`; -1 if there is none."""
    found = first_from(values, low, high, key)
    return found if found < high and values[found] == key else -1


@cuda.jit(device=True)
def contains(values, place, length, key):
    """Whether `key` is one of the `length` > 0 values from values[place] on.

    Each step halves the part that may hold the key, whatever it finds: lanes with the same length take the same steps.
    """
    while length > 1:
        half = length >> 1
        if values[place + half] <= key:
            place += half
        length -= half
    return values[place] == key
