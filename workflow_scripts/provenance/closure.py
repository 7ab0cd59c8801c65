"""Which files and packages a module's behaviour depends on, read from its import statements.

A job runs again if the *meaning* of these files changes: the syntax tree that Python runs, without docstrings and
positions. Comments, docstrings, blank lines and formatting do not change it.

All jobs share the modules of ``settings``, and ``columns``. Only the definitions that a job's code names are part of
its code, and of a class its defaults and methods. Types, ranges and descriptions of fields decide which settings are
refused, and the settings are part of the key. If a key chooses one of several classes, the job names that class.

Eight modules decide nothing (``UNKEYED``): error messages, the cache, the card of a job, its command line, its key, its
lock, the rows by which a training is followed, and this one.
They can stop a job or describe it, but cannot change its result: they import no package that holds or processes data,
which a test checks.
"""

import ast
import hashlib
import os
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, packages_distributions, version
from pathlib import Path
from typing import Any, NamedTuple

from workflow_scripts.errors import ConfigError, DataError

PACKAGE = Path(__file__).parent.parent
ROOT = PACKAGE.parent
UNKEYED = (
    "errors.py",
    *(f"provenance/{name}.py" for name in ("cache", "cards", "closure", "job", "key", "running")),
    "training/following.py",
)
"""Files below this package that decide no result."""
UNKEYED_FILES = tuple(f"{PACKAGE.name}/{file}" for file in UNKEYED)
"""The same, relative to the repository's root."""
SETTINGS = f"{PACKAGE.name}/settings/"
COLUMNS = f"{PACKAGE.name}/columns.py"
BY_DEFINITION = (SETTINGS, COLUMNS)
"""Modules of which only the named definitions count, relative to the repository's root."""
REFUSING = ("conflicts", "misfits", "unchunkable", "origin_findings", "encoder_findings")
"""Methods of settings that refuse some, and change no result."""

UNKEYED_PACKAGES = {
    "httpx2",
    "huggingface_hub",
    "joblib",
    "pydantic",
    "pydantic_core",
    "PyYAML",
    "requests",
    "tenacity",
    "threadpoolctl",
    "tqdm",
}
"""Distributions that decide no number: they fetch bytes whose hash is checked, retry, start threads, check types or
show progress. Every other imported distribution is assumed to matter."""
COMPUTES_WITH = {
    "adjustText": ("matplotlib", "numpy", "scipy"),
    "datasets": ("pyarrow",),
    "gensim": ("numpy", "scipy"),
    "mteb": ("datasets", "scikit-learn", "sentence-transformers"),
    "peft": ("torch", "transformers"),
    "scikit-learn": ("numpy", "scipy"),
    "seaborn": ("matplotlib", "numpy", "pandas"),
    "sentence-transformers": ("torch", "transformers"),
    "transformers": ("numpy", "safetensors", "tokenizers"),
}
"""Distributions that others compute with, though the code may import them nowhere."""


class Source(NamedTuple):
    """A parsed source."""

    meaning: str
    """Hash of what Python runs."""
    imports: list[str]
    """Names that it imports, with a dot before those of its own package."""
    definitions: dict[str, tuple[str, list[str]]]
    """Of a module that counts by definition: the meaning of each, and the names that it uses."""


class ParsedSources:
    """Sources by the hash of their bytes.

    Parsing is nine tenths of finding a closure, so ``graph.code_lists`` keeps what is parsed from process to process.
    """

    def __init__(self) -> None:
        self._by_hash: dict[str, Source] = {}
        self.has_new = False
        """Whether a source was parsed that the last note does not have."""

    def recall(self, note: Mapping[str, Any]) -> None:
        """Take over what another process has noted."""
        self._by_hash |= {sha256: Source(*values) for sha256, values in note.items()}

    def note(self) -> dict[str, Source]:
        """Return everything that is parsed, for the note."""
        self.has_new = False
        return self._by_hash

    def parse(self, source: bytes, path: Path) -> Source:
        """Return the parsed source of a file of this package."""
        sha256 = hashlib.sha256(source).hexdigest()
        if sha256 not in self._by_hash:
            tree = ast.parse(source)
            imports = sorted(_imports(tree, path))
            by_definition = path.relative_to(ROOT).as_posix().startswith(BY_DEFINITION)
            definitions = _definitions(ast.parse(source)) if by_definition else {}  # which it changes
            self._by_hash[sha256] = Source(_tree_meaning(tree), imports, definitions)
            self.has_new = True
        return self._by_hash[sha256]


SOURCES = ParsedSources()
"""Of this process."""


def code_files(*modules: str) -> list[str]:
    """List the files of ``modules`` and of every project module they import, directly or through others.

    Args:
        modules: Dotted names below this package, such as ``jobs.train_encoder`` or ``methods.simcse``.

    Returns:
        Paths relative to the repository's root, sorted.

    Raises:
        ConfigError: if there is no file for one of ``modules``; an empty closure would hide every edit.
    """
    return [os.path.relpath(path, ROOT) for path in _closure(modules)]


def meanings(*modules: str) -> dict[str, str]:
    """Map each file of the closure of ``modules`` that can decide a result to the hash of its meaning.

    Of settings and columns there is an entry for each definition that is named, directly or through others:
    ``file:name``.
    """
    files = code_files(*modules)
    keyed = [file for file in files if file not in UNKEYED_FILES and not file.startswith(BY_DEFINITION)]
    named = {name for file in keyed for name in _imported_names(ROOT / file)}
    whole = {file: _read(ROOT / file).meaning for file in keyed}
    return whole | _definition_meanings(named | {f"{PACKAGE.name}.{module}" for module in modules})


def _definition_meanings(names: set[str]) -> dict[str, str]:
    """Meanings of the definitions (``BY_DEFINITION``) among some dotted names, and of all definitions that they use."""
    found: dict[str, str] = {}
    pending = [unit for name in names for unit in _units(name)]
    while pending:
        unit = pending.pop()
        if unit not in found:
            file, _, name = unit.partition(":")
            found[unit], used = _read(ROOT / file).definitions[name]
            own = file.removesuffix(".py").replace("/", ".")
            pending.extend(unit for one in used for unit in _units(one if "." in one else f"{own}.{one}"))
    return found


@cache
def _units(name: str) -> tuple[str, ...]:
    """The definition (``BY_DEFINITION``) with a dotted name, or all of a module; empty for other names."""
    module, _, own = name.replace(".", "/").rpartition("/")
    for file, names in ((f"{module}/{own}.py", None), (f"{module}.py", own)):
        if file.startswith(BY_DEFINITION) and (ROOT / file).exists():
            return tuple(f"{file}:{one}" for one in _read(ROOT / file).definitions if names in (None, one))
    return ()


def packages(*modules: str) -> dict[str, str]:
    """Map each installed distribution behind the closure of ``modules`` that can change a number to its version."""
    roots = {name.split(".")[0] for path in _closure(modules) for name in _imported_names(path)}
    third_party = roots - sys.stdlib_module_names - {PACKAGE.name, "__future__"}
    found = {owner for root in third_party for owner in _distributions().get(root, ())}
    while more := {below for name in found for below in COMPUTES_WITH.get(name, ())} - found:
        found |= more
    return {name: _version(name) for name in sorted(found - UNKEYED_PACKAGES)}


def installed(name: str) -> str:
    """The version of a package on this machine."""
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def check_packages(versions: Mapping[str, str]) -> None:
    """Check that the packages of a job's key are installed here in the same versions.

    Raises:
        DataError: naming the first package whose version differs.
    """
    for name, planned in versions.items():
        if (here := installed(name)) != planned:
            raise DataError(
                f"{name}: {here} where this job runs, {planned} where it was planned. Install the same version."
            )


def check_code(meaning: Mapping[str, str]) -> None:
    """Check that a job's code has the planned syntax trees now.

    A job does this before it loads the code and again before it writes anything, since files may be edited meanwhile.

    Raises:
        DataError: naming the first file that was edited, added or removed; edited comments do not count.
    """
    for file, planned in meaning.items():
        path = ROOT / file.partition(":")[0]
        if not path.is_file() or meaning_in(path.read_bytes(), file) != planned:
            raise DataError(
                f"{path}: edited while this job was running, or since it was planned. Run snakemake again."
            )


def meaning_in(source: bytes, file: str) -> str | None:
    """Meaning of a file or of a definition in it, if ``source`` is its text; None without such a definition."""
    path, _, name = file.partition(":")
    parsed = SOURCES.parse(source, ROOT / path)
    if not name:
        return parsed.meaning
    return parsed.definitions[name][0] if name in parsed.definitions else None


def _tree_meaning(tree: ast.AST) -> str:
    """Hash what Python runs: a syntax tree without positions, docstrings and other bare strings."""
    for node in ast.walk(tree):
        for name, block in ast.iter_fields(node):
            # The body of a lambda is an expression.
            if name in ("body", "orelse", "finalbody") and isinstance(block, list):
                block[:] = [statement for statement in block if not _is_bare_string(statement)]
    return hashlib.sha256(ast.dump(tree).encode()).hexdigest()


def _is_bare_string(statement: ast.stmt) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )


def _definitions(tree: ast.Module) -> dict[str, tuple[str, list[str]]]:
    """Definitions in a module, each with the hash of its syntax tree and the names that it uses."""
    named = {
        alias.asname or alias.name: f"{node.module}.{alias.name}"
        for node in tree.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    defined = {name: statement for statement in tree.body for name in _defined_by(statement)}
    named |= {name: name for name in defined}
    found = {}
    for name, statement in defined.items():
        if isinstance(statement, ast.ClassDef):
            statement.body = [one for one in statement.body if not _decides_nothing(one)]
        words = {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)} - {name}
        tells_apart = any(
            isinstance(node, ast.keyword) and node.arg == "discriminator" for node in ast.walk(statement)
        )
        used = [] if tells_apart and not isinstance(statement, ast.ClassDef) else sorted(named.keys() & words)
        found[name] = (_tree_meaning(_Behaviour().visit(statement)), [named[word] for word in used])
    return found


def _decides_nothing(statement: ast.stmt) -> bool:
    """Return whether a statement of a class only refuses values, or is a field that no job is passed."""
    if isinstance(statement, ast.AnnAssign) and isinstance(statement.value, ast.Call):
        return any(keyword.arg == "exclude" for keyword in statement.value.keywords)
    return isinstance(statement, ast.FunctionDef) and statement.name in REFUSING


def _defined_by(statement: ast.stmt) -> list[str]:
    if isinstance(statement, ast.ClassDef | ast.FunctionDef):
        return [statement.name]
    if isinstance(statement, ast.Assign):
        return [target.id for target in statement.targets if isinstance(target, ast.Name)]
    if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
        return [statement.target.id]
    return []


class _Behaviour(ast.NodeTransformer):
    """Reduce a class of settings to defaults and methods, without types, ranges and descriptions."""

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        """Reduce a field to its default."""
        return ast.Assign([node.target], self.visit(node.value or ast.Constant(None)))

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Keep the default of a ``Field``."""
        if isinstance(node.func, ast.Name) and node.func.id == "Field":
            node.keywords = [one for one in node.keywords if one.arg in ("default", "default_factory")]
        return self.generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        """Drop types with descriptions or alternatives."""
        is_type = isinstance(node.value, ast.Name) and node.value.id in ("Annotated", "Literal")
        return ast.Constant(None) if is_type else self.generic_visit(node)


@cache
def _read(path: Path) -> Source:
    """Return the parsed source at ``path``; a process reads each file once."""
    return SOURCES.parse(path.read_bytes(), path)


_distributions = cache(packages_distributions)
_version = cache(version)  # which reads the distribution's metadata every time


@cache
def _closure(modules: tuple[str, ...]) -> tuple[Path, ...]:
    found: set[Path] = set()
    pending = [file for module in modules for file in _module_files(module)]
    while pending:
        path = pending.pop()
        if path not in found:
            found.add(path)
            ours = (name for name in _imported_names(path) if name.split(".")[0] == PACKAGE.name)
            pending.extend(file for name in ours for file in _files(name))
    return tuple(sorted(found))


def _module_files(module: str) -> list[Path]:
    files = list(_files(f"{PACKAGE.name}.{module}"))
    stem = PACKAGE.joinpath(*module.split("."))
    own = {stem.with_suffix(".py"), stem / "__init__.py"}
    if own.isdisjoint(files) and not _units(f"{PACKAGE.name}.{module}"):
        file = os.path.relpath(stem.with_suffix(".py"), ROOT)
        raise ConfigError(f"{module}: no file {file}. Correct the name of the rule, method or reader.")
    return files


@cache
def _files(name: str) -> tuple[Path, ...]:
    """Files that importing ``name`` runs: its packages' __init__.py and the module itself."""
    package, _, _module = name.rpartition(".")
    stem = ROOT.joinpath(*name.split("."))
    own = tuple(file for file in (stem / "__init__.py", stem.with_suffix(".py")) if file.exists())
    return (*_files(package), *own) if package else own


@cache
def _imported_names(path: Path) -> frozenset[str]:
    """Dotted names that the module at ``path`` imports."""
    package = ".".join(path.relative_to(ROOT).parent.parts)
    return frozenset(f"{package}{name}" if name.startswith(".") else name for name in _read(path).imports)


def _imports(tree: ast.Module, path: Path) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.module and node.level < 2, f"{path}:{node.lineno}: import from a folder above"
            yield from (f"{'.' * node.level}{node.module}.{alias.name}" for alias in node.names)
