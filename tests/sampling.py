"""Choose which of many combinations a test tries: a sample, or all with `pytest --full` (`make test FULL=1`)."""

from zlib import crc32

full = False  # `conftest.py` sets it before tests are collected


def share(items, key, of=4):
    """Every `of`-th item, with --full all of them. Which ones depends on `key`, any value that prints as itself."""
    items = list(items)
    return items if full else items[crc32(str(key).encode()) % min(of, len(items) or 1) :: of]


def default_and_share(items, key, of=4):
    """The first item, and a share of the others."""
    items = list(items)
    return [*items[:1], *share(items[1:], key, of)]
