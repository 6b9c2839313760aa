"""What code does and what it uses, as bytes: functions, classes, modules.

A function is its bytecode, its constants and defaults, its closure, and the globals that it names: functions and
classes of the user's own modules in turn, data by content, libraries by name and version. Comments, line numbers,
docstrings and the locations of files do not count.
"""

from __future__ import annotations

import dis
import functools
import importlib.util
import inspect
import sys
import sysconfig
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from epsilometer.storage.parts import Encode

_GLOBAL = frozenset({"LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"})
_HAS_DOCSTRING = 0x4000000  # the compiler says so from Python 3.14 on
# Attributes of a class that the interpreter adds, or derives from the rest.
_NOT_BODY = frozenset(
    {"__dict__", "__weakref__", "__module__", "__doc__", "__qualname__", "__firstlineno__", "__static_attributes__"}
    | {"__annotations__", "__annotate__", "__annotate_func__", "__annotations_cache__", "__match_args__"}
    | {"__dataclass_fields__", "__dataclass_params__", "__abstractmethods__", "_abc_impl", "__parameters__"}
    | {"__orig_bases__"}
)
_INSTALLED = ("site-packages", "dist-packages")


def code_parts(code: types.CodeType, encode: Encode) -> Iterator[bytes]:
    """Compiled code, without file names and line numbers."""
    yield encode((code.co_code, code.co_exceptiontable, code.co_names, code.co_varnames))
    yield encode((code.co_freevars, code.co_cellvars, code.co_flags & ~_HAS_DOCSTRING))
    yield encode((code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount))
    yield encode(code.co_consts[1:] if _has_docstring(code) else code.co_consts)


def function_parts(function: types.FunctionType, encode: Encode) -> Iterator[bytes]:
    """A Python function."""
    names = function.__globals__
    if is_own(names.get("__name__")):
        yield encode(function.__code__)
        for name in _global_names(function.__code__):
            if name in names:
                yield encode(name)
                yield from _global_parts(names[name], function.__code__, encode)
        for module in _imported(function.__code__, names):
            yield encode(module)
    else:
        yield from map(encode, (names.get("__name__"), function.__qualname__, _version(names.get("__name__"))))
    yield encode(function.__defaults__)
    yield encode(function.__kwdefaults__)
    yield from (encode(_content(cell)) for cell in function.__closure__ or ())
    yield encode({name: value for name, value in vars(function).items() if name != "__wrapped__"})


def method_parts(method: types.MethodType, encode: Encode) -> Iterator[bytes]:
    """The function and the object."""
    yield encode(method.__func__)
    yield encode(method.__self__)


def builtin_parts(function: types.BuiltinFunctionType, encode: Encode) -> Iterator[bytes]:
    """A C function: its name, and the object that it is a method of."""
    owner = function.__self__
    if owner is not None and not isinstance(owner, types.ModuleType):
        yield encode(owner)
    yield from map(encode, name_and_version(function))


def class_parts(kind: type, encode: Encode) -> Iterator[bytes]:
    """A class: a library's by name and version, the user's by what its functions do."""
    yield from map(encode, name_and_version(kind))
    if not is_own(kind.__module__):
        return
    yield from map(encode, kind.__bases__)
    for name, value in sorted(vars(kind).items()):
        if name not in _NOT_BODY:
            yield encode(name)
            yield from map(encode, _attribute(value))


def module_parts(module: types.ModuleType, encode: Encode) -> Iterator[bytes]:
    """A module that is passed around as a value: the user's by its file, a library's by name and version."""
    yield from map(encode, (module.__name__, _version(module.__name__)))
    file = getattr(module, "__file__", None)
    if file is not None and is_own(module.__name__) and Path(file).is_file():
        yield encode(Path(file).read_bytes())


def wrapped_function(value: Any) -> Any:
    """The function that a library object wraps, e.g. of `functools.lru_cache` or a compiler; None if none."""
    if is_own(type(value).__module__):
        return None
    return inspect.getattr_static(value, "__wrapped__", None) or inspect.getattr_static(value, "py_func", None)


def name_and_version(value: Any) -> tuple[str, str, str]:
    """Module, name and version of a class or function that is identified by its name."""
    module = str(getattr(value, "__module__", "") or "")
    return module, str(getattr(value, "__qualname__", "")), "" if is_own(module) else _version(module)


def _attribute(value: Any) -> tuple[Any, ...]:
    """The visible content of a class attribute."""
    if isinstance(value, staticmethod | classmethod):
        return (type(value).__name__, value.__func__)
    if isinstance(value, property):
        return (value.fget, value.fset, value.fdel)
    if isinstance(value, functools.cached_property):
        return (value.func,)
    if isinstance(value, types.MemberDescriptorType | types.GetSetDescriptorType):
        return ()
    return (value,)


def _global_parts(value: Any, code: types.CodeType, encode: Encode) -> Iterator[bytes]:
    """What a function gets by a global name; of the user's own modules, the parts that it may use."""
    if not (isinstance(value, types.ModuleType) and is_own(value.__name__)):
        yield encode(value)
        return
    names, seen = _all_names(code), {value.__name__}
    waiting = [value]
    while waiting:
        module = waiting.pop()
        yield encode(module.__name__)
        for name in sorted(names & vars(module).keys()):
            inner = vars(module)[name]
            yield encode(name)
            if isinstance(inner, types.ModuleType) and is_own(inner.__name__):
                waiting += [] if inner.__name__ in seen else [inner]
                seen.add(inner.__name__)
            else:
                yield encode(inner)


def _imported(code: types.CodeType, names: dict[str, Any]) -> list[tuple[str, str, Any]]:
    """What a function imports when it runs: the user's own modules with their content, even if not loaded yet."""
    found: dict[str, tuple[str, str, Any]] = {}
    base = ""
    for instruction in _instructions(code):
        if instruction.opname == "IMPORT_NAME":
            base = str(instruction.argval)
            candidates = [base]
        elif instruction.opname == "IMPORT_FROM":
            candidates = [f"{base}.{instruction.argval}".lstrip(".")]
        else:
            continue
        package = names.get("__package__")
        for candidate in [*candidates, *(f"{package}.{each}".rstrip(".") for each in candidates if package)]:
            identity = _identity(candidate)
            if identity is not None:
                found[candidate] = identity
    return [found[name] for name in sorted(found)]


def _search(name: str) -> str | None:
    """The file of a module that need not be loaded; "" for one without a file, None if there is none."""
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError, AttributeError):
        return None
    return None if spec is None else spec.origin or ""


def _identity(name: str) -> tuple[str, str, Any] | None:
    file = _search(name)
    if file is None:
        return None
    own = file.endswith(".py") and not _is_installed(file)
    return name, "" if own else _version(name), Path(file).read_bytes() if own else b""


def _instructions(code: types.CodeType) -> Iterator[dis.Instruction]:
    """The instructions of code and of the functions inside it."""
    yield from dis.get_instructions(code)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _instructions(constant)


def _global_names(code: types.CodeType) -> list[str]:
    found = (str(each.argval) for each in _instructions(code) if each.opname in _GLOBAL)
    return list(dict.fromkeys(found))


def _all_names(code: types.CodeType) -> set[str]:
    inner = (_all_names(each) for each in code.co_consts if isinstance(each, types.CodeType))
    return set(code.co_names).union(*inner)


def _content(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # a name that has no value yet
        return ("empty cell",)


def _has_docstring(code: types.CodeType) -> bool:
    if sys.version_info >= (3, 14):
        return bool(code.co_flags & _HAS_DOCSTRING)
    # Before Python 3.14, the first constant of a function was always its docstring or None.
    is_function = bool(code.co_flags & inspect.CO_OPTIMIZED) and not code.co_name.startswith("<")
    return is_function and bool(code.co_consts) and (code.co_consts[0] is None or isinstance(code.co_consts[0], str))


@functools.cache
def is_own(name: str | None) -> bool:
    """Whether a module is the user's: its code may change between two runs, unlike that of libraries."""
    if not name or name == "__main__":
        return True
    top = name.partition(".")[0]
    if top in sys.builtin_module_names or top in sys.stdlib_module_names:
        return False
    if top == "epsilometer" and not name.startswith("epsilometer.zoo"):
        return False
    file = getattr(sys.modules.get(name), "__file__", None)
    return file is None or not _is_installed(file)


def _is_installed(file: str) -> bool:
    path = Path(file)
    return any(part in _INSTALLED for part in path.parts) or path.is_relative_to(sysconfig.get_paths()["stdlib"])


def _version(module: str | None) -> str:
    """The version of a module's library; that of Python for the standard library."""
    found = getattr(sys.modules.get((module or "").partition(".")[0]), "__version__", None)
    return found if isinstance(found, str) else ".".join(map(str, sys.version_info[:3]))
