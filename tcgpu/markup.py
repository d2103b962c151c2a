"""HTML for notebooks and pages, built of elements: a text that becomes part of one is escaped, wherever it is from."""

import html
from typing import TypeVar

VOID = ("br", "img")  # elements that have nothing inside, and no end
Item = TypeVar("Item")


class Markup(str):
    """A piece of HTML."""


def joined(*parts: str, between: str = "") -> Markup:
    """Return pieces of HTML and texts, which are escaped, as one piece; `between`: a piece of HTML between any two."""
    return Markup(between.join(part if isinstance(part, Markup) else html.escape(part) for part in parts))


def element(tag: str, *inside: str, **attributes: str) -> Markup:
    """Return an element with these pieces of HTML or texts inside. Attributes are texts; `class_` is `class`."""
    given = "".join(f' {name.rstrip("_")}="{html.escape(value)}"' for name, value in attributes.items())
    return Markup(f"<{tag}{given}>" if tag in VOID else f"<{tag}{given}>{joined(*inside)}</{tag}>")


def table(lines: list[list[str]]) -> Markup:
    """Return a table of these lines of texts, the first one the heading."""
    kinds = ["th"] + ["td"] * (len(lines) - 1)
    rows = zip(kinds, lines, strict=True)
    return element("table", *(element("tr", *(element(kind, cell) for cell in line)) for kind, line in rows))


class Tabular(list[Item]):
    """A list that prints as a table: `table` returns the lines of texts, the first one the heading."""

    def table(self) -> list[list[str]]:
        raise NotImplementedError

    def __repr__(self) -> str:
        table = self.table()
        widths = [max(map(len, column)) for column in zip(*table, strict=True)]
        return "\n".join("  ".join(map(str.ljust, line, widths)).rstrip() for line in table)

    def _repr_html_(self) -> str:
        return table(self.table())
