"""How Sphinx writes the site; `build.py` beside this file lays out what it reads."""

import html
import re
import zlib
from pathlib import Path

import players
from docutils import nodes
from docutils.utils.math import latex2mathml

import tcgpu
from tcgpu.player import in_script

project, author, version, release = "tcgpu", "", tcgpu.__version__, tcgpu.__version__
html_title = f"tcgpu {version}"
extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.intersphinx",
    "sphinx.ext.napoleon",
    "sphinx.ext.viewcode",
]
root_doc = "index"
exclude_patterns = ["data/graphs", "data/measured", "tcgpu", "benchmarks", "traces"]
html_extra_path = ["extra"]
html_theme = "furo"
html_copy_source = html_show_sourcelink = html_show_copyright = False
html_math_renderer = "mathml"
html_permalinks_icon = "#"
default_role = "literal"
pygments_style, pygments_dark_style = "friendly", "monokai"

myst_enable_extensions = ["dollarmath"]
html_static_path, html_css_files = ["static"], ["site.css"]
nb_execution_mode = "off"  # build.py has run them
nb_ipywidgets_js = {}  # those would come from a network
nb_merge_streams = True
myst_heading_anchors = 4
suppress_warnings = ["mystnb.unknown_mime_type"]

autodoc_member_order = "bysource"
autodoc_typehints_format = "short"
python_maximum_signature_line_length = 88
napoleon_google_docstring = napoleon_use_param = False  # parameters with one text stay together

# What signatures name of other projects: page -> names. A build asks no network for the projects' own lists of these.
PYTHON, NUMPY = "docs.python.org/3/", "numpy.org/doc/stable/"
ELSEWHERE = {
    f"{PYTHON}library/functions.html": ("bool", "float", "int", "object"),
    f"{PYTHON}library/stdtypes.html": ("bytes", "dict", "list", "range", "str", "tuple"),
    f"{PYTHON}library/constants.html": ("None",),
    f"{PYTHON}library/os.html": ("os.PathLike",),
    f"{PYTHON}library/pathlib.html": ("pathlib.Path",),
    f"{PYTHON}library/typing.html": ("typing.Any",),
    f"{PYTHON}library/collections.abc.html": tuple(
        f"collections.abc.{name}" for name in ("Callable", "Iterable", "Iterator", "Mapping", "Sequence")
    ),
    f"{NUMPY}reference/generated/numpy.ndarray.html": ("numpy.ndarray",),
}


def write_math(writer, node):
    """Write a formula as MathML, which browsers draw by themselves."""
    block = isinstance(node, nodes.math_block)
    math = latex2mathml.tex2mathml(node.astext(), as_block=block)
    writer.body.append(f'<div class="math">{math}</div>' if block else math)
    raise nodes.SkipNode


def write_inventory(path):
    """Write ELSEWHERE in the form that intersphinx reads; return its setting."""
    head = "# Sphinx inventory version 2\n# Project: others\n# Version: 1\n# The remainder is compressed using zlib.\n"
    lines = [f"{name} py:class 1 {page}#$ -\n" for page, names in ELSEWHERE.items() for name in names]
    path.write_bytes(head.encode() + zlib.compress("".join(lines).encode()))
    return {"others": ("https://", path.name)}


intersphinx_mapping = write_inventory(Path(__file__).with_name("others.inv"))


def link_public_name(app, env, node, content):
    """Where a signature names a class by the module that defines it, link to its public name."""
    name = node.get("reftarget", "").rpartition(".")[2]
    if node.get("refdomain") == "py" and name in tcgpu.__all__ and node["reftarget"] != f"tcgpu.{name}":
        python = env.domains["py"]
        return python.resolve_xref(env, node["refdoc"], app.builder, "obj", f"tcgpu.{name}", node, content)


def lighten(app, pagename, templatename, context, doctree):
    """Drop the marks of names, punctuation and blanks in code, 1.3 MB: these look as the code around them.

    Drop the links from a source to the reference, too: those to what has another public name lead nowhere.
    """
    if "body" in context:
        body = re.sub(r'<span class="[npw]">([^<]*)</span>', r"\1", context["body"])
        context["body"] = re.sub(r'<a class="viewcode-back".*?</a>', "", body)


def keep_text(app, pagename, templatename, context, doctree):
    """Keep the text of each section of a page, for the search: a page opened as a file cannot read another page."""
    if pagename == "search":
        app.add_js_file("search_texts.js")
        app.add_js_file("search.js")
    elif context.get("body"):
        body = re.sub(
            r"<(script|style|svg|math)\b.*?</\1>|<a class=\"headerlink.*?</a>", " ", context["body"], flags=re.S
        )
        _, *sections = re.split(r'<section[^>]* id="([^"]+)"[^>]*>', body)
        texts = (" ".join(html.unescape(re.sub(r"<[^>]*>", "", part)).split()) for part in sections[1::2])
        app.env.search_texts = getattr(app.env, "search_texts", {})
        app.env.search_texts[pagename] = dict(zip(sections[::2], texts, strict=True))


def write_texts(app, exception):
    """Write the kept texts, packed, as a script."""
    if exception is None:
        script = f'const SEARCH_TEXTS = "{in_script(app.env.search_texts)}";\n'
        Path(app.outdir, "_static", "search_texts.js").write_text(script, encoding="utf-8")


def add_player(app, pagename, templatename, context, doctree):
    """Start the players of a page."""
    if players.MARK in context.get("body", ""):
        app.add_css_file("player.css")
        app.add_js_file("player.js", loading_method="defer")


def setup(app):
    app.add_html_math_renderer("mathml", (write_math, None), (write_math, None))
    app.connect("html-page-context", add_player)
    app.connect("html-page-context", lighten)
    app.connect("html-page-context", keep_text)
    app.connect("build-finished", write_texts)
    app.connect("missing-reference", link_public_name)
