"""Progress callbacks: they get the share of the work that is done, and may end it."""

import pytest

import tcgpu
from tcgpu.bar import Bar
from tcgpu.progress import part, pulse, watched

GRAPH = tcgpu.generate.mesh(8, 8)


class Enough(Exception):
    pass


def test_pulse_without_a_callback_does_nothing():
    pulse()
    pulse(0.5)


def test_a_callback_is_called_only_inside_its_with():
    shares = []
    with watched(shares.append):
        pulse(0.5)
    pulse(1.0)
    assert shares == [0.5]


@pytest.mark.sim
def test_the_simulator_reports_before_each_block_and_thread():
    shares = []
    with watched(shares.append):
        tcgpu.count(GRAPH, "naive", engine="sim", threads=8, blocks=4)
    assert [share for share in shares if share is not None][-4:] == [0.5, 0.625, 0.75, 0.875]
    assert shares.count(None) >= 32


@pytest.mark.sim
def test_a_simulated_count_can_be_ended_and_the_next_one_is_right():
    calls = []

    def watch(share):
        calls.append(share)
        if len(calls) == 20:
            raise Enough

    with pytest.raises(Enough), watched(watch):
        tcgpu.count(GRAPH, "column_block", engine="sim", threads=8)
    assert len(calls) == 20
    assert tcgpu.count(GRAPH, "column_block", engine="sim", threads=8) == 98


def test_nested_parts():
    shares = []
    with watched(shares.append):
        for k in range(2):
            with part(k, 2):
                for piece in range(2):
                    with part(piece, 2):
                        pulse(0.5)
        pulse(1.0)
    assert shares == [0, 0, 0.125, 0.25, 0.375, 0.5, 0.5, 0.625, 0.75, 0.875, 1]


def test_an_exception_in_a_part_restores_the_outer_part():
    shares = []
    with watched(shares.append):
        with pytest.raises(Enough), part(1, 2):
            raise Enough
        pulse(0.5)
    assert shares == [0.5, 0.5]


def test_a_measurement_reports_before_each_run():
    shares = []
    with watched(shares.append):
        tcgpu.measure(GRAPH, "cpu", repeats=2)
    shares = [share for share in shares if share is not None]  # a first call compiles, and reports None meanwhile
    halves = [k / 6 for k in range(6)]  # allocation and launch of three runs, of which one warms up
    assert shares == sorted(shares) and sorted(set(shares)) == pytest.approx(halves)


def test_the_callback_of_an_outer_with_is_called_too():
    inner, outer = [], []
    with watched(outer.append), part(1, 2):
        with watched(inner.append):
            pulse(0.5)
            pulse()
        pulse(1.0)
    assert (inner, outer) == ([0.5, None], [0.5, 0.75, None, 1.0])


def test_a_closed_bar_takes_no_more_reports():
    """A thread may go on for a moment when an interrupt has ended its call."""
    bar = Bar("counting", 10, True, 0.0)
    bar.show(5)
    bar.close()
    bar.show(7)
