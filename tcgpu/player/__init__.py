"""The player: shows recorded steps one at a time, in a browser, without Python.

In player.js, `play(element, recording)` draws a recording inside an element of a page. A recording is a dict that JSON
can hold. Of it the player itself uses:

    title, facts     the heading, and the sentences below it
    words            what is called what: {"part": "kernel", "sequence": "warp"}, and where a step is called otherwise
                     or not counted from 0, {"step": "picture", "first": 1}
    parts            what can be picked first, if there are several, each with
        name, note
        views        the panels, from top to bottom, on the left ("side": "left") or on the right. The "kind" names the
                     class in player.js that draws it; the rest is what that class needs, the same for all steps
        sequences    what can be picked next, if there are several, each with a name, a number of "steps", and
                     "columns": lists with an entry per step

A view takes from the columns what it draws. So a new kind of recording needs new views and nothing else.
`tcgpu.insight.web_page` makes the recording of a trace, `tcgpu.lab.stepper` that of a method's steps.
"""

import base64
import hashlib
import json
import zlib
from pathlib import Path

from tcgpu.markup import joined
from tcgpu.player import shapes

PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy"
 content="default-src 'none'; script-src {allowed_script}; style-src {allowed_style}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
<main id="player"><noscript>This page needs JavaScript, which is off in this browser.</noscript></main>
<script type="text/plain" id="recording">{recording}</script>
<script type="module">{script}</script>
</body>
</html>
"""
START = """
const main = document.getElementById("player");
play(main, await unpacked(document.getElementById("recording").textContent));
main.focus();
"""


def script() -> str:
    """Return player.js, a module: it exports `play`, and by default what a widget of a notebook needs."""
    return _text("player.js")


def style() -> str:
    """Return the style sheet of the player, with the colours of shapes."""
    return _text("player.css") + shapes.css()


def page(recording: dict) -> str:
    """Return a recording as an HTML page of its own. Its policy forbids it to load anything."""
    code, sheet = script() + START, style()
    return PAGE.format(
        title=joined(recording["title"]), style=sheet, script=code, allowed_script=_hash(code),
        allowed_style=_hash(sheet), recording=in_script(recording),
    )  # fmt: skip


def in_script(recording: dict) -> str:
    """Return a recording as text that may stand in a script element; `unpacked` in player.js reads it."""
    return base64.b64encode(zlib.compress(json.dumps(recording, allow_nan=False).encode(), 9)).decode()


def _hash(text):
    """The name of an inline script or style in a policy."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _text(name):
    return Path(__file__).with_name(name).read_text("utf-8")
