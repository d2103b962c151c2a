"""The machine code of functions for the CPU, kept on disk.

It is in the folder that NUMBA_CACHE_DIR names, else in `native` in the user's cache folder of tcgpu; if that cannot be
written to, in a private temporary folder, or nowhere. Numba's own cache keeps it beside the source, where it stays when
the package is removed, raises an exception if there is no folder, and fails at every run once a file is damaged. It
looks for changes in the function's own file alone; here what it calls and uses from other modules counts, too.
"""

import functools
import hashlib
import logging
import os
import pickle
import platform
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

import numba
from numba.core.caching import NullCache
from numba.core.compiler import CompileResult
from numba.core.serialize import dumps

from tcgpu.engines.cache_folder import cache_folder, read, say_compiling, writable, write
from tcgpu.engines.meaning import meaning

log = logging.getLogger("tcgpu")


def cached(dispatcher):
    """Keep the machine code of a Numba dispatcher on disk, if there is a folder for it; returns the dispatcher."""
    folder = _folder()
    if folder is not None:
        dispatcher._cache = _Cache(dispatcher.py_func, folder)
    return dispatcher


class _Cache(NullCache):
    """The kept machine code of one function, a file for each key.

    The key is Python's version and Numba's, the types, the processor, and what the function is and reaches.
    """

    def __init__(self, function, folder):
        self.function, self.folder = function, folder

    def _key_and_path(self, signature, codegen):
        versions = platform.python_version(), numba.__version__
        key = versions, signature, codegen.magic_tuple(), meaning(self.function)
        return key, self.folder / f"{hashlib.sha256(repr(key).encode()).hexdigest()[:40]}.nbc"

    def load_overload(self, signature, target_context):
        target_context.refresh()
        key, path = self._key_and_path(signature, target_context.codegen())
        content = read(path)
        if content is not None:
            try:
                kept, result = pickle.loads(content)
                if kept == key:
                    return CompileResult._rebuild(target_context, *result)
            except Exception as error:  # other versions of what Numba uses
                log.debug("%s: compiled again: %r", path, error)
        say_compiling()
        return None

    def save_overload(self, signature, result):
        """Write the code; if that fails (a full disk), the next run compiles again."""
        if result.library.has_dynamic_globals:  # addresses of this process
            return
        key, path = self._key_and_path(signature, result.codegen)
        try:
            write(path, dumps((key, result._reduce())))
        except Exception as error:
            log.debug("%s: not written: %r", path, error)


@functools.cache
def _folder():
    """The folder for machine code, or None; logs it once if that is not the usual one."""
    named = numba.config.CACHE_DIR
    usual = Path(named) if named else cache_folder() / "native"
    if writable(usual):
        return usual
    why = "no folder for compiled code can be written to"
    with suppress(OSError, AttributeError):  # no temporary folder; a system without user numbers
        folder = Path(tempfile.gettempdir(), f"numba-tcgpu-{os.geteuid()}")
        with suppress(FileExistsError):
            folder.mkdir(0o700)
        found = folder.lstat()  # another user may have made it, and code from there would be run
        private = stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o077
        if private and writable(folder):
            log.warning("tcgpu: %s; it is kept in %s (NUMBA_CACHE_DIR names another folder)", why, folder)
            return folder
    log.warning("tcgpu: %s; every process compiles again (NUMBA_CACHE_DIR names another folder)", why)
    return None
