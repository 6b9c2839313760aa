"""Makes sure that no program which a mechanism runs outlives this process, and no file for it.

A signal handler of ours could not do that, since SIGKILL has none. So a small shell script, the
reaper, reads on its standard input which process groups have begun and which are over, and which
temporary folders there are. When this process is gone, however that happened, its input ends, and
it kills the groups and removes the folders that are left.
"""

import atexit
import os
import subprocess
import threading
from contextlib import suppress
from pathlib import Path

# "+ 123": the process group 123 has begun; "- 123": it is over. "+ epsilometer-1f": there is this
# folder for temporary files; "= /tmp": such folders are in /tmp.
_REAPER_SCRIPT = """
trap '' INT HUP TERM
while read -r sign name; do
  [ "$sign" = = ] && { parent=$name; continue; }
  rest=
  for each in $left; do [ "$each" = "$name" ] || rest="$rest $each"; done
  left=$rest
  [ "$sign" = + ] && left="$left $name"
done
for each in $left; do
  case $each in epsilometer-*) ;; *) kill -9 -"$each" ;; esac
done
for each in $left; do
  case $each in epsilometer-*) ;; *) continue ;; esac
  rm -rf -- "$parent/$each" && continue
  sleep 1  # a program that was killed may just have written something
  rm -rf -- "$parent/$each"
done
"""
# By process id: a fork of ours has a reaper of its own.
_reapers: dict[int, subprocess.Popen[bytes]] = {}
# Threads that begin at the same time must not start two: one would be dropped, and kill its groups.
_lock = threading.Lock()


def register_process_group(group: int) -> None:
    """Notes that a process group of ours has begun."""
    _tell_reaper("+", group)


def unregister_process_group(group: int) -> None:
    """Notes that a process group of ours is over."""
    _tell_reaper("-", group)


def register_folder(folder: Path) -> None:
    """Notes that there will be a temporary folder of ours, whose name begins with "epsilometer-".

    All of them are in the same folder.
    """
    _tell_reaper("=", str(folder.parent))
    _tell_reaper("+", folder.name)


def unregister_folder(folder: Path) -> None:
    """Notes that a temporary folder of ours is gone."""
    _tell_reaper("-", folder.name)


def _tell_reaper(sign: str, name: int | str) -> None:
    this_process = os.getpid()
    with _lock, suppress(OSError):  # without a shell, programs end by themselves
        if this_process not in _reapers:
            _reapers[this_process] = subprocess.Popen(
                ["/bin/sh", "-c", _REAPER_SCRIPT],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,
            )
        stream = _reapers[this_process].stdin
        assert stream is not None
        stream.write(os.fsencode(f"{sign} {name}\n"))
        stream.flush()


def _renew_lock() -> None:
    """Replaces the lock in a fork of this process: another thread may have held it."""
    global _lock
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_renew_lock)


@atexit.register
def _dismiss_reaper() -> None:
    """Ends the reaper of this process, if there is one."""
    reaper = _reapers.pop(os.getpid(), None)
    if reaper is not None:
        with suppress(OSError):
            reaper.communicate()
