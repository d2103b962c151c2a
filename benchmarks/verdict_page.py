"""The page of a record of `reproduce.py`: each charted claim of the papers beside what the record says, with a verdict.

It needs no network, and follows the reader's choice of light or dark. All of it is computed from the record and from
`data/published`.
"""

import math
import sys
from collections import Counter
from pathlib import Path

from tcgpu.files import replacing
from tcgpu.markup import Markup, element, joined
from tcgpu.records import gpu_of

sys.path.append(str(Path(__file__).resolve().parents[1] / "notebooks"))
from helpers import measured, verdicts

STYLE = """
:root { color-scheme: light dark; --text: #1b1f24; --faint: #57606a; --line: #d0d7de; --back: #ffffff;
  --published: #b35900; --here: #0a58b5; --holds: #1a7f37; --order: #8a6100; --reversed: #b3261e; }
@media (prefers-color-scheme: dark) { :root { --text: #e6e9ed; --faint: #a0a8b2; --line: #3a424c; --back: #14181d;
  --published: #f0a050; --here: #6cb0ff; --holds: #57c470; --order: #e0b64a; --reversed: #ff8a80; } }
body { margin: 0 auto; max-width: 64rem; padding: 1rem; color: var(--text); background: var(--back);
  font: 16px/1.5 system-ui, sans-serif; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: .9rem; }
th, td { padding: .3rem .7rem .3rem 0; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top; }
.bars { width: 22rem; }
.bar { height: .55rem; margin: .3rem 0; border-radius: 2px; }
.published { background: var(--published); } .here { background: var(--here); }
.key { display: inline-block; width: .8rem; height: .55rem; margin: 0 .3rem 0 .8rem; }
.faint, caption { color: var(--faint); text-align: left; }
.holds { color: var(--holds); } .order { color: var(--order); } .reversed { color: var(--reversed); }
.missing { color: var(--faint); }
a { color: var(--here); }
"""
CLASSES = dict(zip(verdicts.MEANING, ("holds", "order", "reversed", "missing"), strict=True))
FACTS = {"gpu_name": "adapter", "gpu_kind": "kind", "gpu_driver": "driver", "gpu_backend": "interface",
         "gpu_cuda": "CUDA", "cpu": "CPU", "threads": "threads", "python": "Python", "numba": "Numba",
         "gpu_numba_cuda": "numba-cuda", "tcgpu": "revision of tcgpu", "date": "date"}  # fmt: skip


def write(rows, path):
    """Write the page of these rows; the file is replaced when all of it is written."""
    with replacing(path) as stream:
        stream.write(page(rows).encode())


def page(rows):
    """The text of the page."""
    found = list(verdicts.claims(rows))
    counted = Counter(verdicts.verdict(evidence) for _, evidence in found)
    title = f"The papers on {gpu_of(rows[0]) or rows[0]['gpu_name']}"
    in_software = "A device in software ran the kernels: these are not times of a GPU. "
    body = (
        element("h1", title),
        element("p", in_software * (rows[0].get("gpu_kind") == "software"),
                f"{len(found)} charted claims of four papers. ",
                "; ".join(f"{name}: {counted[name]}" for name in verdicts.MEANING), "."),
        wide(element("table", *(line(name, rows[0][key]) for key, name in FACTS.items() if rows[0].get(key, "") != ""),
                     *(line(*pair) for pair in ceilings(rows[0])))),
        element("h2", "The rule"),
        element("dl", *(joined(element("dt", shown(name)), element("dd", f"{meaning}."))
                        for name, meaning in verdicts.MEANING.items())),
        element("p", stand_ins(rows),
                "Times of a graph that is smaller than at full size are multiplied by what its edges lack. The smaller "
                "it is, the more of them is the launch alone: such times are rough. The least size is that of the "
                "smallest graph in the parts of the record that a claim is judged by."),
        element("h2", "The claims"),
        wide(element("table", line("", "paper", "claim", "published", "here", "least size", "verdict", tag="th"),
                     *map(claim_line, found))),
        element("h2", "The charts"),
        element("p", *(joined(element("span", class_=f"key {of}"), of) for of in ("published", "here")),
                "; lengths are logarithms."),
        *(chart(claim, evidence) for claim, evidence in found if evidence and evidence.figures),
        element("h2", "Our own: the ladder of adaptive"),
        ladder(rows),
        element("h2", "What was not measured at full size, or not at all"),
        wide(element("table", line("suite", "graphs", "of full size", "why", tag="th"), *smaller(rows))),
    )  # fmt: skip
    head = joined(Markup('<meta charset="utf-8"><meta name="viewport" content="width=device-width">'),
                  element("title", title), element("style", Markup(STYLE)))  # fmt: skip
    return "<!doctype html>\n" + element("html", element("head", head), element("body", *body), lang="en")


def wide(table):
    return element("div", table, class_="wide", tabindex="0")


def line(*cells, tag="td"):
    """A line of a table."""
    return element("tr", *(element(tag, cell if isinstance(cell, Markup) else str(cell)) for cell in cells))


def shown(name):
    return element("strong", name, class_=CLASSES[name])


def ceilings(first):
    """The limits of the machine, as (what, text)."""
    yield "its fastest copy", f"{first['copy_bytes_per_second'] / 1e9:,.1f} GB read and written a second"
    yield "its shortest launch", f"{first['launch_us']} microseconds"


def claim_line(found):
    claim, evidence = found
    name = element("a", claim["id"], href=f"#{claim['id']}") if evidence and evidence.figures else claim["id"]
    texts = (verdicts.text(evidence, what) for what in ("published", "here"))
    return line(name, f"{claim['paper']}, {claim['place']}", claim["claim"], *texts, verdicts.size(evidence),
                shown(verdicts.verdict(evidence)))  # fmt: skip


def bars(values):
    """A function that draws one of these values as a bar, whose length is a logarithm."""
    low, high = (math.log(pick(values, default=1)) for pick in (min, max))
    low = min(low, high - math.log(10))  # so that small differences look small

    def bar(value, of):
        if not 0 < value < math.inf:
            return ""
        width = 5 + 95 * (math.log(value) - low) / (high - low)
        return element("div", class_=f"bar {of}", style=f"width: {width:.1f}%")

    return bar


def chart(claim, evidence):
    """The figures of a claim, each a number and a bar."""
    values = [x for figure in (*evidence.figures, *evidence.curve) for x in figure[1:] if 0 < x < math.inf]
    bar = bars(values)
    rows = (
        line(figure.what, verdicts.published_text(figure), verdicts.number(figure.here),
             element("div", bar(figure.low or figure.high, "published"), bar(figure.here, "here"), class_="bars"))
        for figure in (*evidence.figures, *evidence.curve)
    )  # fmt: skip
    compared = f"{sum(evidence.order)} of {len(evidence.order)} comparisons have the published result."
    said = joined(shown(verdicts.verdict(evidence)), f". {compared}" * bool(evidence.order))
    head = element("h3", f"{claim['id']}. {claim['claim']}", id=claim["id"])
    return joined(head, element("p", said), wide(element("table", line("", "published", "here", "", tag="th"), *rows)))


def ladder(rows):
    """The rungs of the ladder with their times."""
    rungs = [row for row in rows if row["suite"] == "ladder" and row.get("idea")]
    bar = bars([row["kernel_ms"] for row in rungs])
    return wide(element("table", line("graph", "edges", "idea", "order", "ms", "", tag="th"), *(
        line(row["graph"], f"{row['edges']:,}", row["idea"], row["order"], verdicts.number(row["kernel_ms"]),
             element("div", bar(row["kernel_ms"], "here"), class_="bars")) for row in rungs)))  # fmt: skip


def stand_ins(rows):
    """Which generated graphs stand for graphs of the papers."""
    made = {row["graph"]: row["made"] for row in rows if str(row.get("graph")).endswith(measured.CLASS)}
    if not made:
        return ""
    each = (f"{name.removesuffix(measured.CLASS)} ({call})" for name, call in made.items())
    return f"Generated graphs of their classes stand for these graphs of the report: {', '.join(each)}. "


def smaller(rows):
    """A line for each suite and reason of the items that are smaller than at full size, or not there."""
    found = {}
    for row in rows[1:]:
        if row["scaled"] != 1 or row.get("first"):
            once = "the time was over after one run" if row.get("first") else "as large as the time allowed"
            why = row.get("refused") or row.get("wrong") or once
            size = "-" if row.get("refused") or row.get("wrong") else verdicts.percent(row["scaled"])
            graphs = found.setdefault((row["suite"], size, why), {})
            graphs[row.get("graph") or f"number {row['item']}"] = None
    for (suite, size, why), graphs in found.items():
        yield line(suite, ", ".join(graphs), size, why)
