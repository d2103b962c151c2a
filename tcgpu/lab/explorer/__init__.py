"""The explorer: a panel in which a person picks a graph and methods, runs them, and sees what they take and why.

explorer = tcgpu.explore()                        # a widget; as the last line of a cell it shows itself
explorer = tcgpu.explore("rmat_8", ["naive", "bitmap"], order="degree", page="Trace")
explorer.run(); explorer.wait(); explorer.rows    # what a click does, and what came of it

words       what may be set, in which words
style       the style sheet
look        pieces: rows of a form, tables, pictures
graphs      the card that picks a graph and its order
methods     the card that picks methods and their knobs
worker      the one thread in which an explorer works
views       a page; the page that compares methods on one graph
traces      the page of what kernels do, access by access
sweep       the page that goes over nonzeros per column
drawing     the charts
panel       all of it together
"""

from tcgpu.lab.explorer.panel import Explorer

__all__ = ["Explorer", "explore"]


def explore(graph="mesh_16x16", methods=("naive", "column_block", "cpu"), *, order=None, engine=None, page="Compare"):
    """Open an explorer: a widget that shows itself as the last line of a cell.

    graph: what it begins with: the name of one that comes with tcgpu, a path, or whatever `as_graph` takes. methods,
    order, engine: likewise; a person changes them all. page: "Compare", "Sweep" or "Trace".
    """
    return Explorer(graph, methods, order=order, engine=engine, page=page)
