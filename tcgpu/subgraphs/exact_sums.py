"""Sums that many workers add to, exact for integers and rounded once for floats: in whatever order, the same result.

A sum is some words of 64 bits, from the lowest on, with carries from one to the next. A sum of integers has two words,
in two's complement. A sum of floats has a word for every 64 bits between the smallest and the largest float: one set of
words for positive values and one for negative ones, so that carries are rare; and a word of flags for values that are
not finite. It is rounded only in the end, as `math.fsum` does. Few of these words are used, and the system provides no
memory for pages that are never written; `sums[row, size]` says whether a float has begun in `row`, and
`sums[0, size + 1]` changes when one begins in another.

`sums` is an array (words of a sum, size + CACHE_LINE) of uint64; `shared` is None, or True if workers share it.
"""

import math

import numpy as np

from tcgpu.engines.native import CACHE_LINE, I64, U64, fetch_add, fetch_or, jit, run_threads, shares

WORDS = 34  # 2,098 bits from 2^-1074 on, and 78 more for carries
FLAGS = 2 * WORDS  # the row of flags,
INFINITE, MINUS_INFINITE, NOT_A_NUMBER = 1, 2, 4  # which say that there were such values


def zero_sums(copies, size, floats):
    """Arrays for `size` sums of floats or of integers each."""
    return np.zeros((copies, FLAGS + 1 if floats else 2, size + CACHE_LINE), np.uint64)


def integer_totals(sums):
    """The sums of all copies, which overwrite the first one: the low words (uint64), and the high ones (int64)."""
    low, high = sums[0, :, :-CACHE_LINE]
    for other_low, other_high in sums[1:, :, :-CACHE_LINE]:
        low += other_low
        if other_high.any():
            high += other_high
        carry = low < other_low
        if carry.any():
            high += carry
    return low, high.view(np.int64)


def float_totals(sums, totals=None):
    """The sums of all copies, each rounded once (float64).

    In `totals`, or without it in the memory of the lowest words.
    """
    size = sums.shape[2] - CACHE_LINE
    used = np.flatnonzero(sums[:, :FLAGS, size].any(axis=0)) % WORDS
    first = int(used.min(initial=WORDS - 1))
    if totals is None:
        totals = sums[0, first, :size].view(np.float64)
    if used.size:
        last = min(int(used.max()) + 3, WORDS)
        run_threads(_round, sums, first, last, totals, workers=shares(size))
    if sums[:, FLAGS, size].any():
        flags = np.bitwise_or.reduce(sums[:, FLAGS, :size])
        for flag, value in (INFINITE, np.inf), (MINUS_INFINITE, -np.inf), (INFINITE | MINUS_INFINITE, np.nan):
            totals[flags & U64(flag) == flag] = value
        totals[flags >= NOT_A_NUMBER] = np.nan
    return totals


@jit
def words_in_use(sums):
    """How many words of sums of floats are used: those in which a float has begun, and one behind them."""
    used, number = sums.shape[1] - CACHE_LINE, U64(0)
    for row in range(1, FLAGS):
        number += sums[U64(row), U64(used)] | sums[U64(row - 1), U64(used)]
    return number


@jit
def _add_word(sums, row, index, word, shared):
    """Add a word to one of a sum; returns the carry."""
    if shared is None:
        before = sums[U64(row), U64(index)]
        sums[U64(row), U64(index)] = before + word
    else:
        before = fetch_add(sums, row * sums.shape[1] + index, word)
    return U64(before + word < before)


@jit
def add_integer(sums, index, value, shared):
    """Add an integer or a bool of any type to a sum."""
    high = _add_word(sums, 0, index, U64(value), shared) - U64(value < 0)
    if high:
        _add_word(sums, 1, index, high, shared)


@jit
def add_float(sums, index, value, shared):
    """Add a float of any type to a sum."""
    bits = np.float64(value).view(np.uint64)
    exponent = I64(bits >> U64(52)) & 0x7FF
    fraction = bits & U64(0xFFFFFFFFFFFFF)
    used = sums.shape[1] - CACHE_LINE
    if exponent == 0x7FF:
        flag = NOT_A_NUMBER if fraction else MINUS_INFINITE if bits >> U64(63) else INFINITE
        sums[FLAGS, used] = 1
        if shared is None:
            sums[FLAGS, U64(index)] |= U64(flag)
        else:
            fetch_or(sums, FLAGS * sums.shape[1] + index, U64(flag))
        return
    if exponent:
        fraction |= U64(1 << 52)
        exponent -= 1
    row = (exponent >> 6) + (WORDS if bits >> U64(63) else 0)
    shift = U64(exponent & 63)
    if sums[U64(row), U64(used)] == 0:
        sums[U64(row), U64(used)] = 1
        sums[0, U64(used + 1)] += U64(1)
    left = fraction >> U64(1) >> (U64(63) - shift)  # the bits for the next word
    left += _add_word(sums, row, index, fraction << shift, shared)
    while left:
        row += 1
        left = _add_word(sums, row, index, left, shared)


@jit
def add_float_from(sums, index, value, first):
    """The same if it is one of the sums from `first` on that are here; workers share them."""
    if first <= index < first + sums.shape[1] - CACHE_LINE:
        add_float(sums, index - first, value, True)


@jit
def _round(worker, workers, sums, first, last, totals):
    """Round the sums to floats, from words `first` to `last` - 1, the only ones that are not 0."""
    words = np.empty(last - first + 1, np.uint64)
    for index in range(totals.size * worker // workers, totals.size * (worker + 1) // workers):
        carry = I64(0)
        for row in range(first, last):
            word, above = U64(carry), carry >> 63
            for copy in range(sums.shape[0]):
                positive, negative = sums[copy, U64(row), U64(index)], sums[copy, U64(row + WORDS), U64(index)]
                word += positive
                above += I64(word < positive) - I64(word < negative)
                word -= negative
            words[row - first], carry = word, above
        words[last - first] = U64(carry)
        if carry < 0:
            one = U64(1)
            for k in range(words.size):
                words[k] = ~words[k] + one
                one &= U64(words[k] == 0)
        top = words.size - 1
        while top and words[top] == 0:
            top -= 1
        high = words[top]
        if high == 0:
            totals[U64(index)] = 0.0
            continue
        exponent = 64 * (first + top) - 1074
        below = words[top - 1] if top else U64(0)
        while not high >> U64(63):
            high, below = high << U64(1) | below >> U64(63), below << U64(1)
            exponent -= 1
        for k in range(top - 1):
            below |= words[k]
        total = math.ldexp(float(high | U64(below != 0)), exponent)  # what is below only decides how to round
        totals[U64(index)] = -total if carry < 0 else total
