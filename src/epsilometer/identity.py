"""Which code was audited: a digest, its file and its commit, for the record."""

import os
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

# Whoever sets this variable wants to be named in results.
RUN_BY = "EPSILOMETER_RUN_BY"
# Wrappers around a function that are looked through: an object may pretend to have any attribute.
_MAX_WRAPPERS = 100


@dataclass(frozen=True, slots=True)
class CodeIdentity:
    """What is needed to say which code was audited, noted while the mechanism is at hand.

    Calling it asks git about the file; a result does so when its identity is first read.

    Attributes:
        code_digest: of the mechanism's code; empty if it has no content to recognise it by.
        file: the source file of the code; None if it has none.
        modified: when the file was last changed, in nanoseconds.
        run_by: who ran the audit, if they want to be named.
    """

    code_digest: str
    file: Path | None
    modified: int
    run_by: str

    @classmethod
    def of(cls, mechanism: Any) -> "CodeIdentity":
        """The identity of a mechanism's code as it is now."""
        try:
            code_digest = str(mechanism.identity_digest())
        except Exception:  # an open connection has no content; the audit is none the worse for it
            code_digest = ""
        file = _source_file(mechanism)
        return cls(
            code_digest=code_digest,
            file=file,
            modified=0 if file is None else file.stat().st_mtime_ns,
            run_by=os.environ.get(RUN_BY, ""),
        )

    def __call__(self) -> dict[str, Any]:
        """The identity as plain data.

        Returns:
            `code_digest`, `file`, `commit`, `dirty` (whether the file differs from the commit),
            each where it is known, and `run_by` if the variable `EPSILOMETER_RUN_BY` was set.
            Files are named from the top of their repository.
        """
        identity: dict[str, Any] = {"code_digest": self.code_digest}
        if self.file is not None:
            identity.update(_commit(self.file, self.modified))
        if self.run_by:
            identity["run_by"] = self.run_by
        return identity


def _source_file(mechanism: Any) -> Path | None:
    """The file in which the code of a mechanism stands; None for programs and typed-in code."""
    code = getattr(mechanism, "function", mechanism)
    for _ in range(_MAX_WRAPPERS):
        if hasattr(code, "func"):  # a partial function
            code = code.func
        elif hasattr(code, "__wrapped__"):  # decorated, as by functools.cache
            code = code.__wrapped__
        else:
            break
    definition = code if hasattr(code, "__code__") or isinstance(code, type) else type(code)
    module = str(getattr(definition, "__module__", ""))
    if module.startswith("epsilometer.mechanisms"):  # programs, services, recordings
        return None
    from inspect import getsourcefile  # slow to import: --version asks here, too

    try:
        file = Path(getsourcefile(definition) or "")
        return file if file.is_file() else None
    except (TypeError, OSError, ValueError):  # compiled, or typed in
        return None


@cache
def _commit(path: Path, changed: int) -> dict[str, Any]:
    """The name of a file and its commit; asked again when the file has changed."""
    import subprocess

    git = ["git", "-C", str(path.parent)]
    try:
        answers = [
            subprocess.run(
                [*git, *words], capture_output=True, text=True, timeout=2.0, check=True
            ).stdout.strip()
            for words in (
                ["rev-parse", "--show-toplevel", "HEAD"],
                ["status", "--porcelain", "--", str(path)],
            )
        ]
        top, commit = answers[0].splitlines()
        return {
            "file": str(path.resolve().relative_to(Path(top).resolve())),
            "commit": commit,
            "dirty": bool(answers[1]),
        }
    except (OSError, subprocess.SubprocessError, ValueError):
        return {"file": path.name}
