"""The folder in which tcgpu keeps what it compiled and downloaded; files there that several processes may write.

Such a file begins with a checksum. It is written under a temporary name and renamed.
"""

import hashlib
import logging
import os
import secrets
from contextlib import suppress
from functools import cache
from pathlib import Path

import platformdirs

from tcgpu import errors

log = logging.getLogger("tcgpu")

CHECKSUM = hashlib.sha256().digest_size
# about how long two cores compile what a verb needs (`benchmarks/first_use.py`), if not about 4 s
COMPILED_SECONDS = {
    "clustering": 5, "count": 3, "count_subgraphs": 3, "k_truss": 6, "motifs": 9, "read": 7, "triangles": 6,
    "truss_numbers": 7,
}  # fmt: skip


@cache
def say_compiling():
    """Say on stderr, once in a session, what is compiled for whom, and about how long that takes.

    TCGPU_QUIET=1 says nothing. `tcgpu warm` compiles all in advance.
    """
    if os.environ.get("TCGPU_QUIET", "0") in ("", "0"):
        seconds = COMPILED_SECONDS.get(errors.running, 4)
        log.warning("compiling %s, about %d s, once per machine", errors.running or "tcgpu", seconds)


def cache_folder() -> Path:
    """Return the folder that TCGPU_CACHE names, or the user's cache folder for tcgpu on this system."""
    return Path(os.environ.get("TCGPU_CACHE") or platformdirs.user_cache_dir("tcgpu"))


def writable(folder):
    """Whether a folder is writable; creates it if it does not exist."""
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
    return folder.is_dir() and os.access(folder, os.W_OK | os.X_OK)


def read(path):
    """What was written to a file; None if there is none, or if it is damaged."""
    try:
        data = path.read_bytes()
    except OSError:
        return None
    content = data[CHECKSUM:]
    return content if hashlib.sha256(content).digest() == data[:CHECKSUM] else None


def write(path, content):
    """Write a file that `read` reads."""
    part = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part.write_bytes(hashlib.sha256(content).digest() + content)
        os.replace(part, path)
    except OSError:
        with suppress(OSError):
            part.unlink()
        raise
