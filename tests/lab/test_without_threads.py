"""The explorer in a browser, which has no threads: the event loop runs its jobs, in slices if Python can be suspended.

Greenlets play such a browser: each call that its event loop makes runs in one, and leaves it to wait.
"""

import asyncio
import sys
import threading
from types import SimpleNamespace

import pytest
from greenlet import getcurrent, greenlet

import tcgpu
from tcgpu import bar, progress
from tcgpu.lab.explorer import job_thread


class Refused(threading.Thread):
    """No thread starts."""

    def start(self):
        raise RuntimeError("can't start new thread")


class Browser:
    """An event loop that handles one event a turn. suspends: whether it can suspend Python."""

    def __init__(self):
        self.suspends, self.waiting, self.main = True, [], getcurrent()

    def get_debug(self):
        return False

    def call_exception_handler(self, context):
        raise context["exception"]

    def call_soon(self, callback):
        handle = asyncio.Handle(callback, (), self)
        self.waiting.append(greenlet(lambda: None if handle.cancelled() else handle._run()))
        return handle

    def can_run_sync(self):
        return self.suspends and getcurrent() is not self.main

    def run_sync(self, awaitable):
        awaitable.close()
        self.waiting.append(getcurrent())
        self.main.switch()

    def turn(self):
        self.waiting.pop(0).switch()

    def turns(self, condition, most=1_000_000):
        """Handle events until the condition holds; returns how many."""
        for number in range(most):
            if condition():
                return number
            self.turn()
        raise AssertionError(f"not after {most} events")


@pytest.fixture
def browser(monkeypatch):
    """A browser, in which a job lets events be handled at each of its reports."""
    browser = Browser()
    monkeypatch.setitem(sys.modules, "pyodide.ffi", browser)
    loop = {"Handle": asyncio.Handle, "sleep": asyncio.sleep, "get_running_loop": lambda: browser}
    monkeypatch.setattr(job_thread, "asyncio", SimpleNamespace(**loop))
    monkeypatch.setattr(job_thread, "threading", SimpleNamespace(Thread=Refused, Condition=threading.Condition))
    monkeypatch.setattr(job_thread, "sys", SimpleNamespace(platform="emscripten"))
    monkeypatch.setattr(job_thread, "INTERVAL", -1)
    yield browser
    while browser.waiting:
        browser.turn()


def explore(browser, graph="mesh_16x16", **settings):
    """An explorer that has described its graph."""
    explorer = tcgpu.explore(graph, ["naive"], engine="sim", **settings)
    assert browser.turns(lambda: explorer.graphs.facts.value.startswith("<b>")) >= 1
    return explorer


@pytest.mark.sim
@pytest.mark.parametrize("page", ["Compare", "Trace"])
def test_a_run_leaves_room_for_events(browser, page):
    explorer, seen = explore(browser, page=page), set()
    explorer.run_button.click()
    assert explorer.busy and explorer.rows == []
    while explorer.busy:
        seen.add(explorer.progress.value)
        browser.turn()
    assert len(seen) > 5 and explorer.rows[0]["triangles"] == 450 and not explorer.message
    assert explorer.status.value.startswith("done after")


@pytest.mark.sim
def test_a_run_is_stopped_at_its_next_report(browser):
    explorer = explore(browser)
    explorer.run_button.click()
    browser.turns(lambda: explorer.progress.value > 0)
    explorer.stop_button.click()
    assert browser.turns(lambda: not explorer.busy) == 1
    assert explorer.status.value.startswith("stopped after") and explorer.rows == []
    explorer.run_button.click()
    browser.turns(lambda: not explorer.busy)
    assert explorer.rows[0]["triangles"] == 450


@pytest.mark.sim
def test_two_explorers_take_turns(browser):
    one, two = explore(browser), explore(browser)
    one.run_button.click()
    two.run_button.click()
    browser.turns(lambda: one.progress.value and two.progress.value)
    assert one.busy and two.busy
    browser.turns(lambda: not (one.busy or two.busy))
    assert one.rows[0]["triangles"] == two.rows[0]["triangles"] == 450 and not one.message and not two.message


@pytest.mark.sim
def test_a_cell_waits_for_a_run(browser):
    explorer, found = explore(browser), []
    explorer.run()
    browser.call_soon(lambda: found.append(explorer.wait(60)))
    browser.turns(lambda: found)
    assert found == [True] and explorer.rows[0]["triangles"] == 450


@pytest.mark.sim
def test_a_handler_of_an_event_cannot_wait_for_a_run_that_has_begun(browser):
    explorer = explore(browser)
    explorer.run()
    browser.turns(lambda: explorer.progress.value > 0)
    assert not explorer.wait(1) and explorer.busy


@pytest.mark.sim
@pytest.mark.parametrize("waits", [False, True])
def test_without_suspending_a_run_takes_one_event_and_says_that_it_cannot_be_stopped(browser, waits):
    browser.suspends = False
    explorer, said = explore(browser), []
    explorer.status.observe(lambda change: said.append(change.new), "value")
    explorer.run_button.click()
    explorer.wait() if waits else browser.turn()
    assert not explorer.busy and explorer.rows[0]["triangles"] == 450
    assert any("this browser cannot stop it" in words for words in said)
    assert explorer.wait(0)


def test_what_takes_more_memory_than_there_is_says_so(browser, monkeypatch):
    def refused(*_):
        raise MemoryError("Unable to allocate 4.00 GiB")

    explorer = explore(browser)
    monkeypatch.setattr(tcgpu.datasets, "load", refused)
    explorer.graphs.bundled.value = "rmat_8"
    browser.turns(lambda: explorer.message)
    assert explorer.message.startswith("this takes more memory than there is (Unable to allocate 4.00 GiB): take a ")


def test_a_bar_is_shown_without_threads(monkeypatch, capsys):
    monkeypatch.delattr("os.get_terminal_size")
    monkeypatch.setattr(bar, "threading", SimpleNamespace(Thread=Refused, RLock=threading.RLock, Event=threading.Event))
    with progress.progress(True, 10, "counting") as shown:
        shown.add(5)
    assert "tcgpu: counting" in capsys.readouterr().err
