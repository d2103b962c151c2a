"""The page of verdicts that benchmarks/reproduce.py writes, in Chromium."""

import pytest
from chromium import CHROMIUM

from tcgpu import records
from tcgpu.records import Rows

pytestmark = [pytest.mark.full, pytest.mark.browser]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_fits_a_telephone_in_both_themes(load_benchmark, chromium, tmp_path, scheme):
    from playwright.sync_api import sync_playwright

    report = [{"suite": "report", "item": 0, "scaled": 1} | row for row in records.reference("report")]
    first = report[0] | {"suite": "ceiling", "copy_bytes_per_second": 1e12, "launch_us": 3}
    load_benchmark("verdict_page").write(Rows([first, *report]), tmp_path / "index.html")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=CHROMIUM)
        page = browser.new_context(offline=True, color_scheme=scheme, viewport={"width": 390, "height": 800}).new_page()
        errors = []
        page.on("console", lambda message: message.type == "error" and errors.append(message.text))
        page.goto((tmp_path / "index.html").as_uri())
        assert page.evaluate("document.documentElement.scrollWidth") == 390 and errors == []
        color = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert color == {"light": "rgb(255, 255, 255)", "dark": "rgb(20, 24, 29)"}[scheme]
        assert page.locator("#I50 ~ div .bar").first.is_visible()
        browser.close()
