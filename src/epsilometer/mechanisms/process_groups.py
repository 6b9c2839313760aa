"""Makes sure that no program which a mechanism runs outlives this process.

A signal handler of ours could not do that, since SIGKILL has none. So a small shell script, the
reaper, reads on its standard input which process groups have begun and which are over. When this
process is gone, however that happened, its input ends, and it kills the groups that are left.
"""

import atexit
import os
import subprocess
from contextlib import suppress

# "+ 123": the process group 123 has begun; "- 123": it is over.
_REAPER_SCRIPT = """
trap '' INT HUP TERM
while read -r sign group; do
  rest=
  for each in $left; do [ "$each" = "$group" ] || rest="$rest $each"; done
  left=$rest
  [ "$sign" = + ] && left="$left $group"
done
for each in $left; do kill -9 -"$each"; done
"""
# By process id: a fork of ours has a reaper of its own.
_reapers: dict[int, subprocess.Popen[bytes]] = {}


def register_process_group(group: int) -> None:
    """Notes that a process group of ours has begun."""
    _tell_reaper("+", group)


def unregister_process_group(group: int) -> None:
    """Notes that a process group of ours is over."""
    _tell_reaper("-", group)


def _tell_reaper(sign: str, group: int) -> None:
    this_process = os.getpid()
    with suppress(OSError):  # without a shell, programs end by themselves
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
        stream.write(f"{sign} {group}\n".encode())
        stream.flush()


@atexit.register
def _dismiss_reaper() -> None:
    """Ends the reaper of this process, if there is one."""
    reaper = _reapers.pop(os.getpid(), None)
    if reaper is not None:
        with suppress(OSError):
            reaper.communicate()
