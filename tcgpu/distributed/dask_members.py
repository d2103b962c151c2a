"""Counting raw edges by the workers of a Dask cluster together, none of which holds the whole graph (see `division`).

The members are the workers that have a GPU, on one machine or on several. Each is sent its part of the edges, past the
scheduler if the client can reach it; NCCL carries the rest between them. If a member dies or fails, the others wait for
it, so Dask's nannies restart them. If one has died, all that the cluster has then count again.
"""

import os
import time
from collections import Counter
from concurrent.futures import CancelledError
from contextlib import suppress
from dataclasses import replace
from functools import partial
from weakref import WeakKeyDictionary

from tcgpu.distributed import division, worker
from tcgpu.distributed.executors import RESTARTS
from tcgpu.engines import runtime
from tcgpu.engines.choice import visible_gpus
from tcgpu.engines.groups import GpuGroup
from tcgpu.errors import GraphError, WorkerLost

LOOK_SECONDS = 0.005  # between two looks whether all members have finished
CHECK_SECONDS = 1  # the same, whether one has left the cluster
REACH_SECONDS = 5  # to find out whether the client can reach a worker
LOST = "cancelled", "lost"  # what a future of Dask is without its worker
DASK_ERRORS = OSError, KeyError, CancelledError  # of Dask, which may say that a worker is no longer there
RESTART_SECONDS = 60  # to wait for workers that are restarted

_groups: WeakKeyDictionary = WeakKeyDictionary()  # a Client -> (its members, key of their group, if it reaches them)


class MemberGone(Exception):
    """A worker left the cluster while it counted."""


def members_of(client):
    """(address, number of its GPU) of those workers of a cluster that can be members: they have a GPU and NCCL.

    Workers of one machine that see the same GPUs take one each. Those that see others than their neighbours were given
    these on purpose, and take the first.
    """
    found, taken = [], Counter()
    for address, gpus in sorted(client.run(_gpus_here, on_error="ignore").items()):
        if gpus is not None:
            names, number = gpus
            place = address.rpartition(":")[0], names
            if taken[place] < number:
                found.append((address, taken[place]))
            taken[place] += 1
    return found


def results(client, task, u, v):
    """The MemberResult of each member. task: a Division without edges, key and members; u, v: arrays of the host."""
    for _ in range(1 + RESTARTS):
        members = _two_or_more(client)
        addresses, futures = [address for address, _ in members], []
        try:
            futures += _submitted(client, members, task, u, v)
            return client.gather(_finished(client, addresses, futures))
        except BaseException as error:
            _groups.pop(client, None)
            gone = isinstance(error, MemberGone) or isinstance(error, DASK_ERRORS) and _have_left(client, addresses)
            if gone or not all(future.done() for future in futures):
                _restart(client, addresses, futures)
            if not gone:
                raise
            lost = error
    raise WorkerLost(f"workers died {1 + RESTARTS} times while they counted a graph together: {lost}") from lost


def _two_or_more(client):
    """The members of a cluster; GraphError if there are not two, and none that died before comes back."""
    begin = time.monotonic()
    while len(members := members_of(client)) < 2:
        if time.monotonic() > begin + RESTART_SECONDS:
            raise GraphError(f"{len(members)} of Dask's workers have a GPU and NCCL: dividing a graph takes two")
        time.sleep(CHECK_SECONDS)
    return members


def _submitted(client, members, task, u, v):
    """A future of the result of each member, to which its part of the edges is sent."""
    known, key, direct = _groups.get(client, (None, None, None))
    if known != members:
        addresses = [address for address, _ in members]
        made = client.submit(_new_key, workers=addresses[:1], pure=False)
        key, direct = _finished(client, addresses, [made])[0].result(), _reaches(client, addresses)
        _groups[client] = members, key, direct
    for rank, (address, gpu) in enumerate(members):
        begin, end = division.range_of(u.size, rank, len(members))
        ends = client.scatter([u[begin:end], v[begin:end]], workers=[address], hash=False, direct=direct)
        own = replace(task, key=key, members=tuple(members), rank=rank)
        yield client.submit(_count, own, gpu, *ends, workers=[address], pure=False)


def _reaches(client, addresses):
    """Whether the client can send to all workers itself: through the scheduler it takes twice as long or more."""
    if client.direct_to_workers is not None:
        return client.direct_to_workers
    sends = partial(client.scatter, [0], hash=False, direct=True, asynchronous=True)
    try:
        for address in addresses:
            client.sync(partial(sends, workers=[address]), callback_timeout=REACH_SECONDS)
    except OSError:  # or TimeoutError, which is one
        return False
    return True


def _finished(client, addresses, futures):
    """The futures, once all are done; raises the error of a member, or MemberGone."""
    checked, noticed = time.monotonic(), None
    while True:
        now, done = time.monotonic(), all(future.done() for future in futures)
        if any(future.status in LOST for future in futures):
            raise MemberGone("a worker left the cluster, and with it the edges that were sent there")
        errors = [future.exception() for future in futures if future.status == "error"]
        if errors:
            noticed = noticed or now
            if done or any(map(division.is_own, errors)) or now > noticed + division.NOTICE_SECONDS:
                raise max(errors, key=division.is_own)
        if done:
            return futures
        if now > checked + CHECK_SECONDS:
            checked = now
            if gone := _gone(client, addresses):
                raise MemberGone(f"{', '.join(gone)} left the cluster")
        time.sleep(LOOK_SECONDS)


def _gone(client, addresses):
    """Those members that are no longer in the cluster."""
    return sorted(set(addresses) - set(client.nthreads()))


def _have_left(client, addresses):
    """The same, after an error that says so: once the scheduler has noticed."""
    time.sleep(CHECK_SECONDS)
    return _gone(client, addresses)


def _restart(client, addresses, futures):
    """Restart those members that are left: they may wait for one that has gone."""
    client.cancel(futures)
    left = sorted(set(addresses) & set(client.nthreads()))
    with suppress(ValueError, KeyError, OSError):  # they have no nannies; one left just now; they do not come in time
        client.restart_workers(left)
        client.wait_for_workers(len(addresses), timeout=RESTART_SECONDS)


# ---------------------------------------------------------------------------------------------------------- on a worker


def _gpus_here():
    """What CUDA_VISIBLE_DEVICES is, and how many GPUs are visible; None without one, or without NCCL."""
    if worker.engine_here() != "gpu" or runtime.nccl() is None:
        return None
    return os.environ.get("CUDA_VISIBLE_DEVICES"), visible_gpus()


def _new_key():
    return GpuGroup.new_key()


def _count(task, gpu, u, v):
    """The MemberResult of this worker, with its part of the edges."""
    if worker.engine_here() == "gpu":
        worker.use_gpu(gpu)
    return division.count_as_member(replace(task, edges=division.MemberEdges(u, v)))
