"""Hides secrets in everything that is printed or written: passwords, tokens, keys.

Two kinds of secrets are hidden. Those that can be recognised by their form are removed from any
text: user and password in an address, the value after `token=`, the credential after `Bearer`.
Those that the user configured (headers, variables of the environment, arguments of a program) are
known exactly, and are removed wherever they come back, for example in the error message of a
server.
"""

import base64
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from urllib.parse import parse_qsl, unquote

# Stands in the place of a secret.
HIDDEN = "…"

# One of these words in a name such as X-Api-Key, sasToken or DB_PASSWORD makes its value a secret.
_SECRET_WORDS = re.compile(
    r"access|apikey|assertion|auth|authori[sz]ation|bearer|cookie|credentials?|creds|hmac|jwt|key"
    r"|otp|pass|passcode|passphrase|passwd|password|pat|private|pw|pwd|secrets?|session|sid|sig"
    r"|signature|tokens?",
    re.IGNORECASE,
)
# The words of a name: runs of capitals (API), or of small letters with or without a capital.
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
# Anything may stand before a colon in a text, so there only unmistakable words count.
_UNMISTAKABLE = (
    r"(?:token|secret|passw|passphrase|(?:api|access|private|account|auth)[-_]?key|credential"
    r"|authori[sz]ation|cookie)"
)
# A value: quoted or not, with or without the scheme of an authorization header before it.
_VALUE = (
    r"""(?:(?:bearer|basic|digest|token)\s+)?"""
    r"""(?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[^\s,;&'"]+)"""
)
# An address in a text; punctuation at its end belongs to the text.
_ADDRESS = re.compile(r"""[A-Za-z][A-Za-z0-9+.-]{1,20}://[^\s"<>]*?(?=[').,;:]*(?:[\s"<>]|$))""")
# A parameter of a query, with or without the address before it.
_QUERY_PARAMETER = re.compile(r"""(?P<name>[?&][\w.-]{1,60}=)[^\s&'"]+""")
# `name=value` and `name: value`, but not the name of an exception before its message.
_NAMED_VALUE = re.compile(
    rf"""(?<![\w.-])(?=[\w.-]{{0,60}}?{_UNMISTAKABLE})"""
    rf"""(?![\w.-]*(?:error|exception|warning)\b)"""
    rf"""(?P<name>[\w.-]{{1,80}}["']?\s*[=:]\s*){_VALUE}""",
    re.IGNORECASE,
)
# `--api-key value` on a command line.
_OPTION = re.compile(
    rf"(?<!\S)(?P<name>--?(?=[\w-]{{0,60}}?{_UNMISTAKABLE})[\w-]{{1,80}}\s+)(?!-){_VALUE}",
    re.IGNORECASE,
)
# `--user name:password` on a command line.
_USER_OPTION = re.compile(r"(?<!\S)(?P<name>(?:-u|--user|--proxy-user)[ =][^\s:]+:)\S+")
_USER_OPTION_NAMES = ("-u", "--user", "--proxy-user")
# `Bearer …` and `Basic …`; a credential has a digit, a "=" or a "_", unlike the next word of a
# sentence.
_CREDENTIAL = re.compile(
    r"\b(?P<name>bearer\s+|basic\s+)(?=[\w.~+/-]*[0-9=_])[\w.~+/-]{6,}=*", re.IGNORECASE
)
# Stand for the dataset in the arguments of a program, which is no secret of the configuration.
_PLACES = ("{dataset}", "{file}", "{stdin}")
# A shorter value is not searched for: it would be found in words that have nothing to do with it.
_MIN_SECRET_LENGTH = 4


def is_secret(name: str) -> bool:
    """Whether the value of something with this name is a secret.

    Args:
        name: of a parameter of a query, a header, an option or a variable.
    """
    has_secret_word = any(_SECRET_WORDS.fullmatch(word) for word in _WORD.findall(name))
    return has_secret_word or re.search(_UNMISTAKABLE, name, re.IGNORECASE) is not None


def public(text: str) -> str:
    """Returns a text without the secrets that can be recognised by their form.

    These are secrets in addresses, after `token=` and similar names, and after `Bearer`.
    """
    text = _ADDRESS.sub(lambda match: public_address(match[0]), text)
    text = _QUERY_PARAMETER.sub(_hide_secret_parameter, text)
    for pattern in (_NAMED_VALUE, _OPTION, _USER_OPTION, _CREDENTIAL):
        text = pattern.sub(rf"\g<name>{HIDDEN}", text)
    return text


def _hide_secret_parameter(match: re.Match[str]) -> str:
    name = match["name"]
    return name + HIDDEN if is_secret(name) else match[0]


def public_address(url: str) -> str:
    """Returns an address as it may be shown: without user, password, query and fragment."""
    scheme, separator, rest = url.partition("://")
    if not separator:
        return HIDDEN if "@" in url else url.partition("?")[0]
    parts = _split_address(rest)
    _, at_sign, host = parts.authority.rpartition("@")
    user = HIDDEN + at_sign if at_sign else ""
    query = "?" + HIDDEN if parts.query else ""
    return f"{scheme}://{user}{host}{parts.path}{query}"


def public_arguments(argv: Iterable[object]) -> list[str]:
    """Returns the arguments of a program without the values that look like secrets."""
    return [argument.shown for argument in _redacted_arguments(argv)]


def secrets_of(
    url: str = "",
    named: Mapping[str, str] | None = None,
    argv: Sequence[str] = (),
    values: Iterable[str] = (),
) -> frozenset[str]:
    """Returns all configured secrets, in the forms in which they may come back.

    Args:
        url: an address.
        named: values by name, of which some are secrets: variables of the environment.
        argv: the arguments of a program.
        values: secrets whatever their names: those of headers.
    """
    secrets = list(_secrets_in_address(url))
    for value in values:
        secrets.extend(_parts_of_credential(value))
    for name, value in (named or {}).items():
        if is_secret(name):
            secrets.extend(_parts_of_credential(value))
    for argument in _redacted_arguments(argv):
        secrets.extend(argument.secrets)
    forms: set[str] = set()
    for value in secrets:
        forms.add(value)
        forms.add(unquote(value))
        forms.add(repr(value)[1:-1])
        forms.add(ascii(value)[1:-1])
    return frozenset(form for form in forms if len(form) >= _MIN_SECRET_LENGTH)


def without(text: str, secrets: Iterable[str]) -> str:
    """Returns a text without these secrets.

    The beginning of a secret is hidden as well where the text or a quotation was cut.
    """
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, HIDDEN)
        for length in range(len(secret) - 1, _MIN_SECRET_LENGTH - 1, -1):
            at_a_cut = re.escape(secret[:length]) + "(?=$|['\"…])"
            text = re.sub(at_a_cut, HIDDEN, text)
    return text


class _AddressParts(NamedTuple):
    """The parts of an address after its "://".

    Attributes:
        authority: user, password, host and port.
        path: up to the query or the fragment.
        query: the query and the fragment, without the mark before them.
    """

    authority: str
    path: str
    query: str


def _split_address(rest: str) -> _AddressParts:
    """Splits what stands after the "://" of an address."""
    authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
    is_host_with_port = re.fullmatch(r"(\[[^]]*\]|[^:]*):[0-9]*[.,;:)]*", authority)
    if ":" in authority and "@" not in authority and not is_host_with_port:
        # The password holds a slash or a similar character. It is better to hide too much than to
        # show half of it.
        host_start = rest.rfind("@") + 1
        host = re.split(r"[/?#]", rest[host_start:], maxsplit=1)[0]
        authority = rest[:host_start] + host
        if "@" not in authority:
            return _AddressParts(authority=f"{HIDDEN}@{HIDDEN}", path="", query="")
    after_authority = rest[len(authority) :]
    path = re.split(r"[?#]", after_authority, maxsplit=1)[0]
    query = after_authority[len(path) + 1 :]
    return _AddressParts(authority=authority, path=path, query=query)


def _secrets_in_address(url: str) -> Iterator[str]:
    """Yields user, password, and all values of the query of an address."""
    parts = _split_address(url.partition("://")[2])
    user_and_password, at_sign, _ = parts.authority.rpartition("@")
    if at_sign:
        yield user_and_password
        yield from user_and_password.split(":", 1)
    yield from re.split(r"[&;=]", parts.query)[1::2]
    for _, value in parse_qsl(parts.query, keep_blank_values=True):
        yield value


def _parts_of_credential(value: str) -> Iterator[str]:
    """Yields a value, its long words (not "Bearer"), and the content of a basic credential."""
    yield value
    words = value.split()
    for word in words:
        if len(word) > len("Bearer"):
            yield word
    if len(words) == 2 and words[0].lower() == "basic":
        try:
            decoded = base64.b64decode(words[1], validate=True).decode()
        except ValueError:  # not base64, or not text
            return
        yield decoded
        yield decoded.partition(":")[2]


@dataclass(frozen=True, slots=True)
class _RedactedArgument:
    """An argument of a program.

    Attributes:
        shown: the argument without its secrets.
        secrets: what was left out.
    """

    shown: str
    secrets: tuple[str, ...] = ()


def _redacted_arguments(argv: Iterable[object]) -> Iterator[_RedactedArgument]:
    """Yields each argument of a program without its secrets."""
    previous = ""
    for argument in map(str, argv):
        yield _redacted_argument(previous, argument)
        previous = argument


def _redacted_argument(previous: str, argument: str) -> _RedactedArgument:
    """Returns an argument without its secrets.

    Args:
        previous: the argument before it, which may be an option that names it; empty for the first.
        argument: the argument.
    """
    if any(place in argument for place in _PLACES):
        return _RedactedArgument(shown=argument)

    is_previous_an_option = previous.startswith("-") and "=" not in previous
    if is_previous_an_option and not argument.startswith("-") and is_secret(previous):
        secrets = tuple(_parts_of_credential(argument))
        return _RedactedArgument(shown=HIDDEN, secrets=secrets)

    if previous in _USER_OPTION_NAMES and ":" in argument:
        user, _, password = argument.partition(":")
        return _RedactedArgument(shown=f"{user}:{HIDDEN}", secrets=(argument, password))

    named = re.fullmatch(
        r"(?P<name>-{0,2}[\w.-]+)(?P<sign>=|:\s*)(?P<value>.+)", argument, re.DOTALL
    )
    if named and is_secret(named["name"]) and not named["value"].startswith("//"):
        secrets = tuple(_parts_of_credential(named["value"]))
        return _RedactedArgument(shown=named["name"] + named["sign"] + HIDDEN, secrets=secrets)

    address = re.search(r"[A-Za-z][A-Za-z0-9+.-]*://.*", argument, re.DOTALL)
    if address is None:
        return _RedactedArgument(shown=public(argument))
    before_address = public(argument[: address.start()])
    return _RedactedArgument(
        shown=before_address + public_address(address[0]),
        secrets=tuple(_secrets_in_address(address[0])),
    )
