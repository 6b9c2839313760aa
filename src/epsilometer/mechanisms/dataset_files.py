"""Datasets in temporary files, for programs that read a file; none of them outlives its run.

Every run finds a folder of its own with nothing in it but the dataset, so that a program which
changes its input, or leaves something beside it, does not change the next run. The folder has the
same name in all runs of a thread: a name that depended on the dataset would be a difference between
the two inputs that is not in the data.
"""

import os
import secrets
import shutil
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from epsilometer.errors import MechanismError
from epsilometer.mechanisms.process_groups import register_folder, unregister_folder

# The beginning of the names of our folders.
_PREFIX = "epsilometer-"
# Bytes of randomness in such a name: nobody else has one like it.
_NAME_BYTES = 8
_names = threading.local()


@contextmanager
def written_dataset(content: bytes, ending: str) -> Iterator[str]:
    """Writes a dataset to a temporary file, and removes it afterwards.

    The file is also removed if this process is killed meanwhile.

    Args:
        content: of the file.
        ending: of its name, e.g. "csv".

    Yields:
        The absolute path of the file, which only this user can read.

    Raises:
        MechanismError: if it cannot be written.
    """
    parent = Path(tempfile.gettempdir()).absolute()
    folder = parent / _folder_name()
    register_folder(folder)
    try:
        try:
            folder.mkdir(mode=0o700)
            path = folder / f"dataset.{ending}"
            path.write_bytes(content)
        except OSError as error:
            raise MechanismError(
                f"the dataset cannot be written to {folder}: {error.strerror}; the variable TMPDIR "
                "names the folder for temporary files"
            ) from error
        yield str(path)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        unregister_folder(folder)


def _folder_name() -> str:
    """Returns the name of this thread's folder; a fork of this process has another one."""
    if getattr(_names, "process", None) != os.getpid():
        _names.process = os.getpid()
        _names.name = _PREFIX + secrets.token_hex(_NAME_BYTES)
    return str(_names.name)
