"""Files are written whole or not at all."""

import errno
import os
import resource
import signal
import stat
import subprocess
import sys
import threading
from contextlib import contextmanager

import pytest

from epsilometer.storage import writing as module
from epsilometer.storage.writing import write_atomically, writing


@pytest.fixture(params=["nameless", "named"])
def kind(request, monkeypatch):
    """Both ways to make a draft."""
    if request.param == "named":
        monkeypatch.delattr(module.os, "O_TMPFILE", raising=False)
    return request.param


@contextmanager
def small_files():
    """No file may become larger than 1000 bytes: not that of pytest's own output either, so not for a whole test."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_text_and_bytes(tmp_path, kind):
    assert write_atomically(tmp_path / "a", "ε\n") == tmp_path / "a"
    write_atomically(str(tmp_path / "b"), b"\0\xff")
    assert (tmp_path / "a").read_bytes() == "ε\n".encode()
    assert (tmp_path / "b").read_bytes() == b"\0\xff"
    assert names(tmp_path) == ["a", "b"]


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, SystemExit, GeneratorExit])
def test_an_error_leaves_the_old_file_and_nothing_else(tmp_path, kind, error):
    path = tmp_path / "r.json"
    path.write_text("OLD")

    def fail():
        with writing(path) as file:
            file.write(b"x" * 100_000)
            raise error

    with pytest.raises(error):
        fail()
    assert path.read_text() == "OLD"
    assert names(tmp_path) == ["r.json"]


@pytest.mark.parametrize("size", [1001, 100_000])
def test_a_full_disk_leaves_the_old_file_and_names_it(tmp_path, kind, size):
    path = tmp_path / "r.json"
    path.write_text("OLD")
    with small_files(), pytest.raises(OSError, match="File too large") as caught:
        write_atomically(path, "x" * size)
    assert (caught.value.errno, caught.value.filename) == (errno.EFBIG, str(path))
    assert path.read_text() == "OLD"
    assert names(tmp_path) == ["r.json"]


@pytest.mark.parametrize("step", ["fsync", "replace"])
def test_whatever_fails_at_the_end_leaves_the_old_file(tmp_path, kind, monkeypatch, step):
    def full(*arguments, **keywords):
        raise OSError(errno.ENOSPC, "No space left on device")

    path = tmp_path / "r.json"
    path.write_text("OLD")
    monkeypatch.setattr(module.os, step, full)
    with pytest.raises(OSError, match="No space left") as caught:
        write_atomically(path, "new")
    assert caught.value.filename == str(path)
    assert path.read_text() == "OLD"
    assert names(tmp_path) == ["r.json"]


@pytest.mark.parametrize("ending", [signal.SIGKILL, signal.SIGTERM])
def test_a_kill_leaves_the_old_file(tmp_path, ending):
    path = tmp_path / "r.json"
    path.write_text("OLD")
    code = (
        "import os, sys\nfrom epsilometer.storage.writing import writing\n"
        "with writing(sys.argv[1]) as file:\n"
        "    file.write(b'x' * 100_000); file.flush(); os.kill(os.getpid(), int(sys.argv[2]))\n"
    )
    ended = subprocess.run([sys.executable, "-c", code, path, str(int(ending))])
    assert ended.returncode == -ending
    assert path.read_text() == "OLD"
    if hasattr(os, "O_TMPFILE"):
        assert names(tmp_path) == ["r.json"]


def test_the_file_behind_a_link_is_replaced(tmp_path, kind):
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "r.json").write_text("OLD")
    (tmp_path / "link").symlink_to("real/r.json")
    (tmp_path / "new").symlink_to("real/not-yet")
    write_atomically(tmp_path / "link", "new")
    write_atomically(tmp_path / "new", "made")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real" / "r.json").read_text() == "new"
    assert (tmp_path / "real" / "not-yet").read_text() == "made"


def test_permissions_are_kept_and_new_files_are_like_others(tmp_path, kind):
    path = tmp_path / "r.json"
    path.write_text("OLD")
    path.chmod(0o640)
    write_atomically(path, "new")
    write_atomically(tmp_path / "other", "new")
    (tmp_path / "usual").write_text("")
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert (tmp_path / "other").stat().st_mode == (tmp_path / "usual").stat().st_mode


def test_a_file_that_may_not_be_written_stays(tmp_path, monkeypatch):
    path = tmp_path / "r.json"
    path.write_text("OLD")
    monkeypatch.setattr(module.os, "access", lambda *_: False)  # root may always
    with pytest.raises(PermissionError) as caught:
        write_atomically(path, "new")
    assert caught.value.filename == str(path)
    assert path.read_text() == "OLD"


def test_a_folder_that_takes_no_other_file(tmp_path, monkeypatch):
    path = tmp_path / "r.json"
    path.write_text("OLD, AND LONGER")

    def refuse(self):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(module._Draft, "_open", refuse)
    write_atomically(path, "new")
    assert path.read_text() == "new"
    with pytest.raises(PermissionError, match="another"):
        write_atomically(tmp_path / "another", "new")


@pytest.mark.parametrize("name", ["no/such/folder/r.json", "file/r.json", ".", "n" * 300])
def test_places_where_no_file_can_be(tmp_path, name):
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match=r"r\.json|directory|too long") as caught:
        write_atomically(tmp_path / name, "new")
    assert caught.value.filename == str(tmp_path / name)
    assert names(tmp_path) == ["file"]


def test_the_longest_name_that_there_is(tmp_path, kind):
    write_atomically(tmp_path / ("n" * 255), "new")
    assert (tmp_path / ("n" * 255)).read_text() == "new"


def test_what_is_no_regular_file_is_written_directly(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text()))
    reader.start()
    write_atomically(pipe, "through")
    reader.join(10)
    assert read == ["through"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    write_atomically("/dev/null", "nothing")
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no full device")
def test_a_full_device_is_named():
    with pytest.raises(OSError, match="No space left") as caught:
        write_atomically("/dev/full", "nothing")
    assert caught.value.filename == "/dev/full"


@pytest.mark.skipif(not os.path.exists("/dev/stdout"), reason="this system has no such name")
def test_standard_output_goes_on_where_it_is(tmp_path):
    code = (
        "import sys\nfrom epsilometer.storage.writing import write_atomically\n"
        "print('before'); write_atomically('/dev/stdout', 'between\\n'); print('after')"
    )
    with (tmp_path / "out").open("w") as out:
        subprocess.run([sys.executable, "-c", code], stdout=out, check=True)
    assert (tmp_path / "out").read_text() == "before\nbetween\nafter\n"
    piped = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, check=True)
    assert piped.stdout == b"before\nbetween\nafter\n"


def test_another_folder_in_between_changes_nothing(tmp_path, kind, monkeypatch):
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    with writing("r.json") as file:
        os.chdir("elsewhere")
        file.write(b"new")
    assert (tmp_path / "r.json").read_text() == "new"
    assert names(tmp_path / "elsewhere") == []


def test_a_fork_writes_nothing(tmp_path):
    code = (
        "import os, sys\nfrom epsilometer.storage.writing import writing\n"
        "with writing(sys.argv[1]) as file:\n"
        "    file.write(b'once\\n')\n"
        "    child = os.fork()\n"
        "    if child: os.waitpid(child, 0)\n"
    )
    subprocess.run([sys.executable, "-c", code, tmp_path / "r"], check=True)
    assert (tmp_path / "r").read_text() == "once\n"
    assert names(tmp_path) == ["r"]
