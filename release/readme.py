"""The README as a package index shows it, where relative links lead nowhere: a hook that `pyproject.toml` names."""

import re
from pathlib import Path

from hatchling.metadata.plugin.interface import MetadataHookInterface

LINK = re.compile(r"(!?)\[((?:[^][]|`[^`]*`)*)\]\((?!https?://)([^)\s]+)\)")


def for_index(text, repository):
    """Return the README with absolute links into the repository.

    repository: its public address. While it is None, links become their words, and pictures theirs.
    """

    def absolute(link):
        picture, words, path = link.groups()
        if repository is None:
            return words
        return f"{picture}[{words}]({repository}/{'raw' if picture else 'blob'}/main/{path})"

    text = re.sub(r"\]\(#", "](README.md#", text)
    return LINK.sub(absolute, text)


class Readme(MetadataHookInterface):
    """Sets the field `readme`."""

    def update(self, metadata):
        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        address = metadata.get("urls", {}).get("Repository")
        metadata["readme"] = {"content-type": "text/markdown", "text": for_index(text, address)}
