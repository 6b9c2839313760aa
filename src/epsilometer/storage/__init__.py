"""Everything that is kept in files, and how it is recognised: journals, recordings, digests."""

from epsilometer.storage.digests import (
    Undigestible,
    code_digest,
    content_digest,
    files_digest,
    input_key,
)

__all__ = [
    "Undigestible",
    "code_digest",
    "content_digest",
    "files_digest",
    "input_key",
]
