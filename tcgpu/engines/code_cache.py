"""The machine code of compiled functions, kept on disk by Numba's cache, which this makes robust.

Numba looks for a folder that it can write to: NUMBA_CACHE_DIR, `__pycache__` beside the source, the user's cache
folder. Where there is none (a read-only installation and home) it raises an exception; here the code then goes to a
private folder among the temporary ones, or is not kept at all. A damaged file makes Numba fail at every later run;
here it is compiled anew and overwritten. Numba replaces files in one step, so that processes may write at once.
"""

import functools
import hashlib
import logging
import os
import pickle
import stat
import tempfile

import numba
from numba.core.caching import FunctionCache
from numba.core.serialize import dumps

log = logging.getLogger("tcgpu")


def cached(function):
    """Have the machine code of a Numba dispatcher kept on disk, if there is a place for it; returns the dispatcher."""
    try:
        function._cache = _Cache(function.py_func)
    except RuntimeError:  # Numba found no folder
        folder = _temporary_folder()
        if folder is not None:
            own, numba.config.CACHE_DIR = numba.config.CACHE_DIR, folder
            try:
                function._cache = _Cache(function.py_func)
            except RuntimeError:  # the folder has been removed, or its disk is full
                pass
            finally:
                numba.config.CACHE_DIR = own
    return function


class _Content(FunctionCache._impl_class):
    """What a file holds of a compiled function: a checksum, and what Numba writes."""

    def reduce(self, compiled):
        content = dumps(super().reduce(compiled))
        return hashlib.sha256(content).digest(), content

    def rebuild(self, target_context, payload):
        checksum, content = payload
        if hashlib.sha256(content).digest() != checksum:
            raise ValueError("the checksum does not fit the content")
        return super().rebuild(target_context, pickle.loads(content))


class _Cache(FunctionCache):
    """Numba's cache of one function's machine code, with files that may be damaged."""

    _impl_class = _Content

    def load_overload(self, sig, target_context):
        """What was compiled for a signature, or None: if nothing was, or its file is damaged or another signature's."""
        try:
            compiled = super().load_overload(sig, target_context)
            if compiled is None or compiled.signature.args == numba.core.sigutils.normalize_signature(sig)[0]:
                return compiled
        except Exception as error:  # a damaged pickle may raise anything
            log.debug("%s: damaged, compiled anew: %r", self.cache_path, error)
        try:
            self.flush()
        except OSError:
            pass
        return None

    def save_overload(self, sig, data):
        """Keep what was compiled; where that fails (a full disk), it is compiled anew at the next run."""
        try:
            super().save_overload(sig, data)
        except Exception as error:  # the index may be damaged meanwhile, too
            log.debug("%s: not kept: %r", self.cache_path, error)


@functools.cache
def _temporary_folder():
    """The path of this user's private folder for machine code among the temporary ones, or None; says so once."""
    why = "no folder for compiled code can be written to"
    try:
        folder = os.path.join(tempfile.gettempdir(), f"numba-tcgpu-{os.geteuid()}")
        try:
            os.mkdir(folder, 0o700)
        except FileExistsError:
            pass
        about = os.lstat(folder)  # someone else may have made it: code from there would be run
        private = stat.S_ISDIR(about.st_mode) and about.st_uid == os.geteuid() and not about.st_mode & 0o077
        if private and os.access(folder, os.W_OK | os.X_OK):
            log.warning("tcgpu: %s; it is kept in %s (NUMBA_CACHE_DIR names another folder)", why, folder)
            return folder
    except (OSError, AttributeError):  # no temporary folder; a system without user numbers
        pass
    log.warning("tcgpu: %s; every process compiles anew (NUMBA_CACHE_DIR names another folder)", why)
    return None
