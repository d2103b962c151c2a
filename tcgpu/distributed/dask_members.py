"""Counting raw edges by the workers of a Dask cluster together, none of which holds the whole graph (see `division`).

The members are the workers that have a GPU, on one machine or on several. Each is sent its part of the edges, past the
scheduler if the client can reach it; NCCL carries the rest between them. If a member dies or fails, the others wait for
it, so Dask's nannies restart them. If one has died, all that the cluster has then count again.
"""

import os
import secrets
import time
from collections import Counter
from concurrent.futures import CancelledError
from dataclasses import replace
from functools import partial
from typing import NamedTuple
from weakref import WeakKeyDictionary

from tcgpu.distributed import division, worker
from tcgpu.distributed.groups import GpuGroup, nccl
from tcgpu.engines.choice import visible_gpus
from tcgpu.errors import GraphError, WorkerLost
from tcgpu.graph import edge_arrays

REACH_SECONDS = 5  # to find out whether the client can reach a worker
LOST = "cancelled", "lost"  # what a future of Dask is without its worker
DASK_ERRORS = OSError, KeyError, CancelledError  # of Dask, which may say that a worker is no longer there
RESTART_SECONDS = 60  # to wait for workers that are restarted
PROCESS = secrets.token_hex(8)  # of this worker: one that is restarted may have the same address

_groups: WeakKeyDictionary = WeakKeyDictionary()  # a Client -> (members, key of their group, whether it reaches them)


class MemberGone(Exception):
    """A worker left the cluster while it counted."""


class Member(NamedTuple):
    """A worker, the number of its GPU, and its PROCESS."""

    address: str
    gpu: int
    process: str


def members_of(client):
    """A Member for each worker of a cluster that can be one: it has a GPU and NCCL.

    Workers of one machine that see the same GPUs take one each. Those that see others than their neighbours were given
    these on purpose, and take the first.
    """
    found, taken = [], Counter()
    for address, seen in sorted(client.run(_gpus_here, on_error="ignore").items()):
        if seen is not None:
            process, names, number = seen
            place = address.rpartition(":")[0], names
            if taken[place] < number:
                found.append(Member(address, taken[place], process))
            taken[place] += 1
    return found


def divides(edges, workers, *options):
    """Whether the workers count these edges as a group: see `division.divides`. Two of them must be able to."""
    return division.divides(edges, workers, *options) and len(members_of(workers.dask)) > 1


def results(edges, workers, **knobs):
    u, v, *n = edge_arrays(edges)
    u, v = division.on_host(u, v)
    task = division.Division(None, (), None, n[0] if n else None, knobs)
    client, members, futures = workers.dask, [], []

    def count(lost):
        members[:] = _members(client, max(2, len(members)), lost)
        futures.clear()
        for future in _submitted(client, members, task, u, v):
            futures.append(future)
        return division.results_of(futures, check)

    def check():
        if any(future.status in LOST for future in futures):
            raise MemberGone("a worker left the cluster, and with it the edges that were sent there")
        gone = {member.address for member in members} - set(client.nthreads())
        if gone:
            raise MemberGone(f"{', '.join(sorted(gone))} left the cluster")

    def end(error):
        _groups.pop(client, None)
        gone = isinstance(error, MemberGone)
        if isinstance(error, DASK_ERRORS):
            time.sleep(division.CHECK_SECONDS)  # until the cluster knows that a member has gone
            gone = gone or not set(members) <= set(members_of(client))
        ended = not gone and all(future.done() for future in futures) or _restart(client, members, futures)
        if gone and not ended:
            raise WorkerLost(f"{error}; Dask's nannies would restart the others, but these have none") from error
        return gone

    return division.all_count(count, end)


def _members(client, expected, lost):
    """The members of a cluster, once there are as many as expected; after RESTART_SECONDS, those that there are.

    With fewer than two, WorkerLost from `lost`, the error of the attempt before; GraphError if there was none.
    """
    begin = time.monotonic()
    while len(members := members_of(client)) < expected and time.monotonic() < begin + RESTART_SECONDS:
        time.sleep(division.CHECK_SECONDS)
    if len(members) < 2:
        found = f"{len(members)} of Dask's workers have a GPU and NCCL: dividing a graph takes two"
        if lost is None:
            raise GraphError(found)
        raise WorkerLost(f"{lost}; {found}") from lost
    return members


def _submitted(client, members, task, u, v):
    """A future of the result of each member, to which its part of the edges is sent."""
    known, key, direct = _groups.get(client, (None, None, None))
    if known != members:
        first = members[0].address
        key, direct = client.run(_new_key, workers=[first])[first], _reaches(client, members)
        _groups[client] = members, key, direct
    for rank, member in enumerate(members):
        begin, end = division.range_of(u.size, rank, len(members))
        there = {"workers": [member.address]}
        ends = client.scatter([u[begin:end], v[begin:end]], hash=False, direct=direct, **there)
        own = replace(task, key=key, members=tuple(members), rank=rank)
        yield client.submit(_count, own, member.gpu, *ends, pure=False, **there)


def _reaches(client, members):
    """Whether the client can send to all members itself: through the scheduler it takes twice as long or more.

    It is tried once for a group. If a member does not answer in time, the scheduler sends to this group from then on.
    """
    if client.direct_to_workers is not None:
        return client.direct_to_workers
    sends = partial(client.scatter, [0], hash=False, direct=True, asynchronous=True)
    try:
        for member in members:
            client.sync(partial(sends, workers=[member.address]), callback_timeout=REACH_SECONDS)
    except OSError:  # or TimeoutError, which is one
        return False
    return True


def _restart(client, members, futures):
    """Restart those members that are left, which may wait for one that has gone; False if they have no nannies."""
    client.cancel(futures)
    left = sorted({member.address for member in members} & set(client.nthreads()))
    try:
        client.restart_workers(left, timeout=RESTART_SECONDS, raise_for_error=False)
    except ValueError:
        return False
    except (KeyError, OSError):  # another one left just now
        pass
    return True


# ---------------------------------------------------------------------------------------------------------- on a worker


def _gpus_here():
    """PROCESS, CUDA_VISIBLE_DEVICES, and how many GPUs are visible; None without one, or without NCCL."""
    if worker.engine_here() != "gpu" or nccl() is None:
        return None
    return PROCESS, os.environ.get("CUDA_VISIBLE_DEVICES"), visible_gpus()


def _new_key():
    return GpuGroup.new_key()


def _count(task, gpu, u, v):
    """The MemberResult of this worker, with its part of the edges."""
    if worker.engine_here() == "gpu":
        worker.use_gpu(gpu)
    return division.count_as_member(replace(task, edges=division.MemberEdges(u, v)))
