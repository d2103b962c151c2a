"""The folder in which tcgpu keeps what it compiled and downloaded."""

import os
from pathlib import Path

import platformdirs


def cache_folder() -> Path:
    """Return the folder that TCGPU_CACHE names, or the user's cache folder for tcgpu on this system."""
    return Path(os.environ.get("TCGPU_CACHE") or platformdirs.user_cache_dir("tcgpu"))
