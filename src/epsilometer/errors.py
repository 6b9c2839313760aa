"""Everything that Epsilometer raises on purpose.

```
Exception
└── EpsilometerError            the root: catch this to catch all of them
    ├── MechanismError          the mechanism raised, hung, or returned something unusable
    ├── InputError              a parameter, file or claim that makes no sense (also a ValueError)
    ├── EngineError             workers died again and again, or there are none
    ├── MissingExtraError       an optional package is not installed (also an ImportError)
    ├── BudgetError             a bug in Epsilometer: too much failure probability was spent
    └── PrivacyViolation        raised by `AuditResult.raise_if_refuted` (also an AssertionError)
Warning
└── EpsilometerWarning          something a user should know, but that does not change the answer
```
"""

import base64
import binascii
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, unquote

if TYPE_CHECKING:  # the result is only carried, never inspected
    from epsilometer.result import AuditResult


class EpsilometerError(Exception):
    """The root of all our exceptions. Its text never holds what looks like a secret: see `public`.

    Example:
        >>> issubclass(em.InputError, em.EpsilometerError)
        True
    """

    def __init__(self, *args: object) -> None:
        super().__init__(*(public(each) if isinstance(each, str) else each for each in args))


class MechanismError(EpsilometerError):
    """The mechanism raised, hung, or returned something that cannot be used.

    Example:
        >>> try:
        ...     em.audit(lambda x: 1 / x, em.Pair(0, 1), em.PureDP(1.0), samples=100)
        ... except em.MechanismError as error:
        ...     print(error)
        <lambda> raised ZeroDivisionError on the input 0: 'division by zero'
    """


class InputError(EpsilometerError, ValueError):
    """A parameter, a file or a claim that makes no sense.

    Example:
        >>> try:
        ...     em.PureDP(-1.0)
        ... except em.InputError as error:
        ...     print(error)
        epsilon=-1.0 makes no sense: it must be a finite number of at least 0
    """


class MissingExtraError(EpsilometerError, ImportError):
    """An optional package is needed; the text names the command that installs it.

    Example:
        >>> print(em.MissingExtraError("pyarrow", "parquet", "reading draws.parquet"))
        reading draws.parquet needs the package pyarrow, which is not installed; ...
    """

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        missing = f"{purpose} needs the package {package}, which is not installed"
        super().__init__(f"{missing}; install it with: pip install 'epsilometer[{extra}]'")


class EngineError(EpsilometerError):
    """Workers died again and again, a scheduler went away, or there is none at the given address.

    Example:
        >>> issubclass(em.EngineError, em.EpsilometerError)
        True
    """


class BudgetError(EpsilometerError):
    """More failure probability was spent than the audit had: a bug, never a user's fault."""


class PrivacyViolation(EpsilometerError, AssertionError):
    """A claim was refuted. `result` holds the audit with its counterexample.

    Example:
        >>> try:
        ...     em.audit(em.zoo.dp_mean(), samples=1000, seed=0).raise_if_refuted()
        ... except em.PrivacyViolation as violation:
        ...     print(violation.result.is_refuted)
        True
    """

    def __init__(self, message: str, result: "AuditResult") -> None:
        super().__init__(message)
        self.result = result


class EpsilometerWarning(UserWarning):
    """Something the user should know that does not change the answer.

    Example:
        >>> issubclass(em.EpsilometerWarning, UserWarning)
        True
    """


# How much of a dataset or of a text is shown in messages.
_SHOWN = 120


def shown(value: object) -> str:
    """A short text for a value, safe against hostile `__repr__`."""
    text = safe_repr(value)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


def safe_repr(value: object) -> str:
    """The repr of a value, whatever its class thinks of that."""
    try:
        return repr(value)
    except Exception as error:
        return f"<{type(value).__name__} whose repr raises {type(error).__name__}>"


@contextmanager
def blamed(what: str) -> Iterator[None]:
    """Says of anything that foreign code raises that this code is to blame: an InputError that begins with `what`."""
    try:
        yield
    except (Exception, SystemExit) as error:
        raise InputError(f"{what}: {error!r:.200}") from error


def did_you_mean(name: object, known: Iterable[str]) -> str:
    """The end of a message about an unknown name: the most similar known one, or nothing."""
    close = get_close_matches(str(name), list(known), 1)
    return f"; did you mean {close[0]!r}?" if close else ""


def meant_or_known(name: object, known: Collection[str]) -> str:
    """The end of a message about an unknown name: the most similar known one, or else all of them."""
    return did_you_mean(name, known) or f"; known are {', '.join(known)}"


# What stands in the place of a secret.
HIDDEN = "…"
# Of a name like X-Api-Key, sasToken or DB_PASSWORD one word is enough.
_SECRET_WORDS = re.compile(
    r"access|apikey|assertion|auth|authori[sz]ation|bearer|cookie|credentials?|creds|hmac|jwt|key|otp|pass|passcode"
    r"|passphrase|passwd|password|pat|private|pw|pwd|secrets?|session|sid|sig|signature|tokens?",
    re.IGNORECASE,
)
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
# Anything may stand before a colon in a text, so there only words count that leave no doubt.
_SURE = (
    r"(?:token|secret|passw|passphrase|(?:api|access|private|account|auth)[-_]?key|credential|authori[sz]ation|cookie)"
)
_VALUE = r"""(?:(?:bearer|basic|digest|token)\s+)?(?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|[^\s,;&'"]+)"""
_ADDRESS = re.compile(r"""[A-Za-z][A-Za-z0-9+.-]{1,20}://[^\s"<>]*?(?=[').,;:]*(?:[\s"<>]|$))""")
_QUERY = re.compile(r"""(?P<name>[?&][\w.-]{1,60}=)[^\s&'"]+""")
_USER = re.compile(r"(?<!\S)(?P<name>(?:-u|--user|--proxy-user)[ =][^\s:]+:)\S+")
_NAMED = re.compile(
    rf"""(?<![\w.-])(?=[\w.-]{{0,60}}?{_SURE})(?![\w.-]*(?:error|exception|warning)\b)"""
    rf"""(?P<name>[\w.-]{{1,80}}["']?\s*[=:]\s*){_VALUE}""",
    re.IGNORECASE,
)
_OPTION = re.compile(rf"(?<!\S)(?P<name>--?(?=[\w-]{{0,60}}?{_SURE})[\w-]{{1,80}}\s+)(?!-){_VALUE}", re.IGNORECASE)
_CREDENTIAL = re.compile(r"\b(?P<name>bearer\s+|basic\s+)(?=[\w.~+/-]*[0-9=_])[\w.~+/-]{6,}=*", re.IGNORECASE)
# A shorter value would be found in words that have nothing to do with it.
_SHORTEST = 4


def is_secret(name: str) -> bool:
    """Whether something of this name (a key of a query, a header, an option, a variable) is for nobody else's eyes."""
    return any(map(_SECRET_WORDS.fullmatch, _WORD.findall(name))) or bool(re.search(_SURE, name, re.I))


def public(text: str) -> str:
    """A text without the secrets that can be told by their looks: in addresses, after `token=`, after `Bearer`."""
    text = _ADDRESS.sub(lambda found: public_address(found[0]), text)
    text = _QUERY.sub(lambda found: found["name"] + HIDDEN if is_secret(found["name"]) else found[0], text)
    for pattern in (_NAMED, _OPTION, _USER, _CREDENTIAL):
        text = pattern.sub(rf"\g<name>{HIDDEN}", text)
    return text


def public_address(url: str) -> str:
    """How an address is called in everything that is written or printed: without user, password, query and fragment."""
    scheme, separator, rest = url.partition("://")
    if not separator:
        return HIDDEN if "@" in url else url.partition("?")[0]
    here, query, path = _parts(rest)
    _, at, host = here.rpartition("@")
    return f"{scheme}://{HIDDEN + at if at else ''}{host}{path}{'?' + HIDDEN if query else ''}"


def public_arguments(argv: Iterable[object]) -> list[str]:
    """The arguments of a program without the values that look like secrets."""
    return [shown_as for shown_as, _ in _arguments(argv)]


def secrets_of(url: str = "", named: Mapping[str, str] | None = None, argv: Sequence[str] = ()) -> frozenset[str]:
    """All values that must not be told, in the forms in which they may come back, e.g. in the complaint of a server.

    Args:
        url: an address.
        named: values by name: headers, variables of the environment.
        argv: the arguments of a program.
    """
    values = [*_address_values(url)]
    for name, value in (named or {}).items():
        values += _value_forms(value) if is_secret(name) else ()
    values += [value for _, found in _arguments(argv) for value in found]
    forms = {form for value in values for form in (value, unquote(value), repr(value)[1:-1], ascii(value)[1:-1])}
    return frozenset(form for form in forms if len(form) >= _SHORTEST)


def without(text: str, secrets: Iterable[str]) -> str:
    """A text without these values; also without the beginning of one, where the text or a quotation was cut."""
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, HIDDEN)
        for cut in range(len(secret) - 1, _SHORTEST - 1, -1):
            text = re.sub(re.escape(secret[:cut]) + "(?=$|['\"…])", HIDDEN, text)
    return text


@contextmanager
def discreet(secrets: Iterable[str]) -> Iterator[None]:
    """Takes these values out of the text of a MechanismError that passes."""
    try:
        yield
    except MechanismError as error:
        error.args = tuple(without(each, secrets) if isinstance(each, str) else each for each in error.args)
        raise


def _parts(rest: str) -> tuple[str, str, str]:
    """User, password and host; query and fragment; path: of an address behind its ://."""
    here = re.split(r"[/?#]", rest, maxsplit=1)[0]
    if ":" in here and "@" not in here and not re.fullmatch(r"(\[[^]]*\]|[^:]*):[0-9]*[.,;:)]*", here):
        # A password with a slash or so. Better too much is hidden than half of it told.
        here = rest[: rest.rfind("@") + 1] + re.split(r"[/?#]", rest[rest.rfind("@") + 1 :], maxsplit=1)[0]
        if "@" not in here:
            return f"{HIDDEN}@{HIDDEN}", "", ""
    path, mark, query = re.match(r"([^?#]*)([?#]?)(.*)", rest[len(here) :], re.DOTALL).groups()  # type: ignore[union-attr]
    return here, query if mark else "", path


def _address_values(url: str) -> Iterator[str]:
    here, query, _ = _parts(url.partition("://")[2])
    user, at, _ = here.rpartition("@")
    if at:
        yield from (user, *user.split(":", 1))
    yield from re.split(r"[&;=]", query)[1::2]
    yield from (value for _, value in parse_qsl(query, keep_blank_values=True))


def _value_forms(value: str) -> Iterator[str]:
    """A value, the words of it (Bearer …), and what stands in a basic credential."""
    yield value
    words = value.split()
    yield from (word for word in words if len(word) > len("Bearer"))
    if len(words) == 2 and words[0].lower() == "basic":
        try:
            plain = base64.b64decode(words[1], validate=True).decode()
        except (binascii.Error, UnicodeDecodeError):
            return
        yield from (plain, plain.partition(":")[2])


def _arguments(argv: Iterable[object]) -> Iterator[tuple[str, list[str]]]:
    """Each argument as it may be shown, with the values that are left out."""
    before = ""
    for part in map(str, argv):
        yield _argument(before, part)
        before = part


def _argument(before: str, part: str) -> tuple[str, list[str]]:
    if "{dataset}" in part:
        return part, []
    if before.startswith("-") and "=" not in before and not part.startswith("-") and is_secret(before):
        return HIDDEN, [*_value_forms(part)]
    if before in ("-u", "--user", "--proxy-user") and ":" in part:
        return part.partition(":")[0] + ":" + HIDDEN, [part, part.partition(":")[2]]
    named = re.fullmatch(r"(-{0,2}[\w.-]+)(=|:\s*)(.+)", part, re.DOTALL)
    if named and is_secret(named[1]) and not named[3].startswith("//"):
        return named[1] + named[2] + HIDDEN, [*_value_forms(named[3])]
    found = re.search(r"[A-Za-z][A-Za-z0-9+.-]*://.*", part, re.DOTALL)
    if found is None:
        return public(part), []
    return public(part[: found.start()]) + public_address(found[0]), [*_address_values(found[0])]
