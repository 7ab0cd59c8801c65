"""Reading YAML strictly: no key twice, no tags, and every mistake with its file and line."""

import math
import re
from collections.abc import Hashable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from workflow_scripts.errors import ConfigError, one_line_errors
from workflow_scripts.graph.findings import refuse
from workflow_scripts.provenance.key import canonical


def read_yaml(path: Path) -> Any:
    """Read a YAML file whose mappings name no key twice.

    Raises:
        ConfigError: with the line of the mistake.
    """
    try:
        content = yaml.load(path.read_text("utf-8"), Loader=_UniqueKeys)  # a subclass of CSafeLoader
    except FileNotFoundError as error:
        raise ConfigError(f"{path}: no such file. Check the path after --configfile.") from error
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}. Name a file that can be read.") from error
    except UnicodeDecodeError as error:
        raise ConfigError(f"{path}: {error}. Save it as UTF-8.") from error
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else "?"
        raise ConfigError(f"{path}:{line}: {error.problem}. Fix the YAML.") from error
    except yaml.YAMLError as error:  # a character that YAML does not know, such as a control character
        raise ConfigError(f"{path}: {' '.join(str(error).split())}. Fix the YAML.") from error
    if _size(content, {}) > _MOST_VALUES:
        raise ConfigError(f"{path}: aliases repeat what they name beyond measure. Write out what is meant.")
    read_numbers(content)
    return content


_MOST_VALUES = 1_000_000
"""In one file, each alias counted as a copy of what it stands for."""


def _size(value: Any, sizes: dict[int, float]) -> float:
    """Values in a part of a configuration; infinitely many in one that holds itself."""
    if not isinstance(value, dict | list):
        return 1
    if id(value) not in sizes:
        sizes[id(value)] = math.inf  # until it is counted
        parts = value.values() if isinstance(value, dict) else value
        sizes[id(value)] = 1 + sum(_size(part, sizes) for part in parts)
    return sizes[id(value)]


_WITH_EXPONENT = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)[eE][-+]?\d{1,3}")


class _UniqueKeys(yaml.CSafeLoader):
    """YAML's safe loader, which by itself lets the last of two equal keys win in silence."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[Any] = set()
        for key_node, _value in node.value:
            if key_node.tag == "tag:yaml.org,2002:merge":
                continue
            key = self.construct_object(key_node, deep=deep)
            if not isinstance(
                key, Hashable
            ):  # as in {{encoder}}, which YAML takes for a mapping of a mapping
                raise yaml.MarkedYAMLError(
                    problem="a list or a mapping is a key; text with braces or brackets stands in quotes",
                    problem_mark=key_node.start_mark,
                )
            if key in seen:
                raise yaml.MarkedYAMLError(
                    problem=f"key {key!r} occurs twice", problem_mark=key_node.start_mark
                )
            seen.add(key)
        return super().construct_mapping(node, deep)


def check_configfiles(snakefile: Path) -> None:
    """Read those files, since Snakemake would name neither file nor line of a mistake.

    Ends the process with a line for each file that cannot be read.
    """
    with one_line_errors():
        refuse(finding for file in configfiles_of(snakefile) for finding in reading_findings(file))


def configfiles_of(snakefile: Path) -> list[Path]:
    """The files that a Snakefile names by ``configfile:``, in order."""
    named = re.findall(r'^configfile: f"\{CLONE\}/(.+)"$', snakefile.read_text("utf-8"), flags=re.MULTILINE)
    return [snakefile.parent / name for name in named]


def reading_findings(file: Path) -> Iterator[str]:
    """Why a YAML file cannot be read, if it cannot."""
    state = file.stat() if file.exists() else None
    yield from _reading_findings(file, state and (state.st_mtime_ns, state.st_size))


@cache  # the same files are checked before Snakemake reads them, and again with those that are laid over them
def _reading_findings(file: Path, _state: tuple[int, int] | None) -> tuple[str, ...]:
    try:
        read_yaml(file)
    except ConfigError as error:
        return (str(error),)
    return ()


def read_numbers(value: Any, seen: set[int] | None = None) -> None:
    """Give every number below a mapping or list, in place, the one form that equal ones share.

    YAML 1.1, which Python reads, takes ``1e-4`` and ``1.0e4`` for text, where YAML 1.2 and JSON see a number; 2.0
    becomes 2. A part that several keys share is read once.
    """
    seen = set() if seen is None else seen
    if not isinstance(value, dict | list) or id(value) in seen:
        return
    seen.add(id(value))
    for key, item in list(value.items() if isinstance(value, dict) else enumerate(value)):
        if isinstance(item, float) or (isinstance(item, str) and _WITH_EXPONENT.fullmatch(item)):
            value[key] = canonical(float(item))
        read_numbers(item, seen)


def not_finite(value: Any, place: str, seen: set[int] | None = None) -> Iterator[str]:
    """Numbers that are none, such as ``.nan``, wherever they are; a part that several keys share is read once."""
    seen = set() if seen is None else seen
    if isinstance(value, float) and not math.isfinite(value):
        yield f"{place}: {value} is no number to compute with. Give a finite one, or null where it may be left out."
    if not isinstance(value, dict | list) or id(value) in seen:
        return
    seen.add(id(value))
    for key, item in value.items() if isinstance(value, dict) else enumerate(value):
        yield from not_finite(
            item, f"{place}.{key}" if place and not place.endswith(" ") else f"{place}{key}", seen
        )
