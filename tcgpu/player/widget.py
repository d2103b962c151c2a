"""The player in a notebook: a widget. In a stored notebook it is a picture, and a text that says what it shows."""

import base64

import anywidget
import traitlets

from tcgpu import figures, player


class Player(anywidget.AnyWidget):
    """A widget that plays a recording; `step` is the number of the step that is shown, from 0.

    still: a function without arguments that returns a Figure, for where no widget is shown; None for no such picture.
    words: the text form.
    """

    _esm = player.script()
    _css = player.style()
    recording = traitlets.Dict().tag(sync=True)
    step = traitlets.Int(0).tag(sync=True)

    def __init__(self, recording: dict, still=None, words: str = "", **more):
        self._still, self._words = still, words or f"<Player {recording['title']}>"
        super().__init__(recording=recording, **more)

    def __repr__(self):
        return self._words

    def _repr_mimebundle_(self, **how):
        data, metadata = super()._repr_mimebundle_(**how)
        if self._still:
            data["image/png"] = base64.b64encode(figures.png(self._still())).decode()
        return data, metadata
