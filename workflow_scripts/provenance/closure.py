"""The files and packages on which a module's behaviour depends, found by its import statements.

A job reruns if the code of these files changes: the syntax tree that Python runs, without docstrings and
positions. Comments, docstrings, blank lines and formatting do not change it.

All jobs share the modules of ``settings``, and ``columns``. Only the definitions that a job's code uses are part of its
code, and only the defaults and methods of a class. Types, ranges and descriptions of fields can only refuse settings,
and the settings are part of the key. If a key selects one of several classes, the job lists this class.

Eight modules affect no result (``UNKEYED``): error messages, the cache, the card of a job, its command line, its key,
its lock, the rows by which a training is followed, and this one. They can stop or describe a job, but cannot change
its result: they import no package that stores or processes data, which a test checks.
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
"""Files below this package that affect no result."""
UNKEYED_FILES = tuple(f"{PACKAGE.name}/{file}" for file in UNKEYED)
"""These files, relative to the repository's root."""
SETTINGS = f"{PACKAGE.name}/settings/"
COLUMNS = f"{PACKAGE.name}/columns.py"
BY_DEFINITION = (SETTINGS, COLUMNS)
"""Modules of which only used definitions count, relative to the repository's root."""
REFUSING = ("value_errors", "size_errors", "score_errors", "chunk_errors", "origin_errors", "encoder_errors")
"""Methods of settings that can only refuse values, and change no result."""

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
"""Distributions that change no number: they download bytes with checked hashes, retry, start threads, check types or
show progress. All other imported distributions are assumed to matter."""
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
"""Distributions with which others compute, even if the code does not import them."""


class Source(NamedTuple):
    """A parsed source."""

    code_hash: str
    """Hash of the syntax tree that Python runs."""
    imports: list[str]
    """Imported names, with a dot before those of this package."""
    definitions: dict[str, tuple[str, list[str]]]
    """For a module that counts by definition: the hash of each definition, and the names that it uses."""


class ParsedSources:
    """Parsed sources by the hash of their bytes.

    Parsing takes nine tenths of the time of a closure, so ``graph.code_lists`` passes parsed sources to later
    processes.
    """

    def __init__(self) -> None:
        self._by_hash: dict[str, Source] = {}
        self.has_new = False
        """Whether a source was parsed that is not in the last note."""

    def recall(self, note: Mapping[str, Any]) -> None:
        """Load the note of another process."""
        self._by_hash |= {sha256: Source(*values) for sha256, values in note.items()}

    def note(self) -> dict[str, Source]:
        """Return all parsed sources, for the note."""
        self.has_new = False
        return self._by_hash

    def parse(self, source: bytes, path: Path) -> Source:
        """Return the parsed source of a file of this package."""
        sha256 = hashlib.sha256(source).hexdigest()
        if sha256 not in self._by_hash:
            tree = ast.parse(source)
            imports = sorted(_imports(tree, path))
            by_definition = path.relative_to(ROOT).as_posix().startswith(BY_DEFINITION)
            definitions = _definitions(ast.parse(source)) if by_definition else {}  # changes the tree
            self._by_hash[sha256] = Source(_tree_hash(tree), imports, definitions)
            self.has_new = True
        return self._by_hash[sha256]


SOURCES = ParsedSources()
"""Parsed sources of this process."""


def code_files(*modules: str) -> list[str]:
    """Return the files of ``modules`` and of all project modules that they import, directly or through others.

    Args:
        modules: Dotted names below this package, such as ``jobs.train_encoder`` or ``methods.simcse``.

    Returns:
        Paths relative to the repository's root, sorted.

    Raises:
        ConfigError: if one of ``modules`` has no file; an empty closure would hide all edits.
    """
    return [os.path.relpath(path, ROOT) for path in _closure(modules)]


def code_hashes(*modules: str) -> dict[str, str]:
    """Return the hash of the code of each file in the closure of ``modules`` that can affect a result.

    Settings and columns have an entry for each definition that is used, directly or through others: ``file:name``.
    """
    files = code_files(*modules)
    keyed = [file for file in files if file not in UNKEYED_FILES and not file.startswith(BY_DEFINITION)]
    named = {name for file in keyed for name in _imported_names(ROOT / file)}
    whole = {file: _read(ROOT / file).code_hash for file in keyed}
    return whole | _definition_hashes(named | {f"{PACKAGE.name}.{module}" for module in modules})


def _definition_hashes(names: set[str]) -> dict[str, str]:
    """Return the hashes of the definitions (``BY_DEFINITION``) in some dotted names, and of those that they use."""
    hashes: dict[str, str] = {}
    pending = [unit for name in names for unit in _units(name)]
    while pending:
        unit = pending.pop()
        if unit not in hashes:
            file, _, name = unit.partition(":")
            hashes[unit], used = _read(ROOT / file).definitions[name]
            module = file.removesuffix(".py").replace("/", ".")
            pending.extend(
                unit
                for used_name in used
                for unit in _units(used_name if "." in used_name else f"{module}.{used_name}")
            )
    return hashes


@cache
def _units(name: str) -> tuple[str, ...]:
    """Return the definition (``BY_DEFINITION``) of a dotted name, or all of a module; empty for other names."""
    module, _, last = name.replace(".", "/").rpartition("/")
    for file, names in ((f"{module}/{last}.py", None), (f"{module}.py", last)):
        if file.startswith(BY_DEFINITION) and (ROOT / file).exists():
            return tuple(
                f"{file}:{definition}"
                for definition in _read(ROOT / file).definitions
                if names in (None, definition)
            )
    return ()


def packages(*modules: str) -> dict[str, str]:
    """Return the version of each distribution in the closure of ``modules`` that can change a number."""
    roots = {name.split(".")[0] for path in _closure(modules) for name in _imported_names(path)}
    third_party = roots - sys.stdlib_module_names - {PACKAGE.name, "__future__"}
    owners = {owner for root in third_party for owner in _distributions().get(root, ())}
    while more := {below for name in owners for below in COMPUTES_WITH.get(name, ())} - owners:
        owners |= more
    return {name: _version(name) for name in sorted(owners - UNKEYED_PACKAGES)}


def installed(name: str) -> str:
    """Return the version of a package on this machine."""
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def check_packages(versions: Mapping[str, str]) -> None:
    """Raise DataError unless the packages of a job's key are installed here in the same versions.

    Raises:
        DataError: with the first package whose version differs.
    """
    for name, planned in versions.items():
        if (here := installed(name)) != planned:
            raise DataError(
                f"{name}: this job runs with {here}, but was planned with {planned}. Install the same "
                "version."
            )


def check_code(planned_hashes: Mapping[str, str]) -> None:
    """Raise DataError unless a job's code still has the planned syntax trees.

    A job checks this before it loads the code and again before it writes anything, since files may be edited meanwhile.

    Raises:
        DataError: with the first file that was edited, added or removed; edited comments do not count.
    """
    for file, planned in planned_hashes.items():
        path = ROOT / file.partition(":")[0]
        if not path.is_file() or code_hash_of(path.read_bytes(), file) != planned:
            raise DataError(
                f"{path}: edited while this job was running, or since it was planned. Run snakemake again."
            )


def code_hash_of(source: bytes, file: str) -> str | None:
    """Return the hash of a file with the text ``source``, or of a definition in it; None without the definition."""
    path, _, name = file.partition(":")
    parsed = SOURCES.parse(source, ROOT / path)
    if not name:
        return parsed.code_hash
    return parsed.definitions[name][0] if name in parsed.definitions else None


def _tree_hash(tree: ast.AST) -> str:
    """Return the hash of a syntax tree without positions, docstrings and other bare strings."""
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
    """Return the definitions in a module, each with the hash of its syntax tree and the names that it uses."""
    named = {
        alias.asname or alias.name: f"{node.module}.{alias.name}"
        for node in tree.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    defined = {name: statement for statement in tree.body for name in _defined_by(statement)}
    named |= {name: name for name in defined}
    definitions = {}
    for name, statement in defined.items():
        if isinstance(statement, ast.ClassDef):
            statement.body = [part for part in statement.body if not _decides_nothing(part)]
        words = {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)} - {name}
        tells_apart = any(
            isinstance(node, ast.keyword) and node.arg == "discriminator" for node in ast.walk(statement)
        )
        used = [] if tells_apart and not isinstance(statement, ast.ClassDef) else sorted(named.keys() & words)
        definitions[name] = (_tree_hash(_Behaviour().visit(statement)), [named[word] for word in used])
    return definitions


def _decides_nothing(statement: ast.stmt) -> bool:
    """Return whether a statement of a class only refuses values, or is a field that no job receives."""
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
    """A transformer that reduces a class of settings to defaults and methods: no types, ranges or descriptions."""

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        """Return a field reduced to its default."""
        return ast.Assign([node.target], self.visit(node.value or ast.Constant(None)))

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Return a ``Field`` reduced to its default."""
        if isinstance(node.func, ast.Name) and node.func.id == "Field":
            node.keywords = [
                keyword for keyword in node.keywords if keyword.arg in ("default", "default_factory")
            ]
        return self.generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        """Return a type without descriptions and alternatives."""
        is_type = isinstance(node.value, ast.Name) and node.value.id in ("Annotated", "Literal")
        return ast.Constant(None) if is_type else self.generic_visit(node)


@cache
def _read(path: Path) -> Source:
    """Return the parsed source at ``path``; a process reads each file once."""
    return SOURCES.parse(path.read_bytes(), path)


_distributions = cache(packages_distributions)
_version = cache(version)  # version() reads the distribution's metadata each time


@cache
def _closure(modules: tuple[str, ...]) -> tuple[Path, ...]:
    paths: set[Path] = set()
    pending = [file for module in modules for file in _module_files(module)]
    while pending:
        path = pending.pop()
        if path not in paths:
            paths.add(path)
            ours = (name for name in _imported_names(path) if name.split(".")[0] == PACKAGE.name)
            pending.extend(file for name in ours for file in _files(name))
    return tuple(sorted(paths))


def _module_files(module: str) -> list[Path]:
    files = list(_files(f"{PACKAGE.name}.{module}"))
    stem = PACKAGE.joinpath(*module.split("."))
    candidates = {stem.with_suffix(".py"), stem / "__init__.py"}
    if candidates.isdisjoint(files) and not _units(f"{PACKAGE.name}.{module}"):
        file = os.path.relpath(stem.with_suffix(".py"), ROOT)
        raise ConfigError(f"{module}: no file {file}. Check the name of the rule, method or reader.")
    return files


@cache
def _files(name: str) -> tuple[Path, ...]:
    """Return the files that an import of ``name`` runs: its packages' __init__.py and the module itself."""
    package, _, _module = name.rpartition(".")
    stem = ROOT.joinpath(*name.split("."))
    existing = tuple(file for file in (stem / "__init__.py", stem.with_suffix(".py")) if file.exists())
    return (*_files(package), *existing) if package else existing


@cache
def _imported_names(path: Path) -> frozenset[str]:
    """Return the dotted names that the module at ``path`` imports."""
    package = ".".join(path.relative_to(ROOT).parent.parts)
    return frozenset(f"{package}{name}" if name.startswith(".") else name for name in _read(path).imports)


def _imports(tree: ast.Module, path: Path) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.module and node.level < 2, f"{path}:{node.lineno}: import from a folder above"
            yield from (f"{'.' * node.level}{node.module}.{alias.name}" for alias in node.names)
