"""Recordings that are played in a part of a page of the site."""

from tcgpu.markup import Markup, element, joined
from tcgpu.player import in_script, script, style

MARK = "tcgpu-recording"  # the class of a part
START = """
for (const root of document.querySelectorAll(".tcgpu-recording"))
  play(root, JSON.parse(root.querySelector("script").textContent));
"""


def part(recording: dict, picture: str | None = None) -> Markup:
    """Return a recording as a part of an HTML page. picture: a PNG in base64, shown where scripts do not run."""
    source = f"data:image/png;base64,{picture.strip()}" if picture else ""
    shown = [element("img", alt=recording["title"], src=source)] if picture else []
    data = element("script", Markup(in_script(recording)), type="application/json")
    return element("div", *shown, data, class_=MARK)


def starter() -> Markup:
    """Return the style and the script, as HTML, that start all parts of a page."""
    start = element("script", Markup(script() + START), type="module")
    return joined(element("style", Markup(style())), start, between="\n")
