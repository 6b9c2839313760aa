"""Writes files as a whole or not at all.

The new content is written to a draft in the same folder, flushed to the disk, and then put in the
place of the old file. So a reader finds the old content or the new one, never a fragment, whatever
happens in between: a full disk, an error, a kill. Everything that this program writes, except for
its databases, is written here.
"""

import errno
import os
import re
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import BufferedWriter, FileIO
from pathlib import Path
from typing import IO, Any

# Permissions of a new file, from which the umask takes some away.
_NEW_FILE_MODE = 0o666
# What the system says about a folder in which no file can be created.
_REFUSES_NEW_FILES = (errno.EACCES, errno.EPERM, errno.EROFS)
# What a file system says that cannot flush a file to the disk.
_CANNOT_FLUSH = (errno.EINVAL, errno.ENOTSUP)


def write_atomically(path: str | Path, content: str | bytes) -> Path:
    """Replaces the content of a file, and returns its path.

    Args:
        path: as for `writing`.
        content: a text is written in UTF-8.

    Raises:
        OSError: names the file; its old content is untouched.
    """
    data = content.encode("utf-8") if isinstance(content, str) else content
    with writing(path) as file:
        file.write(data)
    return Path(path)


@contextmanager
def writing(path: str | Path) -> Iterator[IO[bytes]]:
    """Opens a file for writing that replaces the old one when the context ends.

    If the context raises, the old file stays and the new one vanishes.

    Args:
        path: relative to the current folder at the start, even if that changes before the context
            ends. If it is a link, the file behind it is replaced and keeps its permissions. What
            is not a regular file (a terminal, a pipe, /dev/null) cannot be replaced, so it is
            written directly. So is a file in a folder in which no other file can be created.

    Raises:
        OSError: names the file.
    """
    place = os.path.abspath(path)
    old_stat = None
    # If there is no such file or folder, opening the draft says so.
    with _naming(place), suppress(FileNotFoundError, NotADirectoryError):
        old_stat = os.stat(place)
    if old_stat is not None:
        is_regular = stat.S_ISREG(old_stat.st_mode)
        if not is_regular or _open_descriptor(place, old_stat) is not None:
            with _directly(place, old_stat) as file:
                yield file
            return
    target = os.path.realpath(place)
    # Replacing a file needs no permission to write to it, so we ask.
    if old_stat is not None and not os.access(target, os.W_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), place)
    try:
        with _naming(place):
            draft = _Draft(target, place)
    except OSError as error:
        if old_stat is None or error.errno not in _REFUSES_NEW_FILES:
            raise
        with _directly(place, old_stat) as file:
            yield file
        return
    try:
        yield draft.file
        draft.finish(old_stat)
    finally:
        draft.discard()


class NamedFile(FileIO):
    """A file descriptor whose errors name the file. A fork of this process cannot write to it.

    A child process that inherits a half-filled buffer would write it a second time.

    Args:
        descriptor: open for writing.
        name: of the file, as the user knows it.
    """

    def __init__(self, descriptor: int, name: str) -> None:
        super().__init__(descriptor, "wb")
        self._name = name
        self._owner = os.getpid()

    def write(self, data: Any) -> int:
        """Writes some of the data, and returns the number of bytes."""
        if os.getpid() != self._owner:
            return memoryview(data).nbytes
        with _naming(self._name):
            return super().write(data)


class _Draft:
    """A file in the folder of the one that it is going to replace.

    It has no name where the system allows that: a file without a name vanishes with the process,
    even when the process is killed.

    Args:
        target: the path of the file to replace, without links.
        shown: the path as the user knows it, for errors.
    """

    def __init__(self, target: str, shown: str) -> None:
        self._target = target
        self._folder = os.path.dirname(target)
        self._shown = shown
        self._owner = os.getpid()
        # Short, because the target's own name may be as long as a name can be.
        name = f".epsilometer-{os.getpid()}-{os.urandom(6).hex()}.part"
        self._path = os.path.join(self._folder, name)
        self._has_name = False
        self.file = BufferedWriter(NamedFile(self._open(), shown))

    def _open(self) -> int:
        """Creates the draft, and returns its descriptor."""
        if hasattr(os, "O_TMPFILE") and os.path.isdir("/proc/self/fd"):
            with suppress(OSError):  # not every file system has files without a name
                return os.open(self._folder, os.O_TMPFILE | os.O_RDWR, _NEW_FILE_MODE)
        flags = os.O_CREAT | os.O_EXCL | os.O_RDWR
        descriptor = os.open(self._path, flags, _NEW_FILE_MODE)
        self._has_name = True
        return descriptor

    def finish(self, old_stat: os.stat_result | None) -> None:
        """Puts the draft in the place of the old file.

        Args:
            old_stat: of the old file; None if there is none.
        """
        if os.getpid() != self._owner:
            return
        self.file.flush()
        with _naming(self._shown):
            descriptor = self.file.fileno()
            _keep_permissions(descriptor, old_stat)
            try:
                os.fsync(descriptor)
            except OSError as error:
                if error.errno not in _CANNOT_FLUSH:
                    raise
            if not self._has_name:
                # Python follows the link only if a folder's descriptor is given, which an
                # absolute path ignores.
                os.link(
                    f"/proc/self/fd/{descriptor}",
                    self._path,
                    src_dir_fd=descriptor,
                    follow_symlinks=True,
                )
                self._has_name = True
            self.file.close()
            os.replace(self._path, self._target)
            self._has_name = False
            # Flushes the new name to the disk as well. The content is there already, so nothing is
            # lost if this fails.
            with suppress(OSError):
                folder = os.open(self._folder, os.O_RDONLY)
                try:
                    os.fsync(folder)
                finally:
                    os.close(folder)

    def discard(self) -> None:
        """Removes the draft unless it has taken its place."""
        if os.getpid() != self._owner:
            return
        with suppress(OSError, ValueError):  # what could not be written cannot be flushed either
            self.file.raw.close()
        if self._has_name:
            with suppress(OSError):
                os.unlink(self._path)


@contextmanager
def _directly(place: str, old_stat: os.stat_result) -> Iterator[IO[bytes]]:
    """Opens a file that is written in place, because it cannot be replaced."""
    already_open = _open_descriptor(place, old_stat)
    with _naming(place):
        if already_open is not None:
            descriptor = os.dup(already_open)
        else:
            flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC
            descriptor = os.open(place, flags, _NEW_FILE_MODE)
    file = BufferedWriter(NamedFile(descriptor, place))
    try:
        yield file
        file.flush()
    finally:
        with suppress(OSError, ValueError):
            file.raw.close()


def _open_descriptor(place: str, old_stat: os.stat_result) -> int | None:
    """Returns the open descriptor for which a name such as /dev/fd/7 or /dev/stdout stands.

    Writing has to continue at the descriptor's position.
    """
    named = re.fullmatch(r"/(?:dev|proc/self)/fd/([0-9]+)", place)
    if named is not None:
        return int(named.group(1))
    for descriptor, stream in ((1, sys.stdout), (2, sys.stderr)):
        with suppress(OSError, ValueError):
            if os.path.samestat(old_stat, os.fstat(descriptor)):
                if stream is not None:
                    stream.flush()
                return descriptor
    return None


def _keep_permissions(descriptor: int, old_stat: os.stat_result | None) -> None:
    """Gives a file the owner and the permissions of the old one."""
    if old_stat is None:
        return
    new_stat = os.fstat(descriptor)
    is_same_owner = new_stat.st_uid == old_stat.st_uid and new_stat.st_gid == old_stat.st_gid
    if not is_same_owner:
        with suppress(OSError):  # only root may give files away
            os.fchown(descriptor, old_stat.st_uid, old_stat.st_gid)
    with suppress(OSError):  # file systems without permissions
        os.fchmod(descriptor, stat.S_IMODE(old_stat.st_mode))


@contextmanager
def _naming(place: str) -> Iterator[None]:
    """Gives errors the name of the file that the user knows."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), place) from None
