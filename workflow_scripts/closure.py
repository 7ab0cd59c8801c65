"""Which files and packages a module's behaviour depends on, read from its import statements.

Rules name the files as ``input.code`` and the packages' versions as a param, so an edited library
module or an upgraded package reruns the jobs that use it and no others.
"""

import ast
import os
from functools import cache
from importlib.metadata import packages_distributions, version
from pathlib import Path
from sys import stdlib_module_names

from workflow_scripts.errors import ConfigError

PACKAGE = Path(__file__).parent
ROOT = PACKAGE.parent


def sources(*modules: str) -> list[str]:
    """List the files of ``modules`` and of every project module they import, directly or through others.

    Args:
        modules: Dotted names below this package, such as ``train_encoder`` or ``methods.simcse``.

    Returns:
        Paths relative to the repository's root, sorted.

    Raises:
        ConfigError: if there is no file for one of ``modules``; an empty closure would hide every edit.
    """
    return [os.path.relpath(path, ROOT) for path in _closure(modules)]


def packages(*modules: str) -> dict[str, str]:
    """Map each installed distribution that the closure of ``modules`` imports to its version."""
    roots = {name.split(".")[0] for path in _closure(modules) for name in _imported_names(path)}
    third_party = roots - stdlib_module_names - {PACKAGE.name, "__future__"}
    distributions = _distributions()
    owners = {owner for root in third_party for owner in distributions.get(root, ())}
    return {owner: _version(owner) for owner in sorted(owners)}


@cache
def _distributions() -> dict[str, list[str]]:
    return dict(packages_distributions())


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
    if stem.with_suffix(".py") not in files and stem / "__init__.py" not in files:
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
    """Dotted names that the module at ``path`` imports; the project's imports are absolute."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.module and not node.level, f"{path}:{node.lineno}: relative import"
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
    return frozenset(names)
