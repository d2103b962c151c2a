"""Numba's cache of machine code on disk, made robust.

It is in the folder that NUMBA_CACHE_DIR names, else in `native` in the user's cache folder of tcgpu. Numba alone would
keep it beside the source, where it stays when the package is removed. If there is no folder that can be written to,
Numba raises an exception; here the code is then kept in a private temporary folder, or not at all. A damaged file makes
Numba fail at every later run; here the function is compiled again and the file overwritten. Numba looks for changes in
the function's own file alone, and here what it calls and uses from other modules counts, too. Files are replaced
atomically and named by what they hold, so several processes may write at once.
"""

import contextlib
import functools
import hashlib
import logging
import os
import pickle
import stat
import tempfile

import numba
from numba.core.caching import FunctionCache, IndexDataCacheFile
from numba.core.serialize import dumps

from tcgpu.engines.cache_folder import cache_folder
from tcgpu.engines.meaning import meaning

log = logging.getLogger("tcgpu")


def cached(function):
    """Keep the machine code of a Numba dispatcher on disk, if there is a folder for it; returns the dispatcher."""
    try:
        function._cache = _Cache(function.py_func)
    except RuntimeError:  # Numba found no folder
        default = numba.config.CACHE_DIR
        numba.config.CACHE_DIR = _temporary_folder() or default
        try:
            with contextlib.suppress(RuntimeError):  # again no folder, or it has been removed, or its disk is full
                function._cache = _Cache(function.py_func)
        finally:
            numba.config.CACHE_DIR = default
    return function


_named, _beside_the_source, _user_wide, *_others = FunctionCache._impl_class._locator_classes  # Numba's folders


class _UsersFolder(_user_wide):
    """A folder for the functions of a source file, in the user's cache folder of tcgpu instead of Numba's."""

    def get_cache_path(self):
        return str(cache_folder() / "native" / os.path.basename(self._cache_path))


class _Content(FunctionCache._impl_class):
    """What is kept of a compiled function, as Numba does it, and in which folder."""

    _locator_classes = [_named, _UsersFolder, *_others]


class _Files(IndexDataCacheFile):
    """A file for each key of a function, named by the key: one that is damaged, or holds another key's, is missing.

    Numba alone numbers the files, in an index. What then holds other code than the index says, because two processes
    wrote at once or one was ended between its two files, would be run.
    """

    def save(self, key, data):
        content = dumps((key, data))
        self._save_data(self._name(key), (hashlib.sha256(content).digest(), content))

    def load(self, key):
        try:
            checksum, content = self._load_data(self._name(key))
            if hashlib.sha256(content).digest() == checksum:
                kept, data = pickle.loads(content)
                return data if kept == key else None
        except FileNotFoundError:
            pass
        except Exception as error:  # a damaged pickle may raise anything
            log.debug("%s: damaged, compiled again: %r", self._name(key), error)
        return None

    def _name(self, key):
        return self._data_name_pattern.format(number=int.from_bytes(hashlib.sha256(repr(key).encode()).digest()[:8]))


class _Cache(FunctionCache):
    """Numba's cache of one function's machine code."""

    _impl_class = _Content

    def __init__(self, function):
        super().__init__(function)
        self._cache_file = _Files(self._cache_path, self._impl.filename_base, None)

    def _index_key(self, sig, codegen):
        """Numba's version, the types, the processor, and what the function is and reaches.

        Numba's own key has the values of closures, of which compiled functions differ in each process.
        """
        return numba.__version__, sig, codegen.magic_tuple(), meaning(self._py_func)

    def save_overload(self, sig, data):
        """Write the code; if that fails (a full disk), the next run compiles again."""
        try:
            super().save_overload(sig, data)
        except Exception as error:
            log.debug("%s: not written: %r", self.cache_path, error)


@functools.cache
def _temporary_folder():
    """The path of this user's private temporary folder for machine code, or None; logs it once."""
    why = "no folder for compiled code can be written to"
    try:
        folder = os.path.join(tempfile.gettempdir(), f"numba-tcgpu-{os.geteuid()}")
        with contextlib.suppress(FileExistsError):
            os.mkdir(folder, 0o700)
        found = os.lstat(folder)  # another user may have made it, and code from there would be run
        private = stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & 0o077
        if private and os.access(folder, os.W_OK | os.X_OK):
            log.warning("tcgpu: %s; it is kept in %s (NUMBA_CACHE_DIR names another folder)", why, folder)
            return folder
    except (OSError, AttributeError):  # no temporary folder; a system without user numbers
        pass
    log.warning("tcgpu: %s; every process compiles again (NUMBA_CACHE_DIR names another folder)", why)
    return None
