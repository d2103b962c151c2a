"""Equations 7 to 10: operations and memory accesses of all chunks, banks of shared memory, partitions of global memory.

A set of operations (equation 7) is a chunk, an operation the test of a combination, which asks for three bits. Where
threads ask one bank for several elements, or several warps ask one partition, they are served in turns. Equations 9 and
10 say that the time is as what is asked for over the distinct banks or partitions.
"""

import numpy as np

from helpers.level_models.arrangement import PARTITIONS, arrange
from helpers.level_models.coalescing import WARP, transactions
from helpers.level_models.partitions import HAND_OUTS, SEGMENT, WIDTH, partition_load, requests
from tcgpu import arrays


def accesses(split, arrangement, hand_out, rule="1.3"):
    """Of each chunk: its operations C (equation 7), and the transactions of a warp that does them all (equation 8)."""
    found = []
    for chunk, tests in enumerate(split.tests.tolist()):
        asked = requests(split, arrangement, -(-tests // WARP), [chunk], hand_out)
        found.append(int(transactions(asked, rule).count.sum()))
    return split.tests, np.array(found, np.int64)


def sums_of_accesses(graph, split):
    """Both sums, of operations and of accesses, for lanes that have ranges or take turns: a dict for each."""
    found = []
    for way in HAND_OUTS:
        operations, each = accesses(split, arrange(graph, split), way)
        sums = {"operations": int(operations.sum()), "accesses": int(each.sum())}
        found.append({"lanes": way, "sets": len(split)} | sums)
    return found


def bank_turns(words, banks=16):
    """Of the words that half a warp reads: distinct ones, distinct banks, and in how many turns they are served.

    A word that several lanes read is sent to all of them at once.
    """
    words = np.unique(words)
    load = arrays.bincount(words % banks)
    return words.size, int(np.count_nonzero(load)), int(load.max())


def partition_turns(addresses, partitions=PARTITIONS):
    """Of requests (see `partitions.requests`): turns that they take, and their transactions over distinct partitions.

    Those of all warps together, and, as equation 10 is printed, those of each warp added up.
    """
    load = partition_load(addresses, partitions)
    asked, together, alone = load.transactions.sum(), np.count_nonzero(load.transactions), 0
    for warp in addresses.reshape(-1, addresses.shape[2]):
        alone += np.unique(np.unique(warp[warp >= 0] // SEGMENT) * SEGMENT // WIDTH % partitions).size
    return load.turns, float(asked / together), float(asked / alone)
