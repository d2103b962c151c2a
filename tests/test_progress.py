"""Long work can be watched and ended, by what runs it and from wherever it is."""

import pytest

import tcgpu
from tcgpu.progress import part, pulse, watched

GRAPH = tcgpu.generate.mesh(8, 8)


class Enough(Exception):
    pass


def test_without_a_watch_nothing_happens():
    pulse()
    pulse(0.5)


def test_a_watch_ends_with_its_block():
    shares = []
    with watched(shares.append):
        pulse(0.5)
    pulse(1.0)
    assert shares == [0.5]


@pytest.mark.sim
def test_the_simulator_tells_before_each_block_and_thread():
    shares = []
    with watched(shares.append):
        tcgpu.count(GRAPH, "naive", engine="sim", threads=8, blocks=4)
    assert [share for share in shares if share is not None][-4:] == [0.5, 0.625, 0.75, 0.875]
    assert shares.count(None) >= 32


@pytest.mark.sim
def test_a_simulated_count_ends_in_the_middle_and_the_next_one_is_right():
    calls = []

    def watch(share):
        calls.append(share)
        if len(calls) == 20:
            raise Enough

    with pytest.raises(Enough), watched(watch):
        tcgpu.count(GRAPH, "column_block", engine="sim", threads=8)
    assert len(calls) == 20
    assert tcgpu.count(GRAPH, "column_block", engine="sim", threads=8) == 98


def test_parts_of_parts_share_the_whole():
    shares = []
    with watched(shares.append):
        for k in range(2):
            with part(k, 2):
                for piece in range(2):
                    with part(piece, 2):
                        pulse(0.5)
        pulse(1.0)
    assert shares == [0, 0, 0.125, 0.25, 0.375, 0.5, 0.5, 0.625, 0.75, 0.875, 1]


def test_a_part_that_is_ended_leaves_no_trace():
    shares = []
    with watched(shares.append):
        with pytest.raises(Enough), part(1, 2):
            raise Enough
        pulse(0.5)
    assert shares == [0.5, 0.5]


def test_a_measurement_tells_before_each_run():
    shares = []
    with watched(shares.append):
        tcgpu.measure(GRAPH, "cpu", repeats=2)
    shares = [share for share in shares if share is not None]  # a first call compiles, and tells that it goes on
    assert shares == [0, 0.5]


def test_who_watches_from_outside_is_told_too():
    inner, outer = [], []
    with watched(outer.append), part(1, 2):
        with watched(inner.append):
            pulse(0.5)
            pulse()
        pulse(1.0)
    assert (inner, outer) == ([0.5, None], [0.5, 0.75, None, 1.0])
