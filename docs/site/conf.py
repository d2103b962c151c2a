"""How Sphinx writes the site; `build.py` beside this file lays out what it reads."""

import players
from docutils import nodes
from docutils.utils.math import latex2mathml

import tcgpu

project, author, version, release = "tcgpu", "", tcgpu.__version__, tcgpu.__version__
html_title = f"tcgpu {version}"
extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
root_doc = "index"
exclude_patterns = ["data/graphs", "data/measured", "tcgpu", "benchmarks", "traces"]
html_extra_path = ["extra"]
html_theme = "furo"
html_copy_source = html_show_sourcelink = html_show_copyright = False
html_show_search_summary = False  # a page that is opened as a file cannot read another page
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
autodoc_typehints = "none"  # the docstrings say what is taken
napoleon_google_docstring = False


def write_math(writer, node):
    """Write a formula as MathML, which browsers draw by themselves."""
    block = isinstance(node, nodes.math_block)
    math = latex2mathml.tex2mathml(node.astext(), as_block=block)
    writer.body.append(f'<div class="math">{math}</div>' if block else math)
    raise nodes.SkipNode


def add_player(app, pagename, templatename, context, doctree):
    """Start the players of a page."""
    if players.MARK in context.get("body", ""):
        app.add_css_file("player.css")
        app.add_js_file("player.js", loading_method="defer")


def setup(app):
    app.add_html_math_renderer("mathml", (write_math, None), (write_math, None))
    app.connect("html-page-context", add_player)
