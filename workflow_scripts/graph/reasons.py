"""Reasons for a rerun, in words: each changed setting or package with its old and new value, and of many files two."""

import ast
import json
import re
from collections.abc import Mapping
from typing import Any

_ABSENT = "(absent)"
_SHOWN = 3
"""Changes that a line names; of more, their number."""
_LONGEST = 60
_NOTHING = "<nothing exclusive>"
_TEXT = r"""(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")"""
_SET = rf"({_TEXT}(?:,{_TEXT})*|{_NOTHING})"
_FILES = re.compile(r"((?:output|input) files|updated by another job): ([^;]+)")
"""How Snakemake prints files, separated by commas, before the next reason."""
_FILES_SHOWN = 2
_PARAMS = re.compile(rf"Params have changed since last execution: [^:]*: before: {_SET} now: {_SET} ")
"""How Snakemake prints params: the texts before and now, each as Python writes it."""


def flat(value: Any, place: str = "") -> dict[str, Any]:
    """Settings with dotted keys; lists of blocks are numbered, other lists are values."""
    blocks = isinstance(value, list) and value and all(isinstance(one, dict) for one in value)
    inside: Mapping[Any, Any] = dict(enumerate(value)) if blocks else value
    if not isinstance(inside, Mapping) or (place and not inside):
        return {place: value}
    found: dict[str, Any] = {}
    for key, part in inside.items():
        found |= flat(part, f"{place}.{key}" if place else str(key))
    return found


def in_words(reason: str) -> str:
    """Snakemake's reason for a job, with keys that differ in place of the JSON of changed params, and fewer files."""
    return _PARAMS.sub(lambda found: _changes(*found.groups()), _FILES.sub(_fewer, reason))


def _fewer(found: re.Match[str]) -> str:
    files = found[2].split(", ")
    more = f", and {len(files) - _FILES_SHOWN} more" if len(files) > _FILES_SHOWN else ""
    return f"{found[1]}: {', '.join(files[:_FILES_SHOWN])}{more}"


def _changes(before: str, now: str) -> str:
    old, new = _values(before), _values(now)
    names = [name for name in old | new if old.get(name, _ABSENT) != new.get(name, _ABSENT)]
    shown = [
        f"{name} {_brief(old.get(name, _ABSENT))} -> {_brief(new.get(name, _ABSENT))}"
        for name in names[:_SHOWN]
    ]
    more = f", and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return f"Changed: {', '.join(shown) or 'the order of settings'}{more}"


def _values(texts: str) -> dict[str, Any]:
    """The entries of JSON texts, as Snakemake prints a set of params."""
    params = () if texts == _NOTHING else ast.literal_eval(f"({texts},)")
    return {name: value for text in params for name, value in flat(json.loads(text)).items()}


def _brief(value: object) -> str:
    text = str(value)
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"
