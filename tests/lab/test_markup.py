"""Names, texts and messages of files, graphs and methods are shown as they are: never as HTML, never as formulas."""

import ast
import importlib
import json
import re
import zipfile
from html.parser import HTMLParser

import ipywidgets as widgets
import numpy as np
import pytest
from test_explorer import SOON, explore, ran  # noqa: F401  explore: a fixture
from test_own_method import registered  # noqa: F401  a fixture

import tcgpu
from tcgpu import cuda, figures, player
from tcgpu.formats import binary
from tcgpu.insight import web_page
from tcgpu.lab.explorer import elements
from tcgpu.markup import Markup, element, joined
from tcgpu.records import Rows

EVIL = "<img src=x onerror=\"alert('$\\frac$')\"></script>"
GRAPH = tcgpu.Graph(np.array([0, 2, 3, 3]), np.array([1, 2, 2]), name=EVIL)
KINDS = ("load", "store", "atomic", "call", "step")  # of what is traced
TAG = re.compile(r"</?(a|b|br|div|img|li|ol|p|pre|script|span|style|svg|table|t[dhr]|ul)\b")


@tcgpu.method(EVIL, threads=32, blocks=1)
def evil(col_ptr, row_idx, total, threads):
    """Counts <img src=x onerror="alert()">."""
    if cuda.grid(1) == 0:  # <img src=x onerror="alert()"> $\frac$
        cuda.atomic.add(total, 0, 1)


class Tags(HTMLParser):
    """Collects the elements of a page that run what a stranger wrote."""

    def __init__(self, text):
        super().__init__()
        self.found, self.said = [], ""
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attributes):
        if any(name.startswith("on") or value == "x" for name, value in attributes):
            self.found.append(tag)

    def handle_data(self, data):
        self.said += data


def shown(text):
    """What a piece of HTML shows; it runs nothing that a stranger wrote."""
    tags = Tags(text)
    assert tags.found == []
    return tags.said


@pytest.fixture(scope="module")
def trace(tmp_path_factory):
    """A trace from a file in which every text of a free choice is EVIL."""
    path = tmp_path_factory.mktemp("evil") / "evil.trace"
    made = tcgpu.trace(GRAPH, evil)
    made.save(path)
    with zipfile.ZipFile(path) as archive:
        names = [name.removesuffix(".npy") for name in archive.namelist()]
    arrays = binary.read_archive(path, names, "")
    known = json.loads(arrays["trace"].tobytes())
    kept = {known["made_by"], known["gpu"], known["graph"]["order"], "count", ""}

    def with_evil(value):
        if isinstance(value, dict):
            return {key: with_evil(inside) for key, inside in value.items()}
        if isinstance(value, list):
            return [with_evil(inside) for inside in value]
        if not isinstance(value, str) or value in KINDS or value in kept:
            return value
        return f"{value[:-1]}  # {EVIL}\n" if value.endswith("\n") else f"{EVIL} {value}"

    arrays["trace"] = np.frombuffer(json.dumps(with_evil(known)).encode(), np.uint8)
    with path.open("wb") as stream:
        binary.write_archive(arrays, stream)
    return tcgpu.load_trace(path)


@pytest.fixture
def players(root, monkeypatch):
    """The module of the site that has recordings in pages."""
    monkeypatch.syspath_prepend(root / "docs" / "site")
    return importlib.import_module("players")


def test_a_trace_from_a_file(trace, players):
    assert EVIL in trace.method and EVIL in trace.main().kernel and EVIL in trace.lines()[0]["text"]
    assert shown(trace._repr_html_()).count(EVIL) > 3
    traces = tcgpu.insight.Traces([trace])
    assert traces.mistakes == [] or EVIL in shown(traces._repr_html_())
    assert EVIL.encode() not in figures.svg(trace.show())
    page = player.page(web_page.recording(trace))
    assert shown(page) and page.count("</script>") == 2 and "<img" not in page.replace("<\\/", "")
    assert "<img" not in players.part(web_page.recording(trace)) and "<img" not in trace.play()._repr_mimebundle_()[0]


def test_reports_tables_and_steps(players):
    assert EVIL in shown(tcgpu.check(evil)._repr_html_())
    assert EVIL in shown(Rows([{"graph": EVIL, EVIL: 1}])._repr_html_())
    stepper = tcgpu.step(GRAPH, evil)
    assert EVIL in stepper.recording["title"] and "<img" not in players.part(stepper.recording)
    assert figures.png(stepper._still())


def test_the_explorer(explore, registered, tmp_path):  # noqa: F811
    explorer = explore(GRAPH, [evil, "cpu"], engine="sim")
    ran(explorer)
    explorer.methods.knobs_of.value = EVIL
    for page in explorer.pages.children[1:]:
        explorer.pages.selected_index = explorer.pages.children.index(page)
        ran(explorer)
    explorer.graphs.source.value = "a file"
    explorer.graphs.path.value = str(tmp_path / EVIL)
    assert explorer.wait(SOON)
    all_of_it = [*elements.everything(explorer), explorer.graphs.given_page]
    said = [shown(each.value) for each in all_of_it if isinstance(each, elements.Words)]
    assert sum(EVIL in words for words in said) > 4
    assert not any(each.description_allow_html for each in all_of_it if hasattr(each, "description_allow_html"))
    assert not any(isinstance(each, (widgets.HTMLMath, widgets.Label)) for each in all_of_it)


def test_dollars_in_a_chart_are_dollars_and_powers_are_powers():
    ax = figures.axes()
    ax.set(title=EVIL, xlabel="$x$", xscale="log", xlim=(1, 1e6), yticks=[0, 1])
    ax.set_yticklabels([EVIL, "$y$"])
    figures.png(ax.figure)
    assert not any(text.get_parse_math() for text in (ax.title, ax.xaxis.label, *ax.get_yticklabels()))
    assert all(text.get_parse_math() for text in ax.get_xticklabels())


def test_text_is_escaped_and_markup_is_not():
    bold = element("b", EVIL, title=EVIL)
    assert shown(bold) == EVIL and shown(joined("1 < 2", bold, between="<br>")) == f"1 < 2{EVIL}"
    assert element("img", alt="") == '<img alt="">' and isinstance(bold, Markup)


def test_html_is_made_by_these_functions_alone(root):
    """No f-string of the package has tags, and nothing else escapes."""
    for path in (root / "tcgpu").rglob("*.py"):
        if path.name == "markup.py":
            continue
        tree = ast.parse(path.read_text())
        texts = [part.value for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values
                 if isinstance(part, ast.Constant)]  # fmt: skip
        assert not [text for text in texts if TAG.search(text)], path
        assert not re.search(r"^(import|from) html\b", path.read_text(), re.MULTILINE), path
