"""The content of data and of code as bytes: sequences, arrays, data frames of the usual libraries, functions, classes.

Every function yields self-delimiting pieces, so that no two different things run together to the same bytes. `encode`
turns a part that has parts itself into such a piece. No library is imported: whoever has a data frame has done so.

A function is its bytecode, its constants and defaults, its closure, and the globals that it names: functions and
classes of the user's own modules in turn, data by content, libraries by name and version. Comments, line numbers,
docstrings and the locations of files do not count.
"""

import dis
import functools
import importlib.util
import inspect
import sys
import sysconfig
import types
from array import array
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

Encode = Callable[[Any], bytes]
Parts = Callable[[Any, Encode], Iterator[bytes]]
# Kinds of dtypes whose elements are their bytes; others are encoded one by one.
_BY_BYTES = frozenset("biufcmMSUV")
# Tensors of these libraries are arrays by another name.
_TENSORS = ("torch", "jax", "jaxlib", "cupy", "tensorflow")
# From this many values on, checking whether they have one type pays off.
_MANY = 32
_INT64 = range(-(2**63), 2**63)


def tagged(tag: str, content: bytes) -> bytes:
    """A piece."""
    return f"{tag}:{len(content)}:".encode() + content


def items(values: Sequence[Any], encode: Encode) -> Iterator[bytes]:
    """Values in order; all at once where they are numbers or texts of one kind."""
    yield tagged("count", str(len(values)).encode())
    kinds = set(map(type, values)) if len(values) >= _MANY else ()
    kind = next(iter(kinds)) if len(kinds) == 1 else None
    if kind is float:
        yield tagged("floats", array("d", values).tobytes())
    elif kind is str:
        texts = [each.encode("utf-8", "surrogatepass") for each in values]
        yield tagged("lengths", array("q", map(len, texts)).tobytes())
        yield tagged("texts", b"".join(texts))
    elif kind is int and min(values) in _INT64 and max(values) in _INT64:
        yield tagged("ints", array("q", values).tobytes())
    else:
        yield from map(encode, values)


def mapping(value: dict[Any, Any], encode: Encode) -> Iterator[bytes]:
    """Names and values in their order, which a mechanism sees."""
    yield from items(list(value.keys()), encode)
    yield from items(list(value.values()), encode)


def numpy_array(value: np.ndarray[Any, Any], encode: Encode) -> Iterator[bytes]:
    """Dtype, shape and bytes; objects one by one, records field by field (there may be gaps between the fields)."""
    kind = value.dtype
    yield tagged("array", f"{kind.str} {value.shape} {kind.names}".encode())
    if isinstance(value, np.ma.MaskedArray):
        yield from numpy_array(np.ma.getmaskarray(value), encode)
        value = np.ma.getdata(value)
    plain = np.asarray(value)
    if kind.names is not None:
        for name in kind.names:
            yield from numpy_array(plain[name], encode)
    elif kind.kind in "fc" and kind.itemsize > (8 if kind.kind == "f" else 16):  # long doubles have gaps
        yield from items([repr(each) for each in plain.ravel()], encode)
    elif kind.kind in _BY_BYTES and not kind.hasobject:
        yield tagged("bytes", plain.tobytes())
    else:
        yield from items(plain.ravel().tolist(), encode)


def of_library(value: Any) -> Parts | None:
    """How to read a frame, column or tensor of a library, recognised by name; subclasses included."""
    for kind in type(value).__mro__:
        top = kind.__module__.partition(".")[0]
        if (top, kind.__name__) in _TABLES:
            return _TABLES[top, kind.__name__]
        if top in _TENSORS and hasattr(value, "__array__"):
            return _tensor
    return None


def _frame(value: Any, encode: Encode) -> Iterator[bytes]:
    yield from map(encode, (value.columns, value.index))
    for place in range(value.shape[1]):
        yield from _column(value.iloc[:, place].array, encode)
    yield encode(dict(value.attrs))


def _series(value: Any, encode: Encode) -> Iterator[bytes]:
    yield from map(encode, (value.name, value.index))
    yield from _column(value.array, encode)


def _index(value: Any, encode: Encode) -> Iterator[bytes]:
    yield encode(list(value.names))
    yield from _column(value.array if value.nlevels == 1 else value.to_numpy(), encode)


def _column(value: Any, encode: Encode) -> Iterator[bytes]:
    """A pandas array: its dtype, and its values as numpy or Python holds them."""
    kind = value.dtype
    yield tagged("dtype", str(kind).encode())
    if hasattr(value, "categories") and hasattr(value, "codes"):
        yield from map(encode, (value.categories, bool(value.ordered)))
        yield from numpy_array(np.asarray(value.codes), encode)
    elif isinstance(kind, np.dtype) and not kind.hasobject:
        yield from numpy_array(np.asarray(value), encode)
    else:
        yield from items(np.asarray(value, dtype=object).tolist(), encode)


def _polars(value: Any, encode: Encode) -> Iterator[bytes]:
    for column in value.get_columns() if hasattr(value, "get_columns") else [value]:
        yield encode(f"{column.name!r} {column.dtype!r}")
        yield from items(column.to_list(), encode)


def _arrow(value: Any, encode: Encode) -> Iterator[bytes]:
    is_table = hasattr(value, "schema")
    yield encode(str(value.schema if is_table else value.type))
    for column in value.columns if is_table else [value]:
        yield from items(column.to_pylist(), encode)


def _tensor(value: Any, encode: Encode) -> Iterator[bytes]:
    yield from numpy_array(np.asarray(value.detach().cpu() if hasattr(value, "detach") else value), encode)


_TABLES: dict[tuple[str, str], Parts] = {
    ("pandas", "DataFrame"): _frame,
    ("pandas", "Series"): _series,
    ("pandas", "Index"): _index,
    ("pandas", "ExtensionArray"): _column,
    **{("polars", name): _polars for name in ("DataFrame", "Series")},
    **{("pyarrow", name): _arrow for name in ("Table", "RecordBatch", "Array", "ChunkedArray")},
}


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
    if sys.version_info >= (3, 14):
        has_docstring = bool(code.co_flags & _HAS_DOCSTRING)
    else:  # the first constant of a function is always its docstring or None
        is_function = bool(code.co_flags & inspect.CO_OPTIMIZED) and not code.co_name.startswith("<")
        has_docstring = is_function and bool(code.co_consts) and isinstance(code.co_consts[0], str | None)
    yield encode(code.co_consts[1:] if has_docstring else code.co_consts)


def function_parts(function: types.FunctionType, encode: Encode) -> Iterator[bytes]:
    """A Python function."""
    names = function.__globals__
    if is_own(names.get("__name__")):
        yield encode(function.__code__)
        used = (str(each.argval) for each in _instructions(function.__code__) if each.opname in _GLOBAL)
        for name in dict.fromkeys(used):
            if name in names:
                yield encode(name)
                yield from _global_parts(names[name], function.__code__, encode)
        for module in _imported(function.__code__, names):
            yield encode(module)
    else:
        yield from map(encode, (names.get("__name__"), function.__qualname__, _version(names.get("__name__"))))
    yield from map(encode, (function.__defaults__, function.__kwdefaults__))
    yield from (encode(_content(cell)) for cell in function.__closure__ or ())
    yield encode({name: value for name, value in vars(function).items() if name != "__wrapped__"})


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
            if isinstance(value, staticmethod | classmethod):
                yield from map(encode, (type(value).__name__, value.__func__))
            elif isinstance(value, property):
                yield from map(encode, (value.fget, value.fset, value.fdel))
            elif not isinstance(value, types.MemberDescriptorType | types.GetSetDescriptorType):
                yield encode(value.func if isinstance(value, functools.cached_property) else value)


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


def _global_parts(value: Any, code: types.CodeType, encode: Encode) -> Iterator[bytes]:
    """What a function gets by a global name; of the user's own modules, the parts that it may use."""
    if not (isinstance(value, types.ModuleType) and is_own(value.__name__)):
        yield encode(value)
        return
    names, seen, waiting = _all_names(code), {value.__name__}, [value]
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
            if (identity := _identity(candidate)) is not None:
                found[candidate] = identity
    return [found[name] for name in sorted(found)]


def _identity(name: str) -> tuple[str, str, Any] | None:
    """Of a module that need not be loaded; None if there is none."""
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError, AttributeError):
        return None
    if spec is None:
        return None
    file = spec.origin or ""
    own = file.endswith(".py") and not _is_installed(file)
    return name, "" if own else _version(name), Path(file).read_bytes() if own else b""


def _instructions(code: types.CodeType) -> Iterator[dis.Instruction]:
    """The instructions of code and of the functions inside it."""
    yield from dis.get_instructions(code)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _instructions(constant)


def _all_names(code: types.CodeType) -> set[str]:
    return set(code.co_names).union(*(_all_names(each) for each in code.co_consts if isinstance(each, types.CodeType)))


def _content(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # a name that has no value yet
        return ("empty cell",)


@functools.cache
def is_own(name: str | None) -> bool:
    """Whether a module is the user's: its code may change between two runs, unlike that of libraries."""
    if not name or name == "__main__":
        return True
    top = name.partition(".")[0]
    is_ours = top == "epsilometer" and not name.startswith("epsilometer.zoo")
    if is_ours or top in sys.builtin_module_names or top in sys.stdlib_module_names:
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
