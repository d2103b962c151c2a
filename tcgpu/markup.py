"""HTML for notebooks and pages, built of elements: a text that becomes part of one is escaped, wherever it is from."""

import html

VOID = ("br", "img")  # elements that have nothing inside, and no end


class Markup(str):
    """A piece of HTML."""


def joined(*parts: str, between: str = "") -> Markup:
    """Return pieces of HTML and texts, which are escaped, as one piece; `between`: a piece of HTML between any two."""
    return Markup(between.join(part if isinstance(part, Markup) else html.escape(part) for part in parts))


def element(tag: str, *inside: str, **attributes: str) -> Markup:
    """Return an element with these pieces of HTML or texts inside. Attributes are texts; `class_` is `class`."""
    given = "".join(f' {name.rstrip("_")}="{html.escape(value)}"' for name, value in attributes.items())
    return Markup(f"<{tag}{given}>" if tag in VOID else f"<{tag}{given}>{joined(*inside)}</{tag}>")
