"""What readers of datasets take, found in their source: an import of all of them would load what they parse with.

The signature of ``read`` has the options. Its docstring says which roles files have (``Args``, ``files``: the words in
double backticks; "Any of" if not all are needed; without such words any name will do) and which forms the rows
have (``Returns``).
"""

import ast
import inspect
import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from workflow_scripts.errors import ConfigError
from workflow_scripts.graph.findings import advice, unknown
from workflow_scripts.provenance.closure import PACKAGE

FOLDER = PACKAGE / "data/readers"
_NO_READERS = ("__init__", "base")
_WORD = re.compile(r"``(\w+)``")
_ARGUMENT = re.compile(r"^ {4}(\w+): (.*(?:\n {8}.*)*)", re.MULTILINE)
_TYPES: dict[str, type | tuple[type, ...]] = {"str": str, "int": int, "bool": bool, "float": (int, float)}
_WORDS = {"str": "text", "int": "a whole number", "bool": "true or false", "float": "a number"}


class Option(NamedTuple):
    """One keyword argument of a reader."""

    annotation: ast.expr | None
    default: str | None
    """As YAML writes it; None where a value must be given."""
    meaning: str

    @property
    def type(self) -> str:
        """What values there are, in words."""
        return _in_words(self.annotation)


class Reader(NamedTuple):
    """What a source must say to have its files read."""

    meaning: str
    forms: tuple[str, ...]
    files: str
    """What is said of the files."""
    roles: tuple[str, ...]
    """Roles of files; empty where any name will do."""
    all_roles: bool
    """Whether each role must have a file."""
    options: dict[str, Option]


def reader_names() -> list[str]:
    """Every module that reads a format."""
    return sorted(path.stem for path in FOLDER.glob("*.py") if path.stem not in _NO_READERS)


@cache
def reader(name: str, folder: Path = FOLDER) -> Reader:
    """What the module ``name`` says of itself.

    Raises:
        ConfigError: if it has no function ``read``.
    """
    path = folder / f"{name}.py"
    module = ast.parse(path.read_text("utf-8"))
    functions = {node.name: node for node in module.body if isinstance(node, ast.FunctionDef)}
    if "read" not in functions:
        raise ConfigError(f"{path}: no function read. Write one as in data/readers/base.py.")
    read = functions["read"]
    sections = _sections(ast.get_docstring(read) or "")
    said = {key: " ".join(text.split()) for key, text in _ARGUMENT.findall(sections.get("Args", ""))}
    files = said.get("files", "")
    return Reader(
        meaning=inspect.cleandoc(ast.get_docstring(module) or "").split("\n\n")[0].replace("\n", " "),
        forms=tuple(_WORD.findall(sections.get("Returns", ""))),
        files=files,
        roles=tuple(_WORD.findall(files)),
        all_roles=not files.startswith("Any of"),
        options=dict(_options(read.args, said)),
    )


def _options(arguments: ast.arguments, said: Mapping[str, str]) -> Iterator[tuple[str, Option]]:
    for option, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        written = json.dumps(ast.literal_eval(default)) if default else None
        yield option.arg, Option(option.annotation, written, said.get(option.arg, ""))


def _sections(docstring: str) -> dict[str, str]:
    """Text below each heading of a docstring, such as ``Args``."""
    parts = re.split(r"^(\w+):$", docstring, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def reader_findings(config: Mapping[str, Any]) -> Iterator[str]:
    """Readers, roles and options that sources of datasets name and that are not there, or not theirs."""
    for name, block in config["datasets"].items():
        for number, source in enumerate(block.get("sources", [])):
            if "reader" in source:
                yield from _of_source(source, block["form"], f"datasets.{name}.sources.{number}")


def _of_source(source: Mapping[str, Any], form: str, place: str) -> Iterator[str]:
    name = source["reader"]
    if found := [*unknown(name, reader_names(), f"{place}.reader")]:
        yield from found
        return
    takes = reader(name)
    if takes.forms and form not in takes.forms:
        yield f"{place}.reader: {name} reads {' or '.join(takes.forms)}, not {form}. Name another, or correct form."
    yield from _of_roles(takes, source["files"], f"{place}.files", name)
    yield from _of_options(takes.options, source.get("options", {}), f"{place}.options", name)


def _of_roles(takes: Reader, files: Mapping[str, Any], place: str, name: str) -> Iterator[str]:
    for role in files if takes.roles else ():
        if role not in takes.roles:
            yield f"{place}: {role} is no role of a file of {name}. {advice(role, takes.roles)}"
    for role in takes.roles if takes.all_roles else ():
        if role not in files:
            yield f"{place}: {name} needs a file of role {role}. Name it there."


def _of_options(
    takes: Mapping[str, Option], given: Mapping[str, Any], place: str, name: str
) -> Iterator[str]:
    for key in given:
        if key not in takes:
            yield f"{place}: {key} is no option of {name}. {advice(key, takes)}"
    for key, option in takes.items():
        if key not in given and option.default is None:
            yield f"{place}: {name} needs {key} ({option.type}). {option.meaning or 'Write it there.'}"
        elif key in given and not _fits(given[key], option.annotation):
            yield f"{place}.{key}: {given[key]!r} is not {option.type}. {option.meaning or 'Correct it.'}"


def _fits(value: Any, annotation: ast.expr | None) -> bool:
    """Whether a value of YAML is what an annotation says."""
    match annotation:
        case ast.BinOp(left=left, right=right):
            return _fits(value, left) or _fits(value, right)
        case ast.Subscript(value=ast.Name(id="Literal"), slice=choices):
            named = ast.literal_eval(choices)
            return value in (named if isinstance(named, tuple) else (named,))
        case ast.Constant(value=None):
            return value is None
        case ast.Name(id=kind) if kind in _TYPES:
            return isinstance(value, _TYPES[kind]) and (kind == "bool" or not isinstance(value, bool))
    return True


def _in_words(annotation: ast.expr | None) -> str:
    match annotation:
        case None:
            return "anything"
        case ast.BinOp(left=left, right=right):
            return f"{_in_words(left)} or {_in_words(right)}"
        case ast.Subscript(value=ast.Name(id="Literal"), slice=choices):
            named = ast.literal_eval(choices)
            return " or ".join(map(str, named if isinstance(named, tuple) else (named,)))
        case ast.Constant(value=None):
            return "null"
    written = ast.unparse(annotation)
    return _WORDS.get(written, written)
