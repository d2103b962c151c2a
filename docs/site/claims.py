"""The page of claims, docs/claims.md: `python docs/site/claims.py` writes it anew from data/published/claims.csv."""

import re
from collections import Counter
from itertools import groupby
from pathlib import Path

from tcgpu.datasets import published

PAGE = Path(__file__).resolve().parent.parent / "claims.md"
TITLES = {
    "Iakovidis": "I. Iakovidis, Finding the number of triangles in a graph (2019)",
    "Bisson & Fatica": "M. Bisson and M. Fatica, Static graph challenge on GPU (2017)",
    "TriCore": "Y. Hu, H. Liu and H. H. Huang, TriCore, the slides (2018)",
    "Chatterjee et al.": "A. Chatterjee, S. Radhakrishnan, J. K. Antonio, On analyzing large graphs using GPUs (2013)",
}
STATES = {
    "reproduced": "computed, run or measured here, and so it is",
    "measured again": "a time or a rate of the authors' machine; the place has ours of the same thing",
    "differs": "computed or measured here, and it is otherwise; the note says how",
    "erratum": "wrong in the paper, and listed with the reason in [errata.csv](../data/published/errata.csv)",
    "quoted": "a fact of the authors' machines, programs and prices, or a motive, which no run here can hold",
    "unknown": "the source does not say enough; the note says what is missing",
    "not reproduced": "not done here; the note has the reason",
}
COLUMNS = "place", "claim", "state", "where", "note"
LINKED = "notebooks/", "data/", "docs/", "tcgpu/"
TOP = """\
# The papers' claims

Every number, table, figure, equation, algorithm and statement of the four papers, and what became of it here. The list
is [claims.csv](../data/published/claims.csv), from which `python docs/site/claims.py` writes this page;
`tests/test_claims.py` checks that each place exists. The papers were read as converted texts, without their drawings. A
state is one of:

"""


def places(row):
    """The places of a claim: (file, what follows # or :: in it, or "")."""
    named = [place for place in (row["where"] or "").split("; ") if place]
    return [(re.split("#|::", place)[0], "".join(re.split("#|::", place, maxsplit=1)[1:])) for place in named]


def page(rows):
    """The text of the page."""
    many = Counter(row["state"] for row in rows)
    lines = [TOP + line_of("state", "claims", "meaning"), line_of(*3 * ["---"])]
    lines += [line_of(state, many[state], meaning) for state, meaning in STATES.items()]
    for paper, claims in groupby(rows, key=lambda row: row["paper"]):
        lines += ["", f"## {TITLES[paper]}", "", line_of("", *COLUMNS), line_of(*["---"] * (1 + len(COLUMNS)))]
        for row in claims:
            shown_there = row | {"where": ", ".join(map(shown, places(row)))}
            lines.append(line_of(*(shown_there[column] or "" for column in ("id", *COLUMNS))))
    return "\n".join(lines) + "\n"


def line_of(*cells):
    """A line of a table."""
    return f"| {' | '.join(str(cell).replace('|', chr(92) + '|') for cell in cells)} |"


def shown(place):
    """A place as a link, or as code if it is not on the site."""
    file, part = place
    words = f"{Path(file).stem}: {part}" if part[:1].isupper() else Path(file).stem
    return f"[{words}](../{file})" if file.startswith(LINKED) else f"`{file}`"


if __name__ == "__main__":
    PAGE.write_text(page(published("claims")), encoding="utf-8")
