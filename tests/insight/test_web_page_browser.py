"""The web page of a trace in a browser: opened as a file, with the network off, in light and in dark."""

import dataclasses

import networkx as nx
import numpy as np
import pytest
from chromium import CHROMIUM

import tcgpu
from tcgpu.insight.events import MEMORY_SHIFT
from tcgpu.insight.pictures import BY

pytestmark = [pytest.mark.browser, pytest.mark.sim]
EVIL = "</script><script>document.title = 'changed'</script><img src=x onerror=\"document.title = 'changed'\"> & </pre>"


@pytest.fixture(scope="module")
def trace():
    """A trace whose source and graph have names and texts that HTML would take for tags."""
    trace = tcgpu.trace(tcgpu.Graph.from_networkx(nx.karate_club_graph(), name=f"club {EVIL}"), "naive", threads=64)
    commented = {}
    for launch in trace.launches:
        for site in launch.events.sites.values():
            lines = site.function.lines
            commented[site.function] = site.function._replace(lines=(*lines[:-1], f"{lines[-1].rstrip()}  # {EVIL}\n"))
    trace.launches = [
        dataclasses.replace(launch, events=dataclasses.replace(launch.events, sites={
            number: site._replace(function=commented[site.function]) for number, site in launch.events.sites.items()
        }))
        for launch in trace.launches
    ]  # fmt: skip
    return trace


@pytest.fixture(scope="module")
def browser(chromium):
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        yield playwright.chromium.launch(executable_path=chromium, args=CHROMIUM)


@pytest.fixture(params=["light", "dark"])
def page(request, browser, trace, tmp_path, root):
    """The page, opened from its file; at the end, nothing was logged as an error, and nothing else was asked for."""
    path = tmp_path / "trace.html"
    trace.save_page(path)
    context = browser.new_context(offline=True, color_scheme=request.param, viewport={"width": 1400, "height": 1000})
    page, errors, asked = context.new_page(), [], []
    page.on("console", lambda message: errors.append(message.text))
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(path.as_uri())
    page.wait_for_selector(".tcgpu-player canvas")  # the recording is unpacked first
    yield page
    shots = root / "report" / "screenshots"
    shots.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=shots / f"trace_{request.param}.png", full_page=True)
    assert errors == [] and asked == [path.as_uri()] and page.title() == "naive: a trace of its kernels"
    context.close()


def step(page):
    return page.locator(".count").text_content()


def test_the_arrow_keys_go_through_the_steps_of_the_trace(page, trace):
    """At every step, the marked line, the lanes that take part, and the table of addresses are those of the trace."""
    events = trace.main().events
    block, warp = 0, 0
    steps = np.flatnonzero((events.block == block) & (events.warp == warp))
    shown = page.get_by_label("warp", exact=True).locator("option").first.text_content()
    assert shown == f"warp {warp} of block {block}, {steps.size} steps"
    compared = 0
    for number, at in enumerate(steps.tolist()):
        assert step(page) == f"step {number} of {steps.size - 1}"
        site = events.sites[int(events.step_site[at])]
        assert page.locator("tr.now").get_attribute("data-function") == site.function.name
        assert page.locator("tr.now").get_attribute("data-line") == str(site.line)
        mask = int(events.mask[at])
        taking_part = [str(lane) for lane in range(32) if mask >> lane & 1]
        assert page.locator(".lane.on").all_text_contents() == taking_part
        expected = sorted(recorded(events, at))
        assert sorted(map(tuple, page.evaluate(IN_TABLES))) == expected
        assert sorted(map(tuple, page.evaluate(IN_MAPS))) == [(lane, element) for lane, element, _ in expected]
        in_global = (events.step == at) & ~events.shared
        if not events.atomic[in_global].any():  # these touch some sectors several times
            assert page.locator(".map .sector").count() == events.sectors[in_global].sum()
        compared += len(expected)
        page.keyboard.press("ArrowRight")
    assert step(page) == f"step {steps.size - 1} of {steps.size - 1}", "the last step is the last"
    assert compared > 100


# lane, element and byte in each row of the tables; lane and element in the pictures
IN_TABLES = """() => [...document.querySelectorAll(".addresses tbody tr")].map(
    (row) => [...row.cells].map((cell) => cell.textContent))"""
IN_MAPS = """() => [...document.querySelectorAll(".map .element")].flatMap(
    ({ dataset }) => dataset.lanes.split(" ").map((lane) => [lane, dataset.tip.split(": ")[0]]))"""


def recorded(events, at):
    """(Lane, element, byte) of each access in a step, as the page says it."""
    for request in np.flatnonzero(events.step == at).tolist():
        size = int(events.size[request])
        for access in range(*events.first[request : request + 2].tolist()):
            memory, byte = divmod(int(events.address[access]), 1 << MEMORY_SHIFT)
            name = f"{events.memories[memory]}[{byte // size}]"
            bytes_ = f"bytes {byte} to {byte + size - 1} of shared memory"
            yield str(events.lane[access]), name if memory else bytes_, f"{byte:,}"


def test_the_numbers_at_a_line_are_those_of_the_trace(page, trace):
    for name, words in BY.items():
        page.get_by_label("bars").select_option(words)
        for row in trace.lines(None, trace.main().kernel):
            line = page.locator(f"tr[data-function='{row['function']}'][data-line='{row['line']}']")
            shown = line.locator(".amount").text_content()
            if name == "time":
                share = row["share"]
                if share >= 5e-4:  # JavaScript rounds 0.25 up
                    assert shown.endswith(" %") and float(shown[:-2]) == pytest.approx(100 * share, abs=0.055)
                else:
                    assert shown == ("< 0.1 %" if share else "")
            else:
                assert shown == (f"{row[name]:,}" if row[name] else "")
            assert line.locator(".fill").count() == bool(row["share" if name == "time" else name])
            assert line.locator("code").text_content().strip() == row["text"]


def test_keys_buttons_and_menus(page, trace):
    kernels, warps = page.get_by_label("kernel", exact=True), page.get_by_label("warp", exact=True)
    last = step(page).split()[-1]
    page.keyboard.press("End")
    assert step(page) == f"step {last} of {last}"
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    assert step(page) == f"step {int(last) - 2} of {last}"
    page.keyboard.press("Home")
    page.get_by_role("button", name="Next").click()
    page.keyboard.press("ArrowRight")
    assert step(page) == f"step 2 of {last}"
    page.get_by_role("slider", name="step").focus()
    page.keyboard.press("ArrowRight")
    assert step(page) == f"step 3 of {last}"

    # to the next step at the same line, and back
    page.locator("tr.now").click()
    line = page.locator("tr.now").get_attribute("data-line")
    for _ in range(6):
        page.keyboard.press("ArrowRight")
    before, line = step(page), page.locator("tr.now").get_attribute("data-line")
    page.keyboard.press("Shift+ArrowRight")
    assert step(page) != before and page.locator("tr.now").get_attribute("data-line") == line
    page.keyboard.press("Shift+ArrowLeft")
    assert step(page) == before

    # the request with the most sectors
    events = trace.main().events
    page.get_by_role("button", name="Go to the most sectors").click()
    assert f"{events.sectors[~events.shared].max()} sectors" in page.locator(".requests").text_content()

    # play, pause, and play to the end
    for speed, words in (("1 step/s", "Pause"), ("20 steps/s", "Play")):
        page.get_by_label("speed").select_option(speed)
        page.locator(".title").click()
        page.keyboard.press("End")
        for _ in range(5):
            page.keyboard.press("ArrowLeft")
        page.keyboard.press("Space")
        page.get_by_role("button", name=words).wait_for()
        assert page.locator(".views").get_attribute("aria-busy") == ("true" if words == "Pause" else "false")
    assert step(page).split()[1] == step(page).split()[-1], "it ends at the last step"

    # other warps and kernels
    warps.select_option(index=1)
    assert step(page).startswith("step 0 of ")
    kernels.select_option("find_col_ptr, set-up")
    assert page.locator("tr code").first.text_content() == "def find_col_ptr(col_of, col_ptr):"
    page.get_by_label("of each").select_option("warp")
    assert page.locator(".balance .bar").count() == warps.locator("option").count() == 8


def test_the_pointer_shows_what_it_is_at(page, trace):
    tip = page.locator(".tip")
    page.get_by_role("button", name="Go to the most sectors").click()
    element = page.locator(".map .element").first
    element.hover()
    said, lanes = tip.text_content(), element.get_attribute("data-lanes").split()
    assert page.locator(".lane.marked").all_text_contents() == lanes
    assert said.startswith(("col_ptr[", "row_idx[", "col_of[")) and lanes[0] in said
    page.locator("canvas").hover(position={"x": 40, "y": 12})
    assert tip.text_content().startswith("step ") and "lane 0: " in tip.text_content()
    page.locator("canvas").click(position={"x": 40, "y": 12})
    assert step(page).split()[1] == tip.text_content().split()[1].rstrip(",")
    page.locator(".balance .bar").first.hover()
    assert tip.text_content().endswith(" steps")


def test_everything_has_a_name_for_those_who_do_not_see_it(page):
    unnamed = page.evaluate(
        """() => [...document.querySelectorAll("button, select, input, canvas, svg, section, [tabindex='0']")].filter(
            (one) => !(one.getAttribute("aria-label") || one.textContent.trim() || one.labels?.length))
            .map((one) => one.outerHTML)"""
    )
    assert unnamed == []
    assert page.locator("[role=status]").text_content().startswith("Line ")


def test_the_page_follows_the_theme(page):
    background = "getComputedStyle(document.querySelector('.tcgpu-player')).backgroundColor"
    image = "document.querySelector('canvas').toDataURL()"
    themes = [(page.evaluate(background), page.evaluate(image))]
    dark = page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")
    page.emulate_media(color_scheme="light" if dark else "dark")
    page.wait_for_function(f"before => {image} !== before", arg=themes[0][1])
    themes.append((page.evaluate(background), page.evaluate(image)))
    assert themes[dark][0] == "rgb(255, 255, 255)" != themes[not dark][0]
