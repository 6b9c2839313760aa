"""What is kept of an audit, and how it is recognised again: digests of inputs, code and files."""

from epsilometer.storage.digests import Undigestible, code_digest, content_digest, files_digest, input_key

__all__ = ["Undigestible", "code_digest", "content_digest", "files_digest", "input_key"]
