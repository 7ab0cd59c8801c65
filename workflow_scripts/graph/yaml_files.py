"""Reading YAML strictly: no key twice, no tags, equal numbers in one form, and every mistake with its file and line."""

import math
import re
from collections.abc import Hashable
from pathlib import Path
from typing import Any

import yaml

from workflow_scripts.errors import ConfigError
from workflow_scripts.provenance.key import canonical


def read_yaml(path: Path) -> Any:
    """Read a YAML file whose mappings name no key twice.

    Raises:
        ConfigError: with the line of the mistake.
    """
    try:
        content = yaml.load(path.read_text("utf-8"), Loader=_Loader)  # a subclass of CSafeLoader
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
    return content


def read_text(text: str) -> Any:
    """What ``text`` would be in a YAML file; itself where YAML cannot read it."""
    try:
        return yaml.load(text, Loader=_Loader)
    except yaml.YAMLError:
        return text


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


class _Loader(yaml.CSafeLoader):
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

    def construct_number(self, node: yaml.ScalarNode) -> float | int:
        """The form that equal numbers share: 2.0 is 2."""
        number: float | int = canonical(self.construct_yaml_float(node))
        return number


_FLOAT = "tag:yaml.org,2002:float"
_Loader.add_constructor(_FLOAT, _Loader.construct_number)
# YAML 1.1, which PyYAML reads, takes 1e-4 and 1.0e4 for text, where YAML 1.2 and JSON see a number.
_WITH_EXPONENT = re.compile(r"[-+]?(\d+\.?\d*|\.\d+)[eE][-+]?\d{1,3}$")
_Loader.add_implicit_resolver(_FLOAT, _WITH_EXPONENT, list("-+.0123456789"))
