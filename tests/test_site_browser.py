"""The site in a browser, its pages opened as files, with the network off: every link, a stepper, the search."""

import re
import subprocess
import sys
from urllib.parse import unquote, urldefrag, urlparse

import pytest
from chromium import CHROMIUM

pytestmark = [pytest.mark.full, pytest.mark.browser, pytest.mark.sim]
RUN = "00_start_here.ipynb"  # the only notebook that is run for these tests; the others have their stored outputs
LINKS = """() => [...document.querySelectorAll("a[href], link[href], [src]")].map((one) => one.href ?? one.src)"""
IDS = """() => [...document.querySelectorAll("[id], [name]")].flatMap((one) => [one.id, one.getAttribute("name")])"""


@pytest.fixture(scope="module")
def site(root, tmp_path_factory):
    """The folder of a site that was built once."""
    into = tmp_path_factory.mktemp("the site") / "pages"
    command = [sys.executable, root / "docs" / "site" / "build.py", "--live", "--into", into, root / "notebooks" / RUN]
    result = subprocess.run(command, capture_output=True, text=True)
    assert result.returncode == 0, result.stderr
    assert result.stdout.strip() == str(into / "index.html") and result.stderr == f"run: {RUN}\n"
    assert list(into.parent.iterdir()) == [into]  # nothing is left beside it
    megabytes = sum(path.stat().st_size for path in into.rglob("*") if path.is_file()) / 1e6
    assert megabytes < 13 and not list(into.rglob("*.map"))  # with the live notebooks, without Pyodide, 29
    return into


@pytest.fixture(scope="module")
def browser(chromium):
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        yield playwright.chromium.launch(executable_path=chromium, args=CHROMIUM)


@pytest.fixture(params=["light", "dark"])
def page(request, browser, root):
    """A page with the network off; nothing was logged as an error, and only files were asked for."""
    context = browser.new_context(offline=True, color_scheme=request.param, viewport={"width": 1500, "height": 1000})
    page, errors, asked = context.new_page(), [], []
    page.on("console", lambda message: message.type == "error" and errors.append(message.text))
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    yield page
    shots = root / "report" / "screenshots"
    shots.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=shots / f"site_{request.node.originalname}_{request.param}.png")
    assert errors == [] and [url for url in asked if not url.startswith(("file:", "data:", "blob:"))] == []
    context.close()


@pytest.mark.parametrize("page", ["light"], indirect=True)
def test_every_link_leads_somewhere(site, page):
    links, ids = {}, {}
    for path in sorted(site.rglob("*.html")):
        page.goto(path.as_uri())
        links[path] = set(page.evaluate(LINKS))
        ids[path] = {*page.evaluate(IDS)}
    assert len(links) > 30
    for path, found in links.items():
        for link in found:
            url, anchor = urldefrag(link)
            if "/live/" in link:  # which is not built here
                continue
            if not link or urlparse(url).scheme in ("https", "data", "mailto"):
                continue
            target = type(site)(unquote(urlparse(url).path))
            assert target.is_file() and target.is_relative_to(site), f"{path.name} links to {link}"
            assert not anchor or unquote(anchor) in ids[target], f"{path.name} links to {link}"


@pytest.mark.parametrize("page", ["light"], indirect=True)
def test_each_notebook_can_be_opened_live(site, page):
    live = (site / "live" / "lab" / "index.html").as_uri()
    for path in [site / "index.html", *(site / "notebooks").glob("*.html")]:
        page.goto(path.as_uri())
        name = "00_start_here" if path.stem == "index" else path.stem
        assert [link for link in page.evaluate(LINKS) if "/live/" in link] == [f"{live}?path={name}.ipynb"]


@pytest.mark.parametrize("page", ["light"], indirect=True)
def test_no_page_is_wider_than_the_window(site, page):
    """Long lines of code scroll in boxes of their own."""
    for path in sorted(site.rglob("*.html")):
        page.goto(path.as_uri())
        for width in 400, 1000, 1200, 1400, 1600:
            page.set_viewport_size({"width": width, "height": 900})
            too_wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
            assert too_wide <= 0, (path.name, width)


@pytest.mark.parametrize("page", ["light"], indirect=True)
def test_wide_tables_scroll_and_keep_their_first_column(site, page):
    page.set_viewport_size({"width": 400, "height": 900})
    page.goto((site / "docs" / "claims.html").as_uri())
    table = page.locator(".table-wrapper").nth(1)
    cell = table.locator("tbody td").first
    before = cell.bounding_box()["x"]
    assert table.evaluate("one => { one.scrollLeft = 200; return one.scrollLeft; }") == 200
    assert cell.bounding_box()["x"] == pytest.approx(before, abs=20)


def test_the_front_page_has_a_picture_a_first_count_and_a_way_in(site, page):
    page.goto((site / "index.html").as_uri())
    assert page.locator("a.live").first.bounding_box()["y"] < 400
    assert page.get_by_role("img", name="How many times as fast").bounding_box()["y"] < 500
    text = page.locator("article").inner_text()
    order = [text.index(said) for said in ("Try it now", "pip install .", "tcgpu.count(graph)", "The first hour")]
    assert order == sorted(order)


@pytest.mark.parametrize("page", ["light"], indirect=True)
def test_the_reference_has_types_sources_and_what_to_see_also(site, page):
    page.goto((site / "reference" / "counts_and_what_follows_from_them.html").as_uri())
    count = page.locator("dl.function").filter(has=page.locator("[id='tcgpu.count']")).first
    linked = {link.get_attribute("href") for link in count.locator("dt a").all()}
    assert "https://docs.python.org/3/library/functions.html#int" in linked
    assert "methods_and_kernels.html#tcgpu.Method" in linked and "../_modules/tcgpu/api.html#count" in linked
    assert "tcgpu.triangles" in count.locator(".seealso").inner_text()


def test_a_stepper_plays(site, page):
    page.goto((site / "notebooks" / RUN).with_suffix(".html").as_uri())
    player = page.locator(".tcgpu-player").first
    count, drawing = player.locator(".count"), player.locator("svg.drawing")
    assert count.text_content() == "picture 1 of 16"
    player.locator(".title").click()
    before = drawing.inner_html()
    page.keyboard.press("ArrowRight")
    assert count.text_content() == "picture 2 of 16" and drawing.inner_html() != before
    drawing.locator("circle").first.hover()
    assert player.locator(".tip").text_content().startswith("vertex ")
    player.get_by_label("speed").select_option("20 pictures/s")
    player.get_by_role("button", name="Play").click()
    page.wait_for_function("document.querySelector('.tcgpu-player .count').textContent === 'picture 16 of 16'")
    assert "15 comparisons, 7 triangles" in player.locator(".caption").text_content()
    player.scroll_into_view_if_needed()
    dark = page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")
    paper = page.evaluate("getComputedStyle(document.querySelector('.tcgpu-player')).backgroundColor")
    assert paper == ("rgb(17, 21, 28)" if dark else "rgb(255, 255, 255)")
    page.evaluate("document.body.dataset.theme = 'light'")
    paper = page.evaluate("getComputedStyle(document.querySelector('.tcgpu-player')).backgroundColor")
    assert paper == "rgb(255, 255, 255)", "the theme that was picked on the page"


def test_the_explorer_is_a_picture_in_the_colours_of_the_theme(site, page):
    page.goto((site / "notebooks" / "explorer.html").as_uri())
    picture = page.get_by_role("img", name="The explorer as it opens.")
    assert picture.evaluate("one => one.naturalWidth") > 1000
    dark = page.evaluate("matchMedia('(prefers-color-scheme: dark)').matches")
    for theme, turned in (("auto", dark), ("light", False), ("dark", True)):
        page.evaluate(f"document.body.dataset.theme = '{theme}'")
        assert ("invert" in picture.evaluate("one => getComputedStyle(one).filter")) == turned


@pytest.mark.parametrize("page", ["light"], indirect=True)
def test_formulas_are_drawn_without_a_network(site, page):
    drawn = 0
    for path in sorted((site / "notebooks").glob("*.html")):
        page.goto(path.as_uri())
        drawn += page.locator("math").count()
        text = page.evaluate(
            "() => { for (const one of document.querySelectorAll('pre, code, script, style')) one.remove();"
            " return document.querySelector('article').innerText; }"
        )
        assert not re.search(r"\$[^$ ][^$]*\$|\\(frac|sum|circ|mathrm)\b", text), path.name
    assert drawn > 50


@pytest.mark.parametrize("page", ["light"], indirect=True)
def test_the_search_finds_pages(site, page):
    page.goto((site / "index.html").as_uri())
    field = page.get_by_placeholder("Search").first
    field.fill("roofline")
    field.press("Enter")
    page.wait_for_url("**/search.html?q=roofline*")
    page.locator(".search li a").first.wait_for()
    assert "roofline" in page.locator(".search li p.context").first.inner_text()  # what is around the word, there
    page.locator(".search li a").first.click()
    page.wait_for_load_state()
    assert "roofline" in page.locator("article").inner_text().lower()
