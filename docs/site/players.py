"""Recordings that are played in a part of a page of the site."""

from tcgpu.markup import Markup, element
from tcgpu.player import in_script, script

MARK = "tcgpu-recording"  # the class of a part
START = """
for (const root of document.querySelectorAll(".tcgpu-recording"))
  play(root, await unpacked(root.querySelector("script").textContent));
"""


def part(recording: dict, picture: str | None = None) -> Markup:
    """Return a recording as a part of an HTML page. picture: a PNG in base64, shown where scripts do not run."""
    source = f"data:image/png;base64,{picture.strip()}" if picture else ""
    shown = [element("img", alt=recording["title"], src=source)] if picture else []
    data = element("script", Markup(in_script(recording)), type="text/plain")
    return element("div", *shown, data, class_=MARK)


def code() -> str:
    """Return the script that starts all parts of a page; it is no module, as a page opened as a file loads none."""
    plain = script().replace("export default ", "const widget = ").replace("export ", "")
    return f"(async () => {{\n{plain}{START}}})();\n"
