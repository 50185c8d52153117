"""Loaded into multiprocessing's fork server (and nowhere else) before it forks anything.

The fork server imports the modules on its preload list and offers no other hook, so here an
import has an effect: the server becomes a child subreaper. What a worker leaves behind when it
is killed is then reaped by the server, and not left to the daemon, which may be process 1 of a
container and waits for no strangers.
"""

from __future__ import annotations

import warnings

from .minder import become_subreaper

become_subreaper()
# The server reaps whom it did not fork, but says so each time.
warnings.filterwarnings("ignore", message="forkserver: waitpid returned unexpected pid")
