"""Locks that work in a forked child, too."""

import os
import threading


def fork_safe_lock():
    """A lock that is free in a forked child: the thread that held it in the parent does not exist there."""
    lock = threading.Lock()
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=lock._at_fork_reinit)
    return lock
