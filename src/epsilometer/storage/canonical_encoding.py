"""The canonical encoding of data and of code as bytes.

Covers sequences, arrays, data frames of the usual libraries, functions and classes. Every function
yields self-delimiting pieces, so that no two different things are encoded by the same bytes. Its
argument `encode` turns a part that has parts itself into such a piece. No library is imported: if
there is a data frame, its library has been imported already.

A function is identified by its bytecode, its constants and defaults, its closure, and the globals
that it names: functions and classes of the user's own modules in turn, data by content, libraries
by name and version. Comments, line numbers, docstrings and the locations of files do not count.
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
from typing import Any, NamedTuple

import numpy as np

Encode = Callable[[Any], bytes]
Parts = Callable[[Any, Encode], Iterator[bytes]]

# Kinds of dtypes whose elements are identified by their bytes; others are encoded one by one.
_KINDS_BY_BYTES = frozenset("biufcmMSUV")
# Numbers with more bytes than this have gaps between them, whose content is undefined.
_MAX_FLOAT_BYTES = 8
_MAX_COMPLEX_BYTES = 16
# Tensors of these libraries are encoded like arrays of numpy.
_TENSOR_LIBRARIES = ("torch", "jax", "jaxlib", "cupy", "tensorflow")
# For fewer values than this, checking whether they all have one type takes longer than it saves.
_MIN_VALUES_AT_ONCE = 32
_INT64 = range(-(2**63), 2**63)

# Instructions that read a global name.
_READS_GLOBAL = frozenset({"LOAD_GLOBAL", "LOAD_NAME", "LOAD_FROM_DICT_OR_GLOBALS"})
# The flag by which the compiler marks code with a docstring, from Python 3.14 on.
_HAS_DOCSTRING = 0x4000000
# Attributes of a class that the interpreter adds, or derives from the others.
_DERIVED_ATTRIBUTES = frozenset(
    {
        "__abstractmethods__",
        "__annotate__",
        "__annotate_func__",
        "__annotations__",
        "__annotations_cache__",
        "__dataclass_fields__",
        "__dataclass_params__",
        "__dict__",
        "__doc__",
        "__firstlineno__",
        "__match_args__",
        "__module__",
        "__orig_bases__",
        "__parameters__",
        "__qualname__",
        "__static_attributes__",
        "__weakref__",
        "_abc_impl",
    }
)
# Folders of installed libraries.
_LIBRARY_FOLDERS = ("site-packages", "dist-packages")


def tagged(tag: str, content: bytes) -> bytes:
    """Returns a self-delimiting piece: a tag, the length of the content, and the content."""
    return f"{tag}:{len(content)}:".encode() + content


# Data: sequences, mappings, arrays.


def items(values: Sequence[Any], encode: Encode) -> Iterator[bytes]:
    """Yields values in order; all at once if they are many numbers or texts of one type."""
    yield tagged("count", str(len(values)).encode())
    common_type = _common_type(values) if len(values) >= _MIN_VALUES_AT_ONCE else None
    if common_type is float:
        yield tagged("floats", array("d", values).tobytes())
    elif common_type is str:
        texts = [value.encode("utf-8", "surrogatepass") for value in values]
        yield tagged("lengths", array("q", map(len, texts)).tobytes())
        yield tagged("texts", b"".join(texts))
    elif common_type is int and min(values) in _INT64 and max(values) in _INT64:
        yield tagged("ints", array("q", values).tobytes())
    else:
        yield from map(encode, values)


def _common_type(values: Sequence[Any]) -> type | None:
    """Returns the type of all values; None if they have several."""
    value_types = set(map(type, values))
    return value_types.pop() if len(value_types) == 1 else None


def mapping(value: dict[Any, Any], encode: Encode) -> Iterator[bytes]:
    """Yields keys and values in their order, which a mechanism can see."""
    yield from items(list(value.keys()), encode)
    yield from items(list(value.values()), encode)


def numpy_array(value: np.ndarray[Any, Any], encode: Encode) -> Iterator[bytes]:
    """Yields dtype, shape and content of an array.

    The content is the array's bytes. Objects are encoded one by one, and records field by field
    because there may be gaps between the fields.
    """
    dtype = value.dtype
    yield tagged("array", f"{dtype.str} {value.shape} {dtype.names}".encode())
    if isinstance(value, np.ma.MaskedArray):
        yield from numpy_array(np.ma.getmaskarray(value), encode)
        value = np.ma.getdata(value)
    plain = np.asarray(value)
    is_long_float = dtype.kind == "f" and dtype.itemsize > _MAX_FLOAT_BYTES
    is_long_complex = dtype.kind == "c" and dtype.itemsize > _MAX_COMPLEX_BYTES
    if dtype.names is not None:
        for name in dtype.names:
            yield from numpy_array(plain[name], encode)
    elif is_long_float or is_long_complex:
        yield from items([repr(number) for number in plain.ravel()], encode)
    elif dtype.kind in _KINDS_BY_BYTES and not dtype.hasobject:
        yield tagged("bytes", plain.tobytes())
    else:
        yield from items(plain.ravel().tolist(), encode)


# Data frames, columns and tensors of libraries.


def of_library(value: Any) -> Parts | None:
    """Returns the function that reads a frame, a column or a tensor of a library.

    The library is recognised by name, in subclasses as well. None if it is not one of ours.
    """
    for base in type(value).__mro__:
        library = base.__module__.partition(".")[0]
        if (library, base.__name__) in _READERS_BY_NAME:
            return _READERS_BY_NAME[library, base.__name__]
        if library in _TENSOR_LIBRARIES and hasattr(value, "__array__"):
            return _tensor
    return None


def _pandas_frame(value: Any, encode: Encode) -> Iterator[bytes]:
    yield encode(value.columns)
    yield encode(value.index)
    for position in range(value.shape[1]):
        yield from _pandas_array(value.iloc[:, position].array, encode)
    yield encode(dict(value.attrs))


def _pandas_series(value: Any, encode: Encode) -> Iterator[bytes]:
    yield encode(value.name)
    yield encode(value.index)
    yield from _pandas_array(value.array, encode)


def _pandas_index(value: Any, encode: Encode) -> Iterator[bytes]:
    yield encode(list(value.names))
    labels = value.array if value.nlevels == 1 else value.to_numpy()
    yield from _pandas_array(labels, encode)


def _pandas_array(value: Any, encode: Encode) -> Iterator[bytes]:
    """Yields the dtype of a pandas array, and its values as numpy or Python holds them."""
    dtype = value.dtype
    yield tagged("dtype", str(dtype).encode())
    if hasattr(value, "categories") and hasattr(value, "codes"):
        yield encode(value.categories)
        yield encode(bool(value.ordered))
        yield from numpy_array(np.asarray(value.codes), encode)
    elif isinstance(dtype, np.dtype) and not dtype.hasobject:
        yield from numpy_array(np.asarray(value), encode)
    else:
        yield from items(np.asarray(value, dtype=object).tolist(), encode)


def _polars(value: Any, encode: Encode) -> Iterator[bytes]:
    """Yields the columns of a polars frame, or a series."""
    columns = value.get_columns() if hasattr(value, "get_columns") else [value]
    for column in columns:
        yield encode(f"{column.name!r} {column.dtype!r}")
        yield from items(column.to_list(), encode)


def _arrow(value: Any, encode: Encode) -> Iterator[bytes]:
    """Yields the columns of an Arrow table, or an array."""
    is_table = hasattr(value, "schema")
    yield encode(str(value.schema if is_table else value.type))
    columns = value.columns if is_table else [value]
    for column in columns:
        yield from items(column.to_pylist(), encode)


def _tensor(value: Any, encode: Encode) -> Iterator[bytes]:
    in_memory = value.detach().cpu() if hasattr(value, "detach") else value
    yield from numpy_array(np.asarray(in_memory), encode)


# By the name of the library and of the class.
_READERS_BY_NAME: dict[tuple[str, str], Parts] = {
    ("pandas", "DataFrame"): _pandas_frame,
    ("pandas", "Series"): _pandas_series,
    ("pandas", "Index"): _pandas_index,
    ("pandas", "ExtensionArray"): _pandas_array,
    ("polars", "DataFrame"): _polars,
    ("polars", "Series"): _polars,
    ("pyarrow", "Table"): _arrow,
    ("pyarrow", "RecordBatch"): _arrow,
    ("pyarrow", "Array"): _arrow,
    ("pyarrow", "ChunkedArray"): _arrow,
}


# Code: functions, classes, modules.


def code_parts(code: types.CodeType, encode: Encode) -> Iterator[bytes]:
    """Yields compiled code, without file names, line numbers and docstrings."""
    yield encode((code.co_code, code.co_exceptiontable, code.co_names, code.co_varnames))
    yield encode((code.co_freevars, code.co_cellvars, code.co_flags & ~_HAS_DOCSTRING))
    yield encode((code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount))
    if sys.version_info >= (3, 14):
        has_docstring = bool(code.co_flags & _HAS_DOCSTRING)
    else:  # the first constant of a function is always its docstring or None
        is_optimized = bool(code.co_flags & inspect.CO_OPTIMIZED)
        is_function = is_optimized and not code.co_name.startswith("<")
        has_constants = bool(code.co_consts)
        has_docstring = is_function and has_constants and isinstance(code.co_consts[0], str | None)
    yield encode(code.co_consts[1:] if has_docstring else code.co_consts)


def function_parts(function: types.FunctionType, encode: Encode) -> Iterator[bytes]:
    """Yields the parts of a Python function: the user's by its code, a library's by its name."""
    code = function.__code__
    globals_by_name = function.__globals__
    module = globals_by_name.get("__name__")
    if is_own(module):
        yield encode(code)
        used_names = [
            str(instruction.argval)
            for instruction in _instructions(code)
            if instruction.opname in _READS_GLOBAL
        ]
        for name in dict.fromkeys(used_names):  # each once, in order
            if name in globals_by_name:
                yield encode(name)
                yield from _global_parts(globals_by_name[name], code, encode)
        for imported in _imported_modules(code, globals_by_name.get("__package__")):
            yield encode(tuple(imported))
    else:
        yield encode(module)
        yield encode(function.__qualname__)
        yield encode(_version(module))
    yield encode(function.__defaults__)
    yield encode(function.__kwdefaults__)
    for cell in function.__closure__ or ():
        yield encode(_cell_content(cell))
    attributes = vars(function).items()
    yield encode({name: value for name, value in attributes if name != "__wrapped__"})


def builtin_parts(function: types.BuiltinFunctionType, encode: Encode) -> Iterator[bytes]:
    """Yields the name of a C function, and the object whose method it is."""
    owner = function.__self__
    if owner is not None and not isinstance(owner, types.ModuleType):
        yield encode(owner)
    yield from map(encode, name_and_version(function))


def class_parts(value: type, encode: Encode) -> Iterator[bytes]:
    """Yields the parts of a class: a library's by name and version, the user's by its code."""
    yield from map(encode, name_and_version(value))
    if not is_own(value.__module__):
        return
    yield from map(encode, value.__bases__)
    for name, attribute in sorted(vars(value).items()):
        if name not in _DERIVED_ATTRIBUTES:
            yield encode(name)
            yield from _attribute_parts(attribute, encode)


def _attribute_parts(attribute: Any, encode: Encode) -> Iterator[bytes]:
    """Yields the parts of a class's attribute; descriptors by the functions that they call."""
    if isinstance(attribute, staticmethod | classmethod):
        yield encode(type(attribute).__name__)
        yield encode(attribute.__func__)
    elif isinstance(attribute, property):
        yield encode(attribute.fget)
        yield encode(attribute.fset)
        yield encode(attribute.fdel)
    elif isinstance(attribute, functools.cached_property):
        yield encode(attribute.func)
    elif not isinstance(attribute, types.MemberDescriptorType | types.GetSetDescriptorType):
        yield encode(attribute)


def module_parts(module: types.ModuleType, encode: Encode) -> Iterator[bytes]:
    """Yields a module that is used as a value: the user's by its file, a library's by version."""
    yield encode(module.__name__)
    yield encode(_version(module.__name__))
    file = getattr(module, "__file__", None)
    if file is not None and is_own(module.__name__) and Path(file).is_file():
        yield encode(Path(file).read_bytes())


def wrapped_function(value: Any) -> Any:
    """Returns the function that an object of a library wraps; None if it wraps none.

    Such objects come from `functools.lru_cache` or from compilers.
    """
    if is_own(type(value).__module__):
        return None
    if isinstance(value, staticmethod):
        # Its `__wrapped__` is a descriptor of the class, the same for all of them.
        return value.__func__
    wrapped = inspect.getattr_static(value, "__wrapped__", None)
    return wrapped or inspect.getattr_static(value, "py_func", None)


class NameAndVersion(NamedTuple):
    """What identifies a class or a function of a library.

    Attributes:
        module: the name of its module.
        name: its qualified name.
        version: of the library; empty for the user's own modules.
    """

    module: str
    name: str
    version: str


def name_and_version(value: Any) -> NameAndVersion:
    """Returns module, name and version of a class or function that is identified by its name."""
    module = str(getattr(value, "__module__", "") or "")
    name = str(getattr(value, "__qualname__", ""))
    version = "" if is_own(module) else _version(module)
    return NameAndVersion(module=module, name=name, version=version)


def _global_parts(value: Any, code: types.CodeType, encode: Encode) -> Iterator[bytes]:
    """Yields what a function gets by a global name.

    Of the user's own modules, this is everything that the function may use by its names.
    """
    if not _is_own_module(value):
        yield encode(value)
        return
    used_names = _all_names(code)
    seen_modules = {value.__name__}
    waiting = [value]
    while waiting:
        module = waiting.pop()
        yield encode(module.__name__)
        for name in sorted(used_names & vars(module).keys()):
            attribute = vars(module)[name]
            yield encode(name)
            if not _is_own_module(attribute):
                yield encode(attribute)
            elif attribute.__name__ not in seen_modules:
                seen_modules.add(attribute.__name__)
                waiting.append(attribute)


def _is_own_module(value: Any) -> bool:
    return isinstance(value, types.ModuleType) and is_own(value.__name__)


class _ImportedModule(NamedTuple):
    """A module that need not be loaded yet.

    Attributes:
        name: as it is imported.
        version: of the library; empty for the user's own modules.
        content: of the file of the user's own modules; empty for libraries.
    """

    name: str
    version: str
    content: bytes


def _imported_modules(code: types.CodeType, package: str | None) -> list[_ImportedModule]:
    """Returns the modules that a function imports when it runs, sorted by name.

    Args:
        code: of the function.
        package: to which relative imports refer; None if there is none.
    """
    modules: dict[str, _ImportedModule] = {}
    base = ""
    for instruction in _instructions(code):
        if instruction.opname == "IMPORT_NAME":
            base = str(instruction.argval)
            name = base
        elif instruction.opname == "IMPORT_FROM":  # a module of the package, or another attribute
            name = f"{base}.{instruction.argval}".lstrip(".")
        else:
            continue
        candidates = [name]
        if package:
            candidates.append(f"{package}.{name}".rstrip("."))
        for candidate in candidates:
            module = _find_module(candidate)
            if module is not None:
                modules[candidate] = module
    return [modules[name] for name in sorted(modules)]


def _find_module(name: str) -> _ImportedModule | None:
    """Returns a module that need not be loaded; None if there is no module of this name."""
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError, AttributeError):
        return None
    if spec is None:
        return None
    file = spec.origin or ""
    if file.endswith(".py") and not _is_installed(file):
        return _ImportedModule(name=name, version="", content=Path(file).read_bytes())
    return _ImportedModule(name=name, version=_version(name), content=b"")


def _instructions(code: types.CodeType) -> Iterator[dis.Instruction]:
    """Yields the instructions of code and of the functions inside it."""
    yield from dis.get_instructions(code)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _instructions(constant)


def _all_names(code: types.CodeType) -> set[str]:
    """Returns all names of globals and attributes in code and in the functions inside it."""
    names = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names |= _all_names(constant)
    return names


def _cell_content(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # a name that has no value yet
        return ("empty cell",)


@functools.cache
def is_own(name: str | None) -> bool:
    """Whether a module is the user's own.

    Its code may change between two runs, unlike that of libraries.
    """
    if not name or name == "__main__":
        return True
    top = name.partition(".")[0]
    if name.startswith("epsilometer.zoo"):
        # Its mechanisms are audited like the user's, from a checkout and from a wheel alike.
        return True
    if top == "epsilometer" or top in sys.builtin_module_names or top in sys.stdlib_module_names:
        return False
    file = getattr(sys.modules.get(name), "__file__", None)
    return file is None or not _is_installed(file)


def _is_installed(file: str) -> bool:
    """Whether a file belongs to an installed library or to Python."""
    path = Path(file)
    if any(part in _LIBRARY_FOLDERS for part in path.parts):
        return True
    return path.is_relative_to(sysconfig.get_paths()["stdlib"])


def _version(module: str | None) -> str:
    """Returns the version of a module's library; that of Python for the standard library."""
    top = (module or "").partition(".")[0]
    version = getattr(sys.modules.get(top), "__version__", None)
    if isinstance(version, str):
        return version
    return ".".join(map(str, sys.version_info[:3]))
