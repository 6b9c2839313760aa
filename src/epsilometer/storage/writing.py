"""Files are written whole or not at all: beside the old one, flushed to the disk, and then put in its place.

So whoever opens a file of ours finds the old content or the new one, never a fragment, whatever happens in between: a
full disk, an error, a kill. Everything that this program writes, except for its databases, is written here.
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


def write_whole(path: str | Path, content: str | bytes) -> Path:
    """Puts a content in the place of whatever the file held, and returns its path.

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
    """A file to write to, which takes the place of the old one when the context ends, and vanishes if it raises.

    Args:
        path: relative to the folder of now, wherever the program is when the context ends. The file behind a link is
            replaced, not the link, and keeps its permissions. What is no regular file (a terminal, a pipe, /dev/null)
            cannot be replaced, so it is written directly, like a file in a folder that takes no other one.

    Raises:
        OSError: names the file.
    """
    place = os.path.abspath(path)
    known = None
    # Otherwise nothing is there yet, or nowhere to be; opening it says which.
    with _naming(place), suppress(FileNotFoundError, NotADirectoryError):
        known = os.stat(place)
    if known is not None and (not stat.S_ISREG(known.st_mode) or _open_already(place, known) is not None):
        with _directly(place, known) as file:
            yield file
        return
    target = os.path.realpath(place)
    if known is not None and not os.access(target, os.W_OK):  # renaming would not ask
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), place)
    try:
        with _naming(place):
            draft = _Draft(target, place)
    except OSError as error:
        if known is None or error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise
        with _directly(place, known) as file:
            yield file
        return
    try:
        yield draft.file
        draft.finish(known)
    finally:
        draft.discard()


class NamedFile(FileIO):
    """A descriptor whose errors name the file. A fork of this process cannot write to it.

    A child that inherits a half-filled buffer would write it a second time.
    """

    def __init__(self, descriptor: int, name: str) -> None:
        super().__init__(descriptor, "wb")
        self._name, self._owner = name, os.getpid()

    def write(self, data: Any) -> int:
        """Writes some of the data."""
        if os.getpid() != self._owner:
            return memoryview(data).nbytes
        with _naming(self._name):
            return super().write(data)


class _Draft:
    """A file beside the one that it is going to replace; without a name where the system can do that.

    What has no name vanishes with the process, even when it is killed.
    """

    def __init__(self, target: str, shown: str) -> None:
        self._target, self._shown, self._owner = target, shown, os.getpid()
        # Short, whatever the target is called: its own name may be as long as a name can be.
        self._path = os.path.join(os.path.dirname(target), f".epsilometer-{os.getpid()}-{os.urandom(6).hex()}.part")
        self._has_name = False
        self.file = BufferedWriter(NamedFile(self._open(), shown))

    def _open(self) -> int:
        if hasattr(os, "O_TMPFILE") and os.path.isdir("/proc/self/fd"):
            with suppress(OSError):  # not every file system has it
                return os.open(os.path.dirname(self._target), os.O_TMPFILE | os.O_RDWR, 0o666)
        descriptor = os.open(self._path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o666)
        self._has_name = True
        return descriptor

    def finish(self, known: os.stat_result | None) -> None:
        """Puts it in the place of the old one, which is described by `known`."""
        if os.getpid() != self._owner:
            return
        self.file.flush()
        with _naming(self._shown):
            descriptor = self.file.fileno()
            _keep_permissions(descriptor, known)
            try:
                os.fsync(descriptor)
            except OSError as error:
                if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # file systems that cannot
                    raise
            if not self._has_name:
                # With a folder's descriptor, which an absolute path ignores: only then does Python follow the link.
                os.link(f"/proc/self/fd/{descriptor}", self._path, src_dir_fd=descriptor, follow_symlinks=True)
                self._has_name = True
            self.file.close()
            os.replace(self._path, self._target)
            self._has_name = False
            # The new name, too. The content is on the disk already, so nothing is lost if this fails.
            with suppress(OSError):
                folder = os.open(os.path.dirname(self._target), os.O_RDONLY)
                try:
                    os.fsync(folder)
                finally:
                    os.close(folder)

    def discard(self) -> None:
        """Removes what has not taken its place; nothing after `finish`."""
        if os.getpid() != self._owner:
            return
        with suppress(OSError, ValueError):  # what could not be written cannot be flushed either
            self.file.raw.close()
        if self._has_name:
            with suppress(OSError):
                os.unlink(self._path)


@contextmanager
def _directly(place: str, known: os.stat_result) -> Iterator[IO[bytes]]:
    own = _open_already(place, known)
    with _naming(place):
        descriptor = os.dup(own) if own is not None else os.open(place, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666)
    file = BufferedWriter(NamedFile(descriptor, place))
    try:
        yield file
        file.flush()
    finally:
        with suppress(OSError, ValueError):
            file.raw.close()


def _open_already(place: str, known: os.stat_result) -> int | None:
    """The descriptor that a name such as /dev/fd/7 or /dev/stdout stands for: writing goes on where that stands."""
    named = re.fullmatch(r"/(?:dev|proc/self)/fd/([0-9]+)", place)
    if named is not None:
        return int(named.group(1))
    for descriptor, stream in ((1, sys.stdout), (2, sys.stderr)):
        with suppress(OSError, ValueError):
            if os.path.samestat(known, os.fstat(descriptor)):
                if stream is not None:
                    stream.flush()
                return descriptor
    return None


def _keep_permissions(descriptor: int, known: os.stat_result | None) -> None:
    if known is None:
        return
    mine = os.fstat(descriptor)
    if (mine.st_uid, mine.st_gid) != (known.st_uid, known.st_gid):
        with suppress(OSError):  # only root may give files away
            os.fchown(descriptor, known.st_uid, known.st_gid)
    with suppress(OSError):  # file systems without permissions
        os.fchmod(descriptor, stat.S_IMODE(known.st_mode))


@contextmanager
def _naming(place: str) -> Iterator[None]:
    """Gives errors the name of the file that the user knows."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), place) from None
