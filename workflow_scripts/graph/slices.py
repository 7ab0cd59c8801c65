"""Slices of the configuration that jobs read, as JSON, and other functions of a job's wildcards for rules."""

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from pydantic import BaseModel

from workflow_scripts.provenance.key import canonical

Config = dict[str, Any]


Wildcards = Any
"""A job's wildcards: their values by attribute and in order; ``items()`` has names and values."""


def settings_of(
    thing: Callable[[Wildcards], object], *names: str, **called: str
) -> Callable[[Wildcards], str]:
    """Return a param function: the named settings of a job's run, suite or grid as JSON, with defaults.

    One string with sorted keys, because Snakemake compares params as a set of their ``repr``: two
    numbers that trade places would count as unchanged, and reordered keys as a change.

    Args:
        thing: By a job's wildcards.
        names: Attributes that have their own names in the slice; what is empty is left out.
        called: Name in the slice to dotted path from the thing, if these differ; ``{wildcards}`` are filled in.
    """
    paths = dict(zip(names, names, strict=True)) | called

    def of(wildcards: Wildcards) -> str:
        job, given = thing(wildcards), dict(wildcards.items())
        values = {name: get_path(job, path.format(**given)) for name, path in paths.items()}
        return as_json({name: value for name, value in values.items() if value not in (None, [], {})})

    return of


def path_if_set(pattern: str, thing: Callable[[Wildcards], Any]) -> Callable[[Wildcards], str | list[str]]:
    """Return an input function that fills in a pattern, or gives no file if one of its values is not set.

    Args:
        pattern: Names in braces are wildcards, or attributes of the run or block.
        thing: The run or block, or a mapping of names to values, by a job's wildcards.
    """
    names = re.findall(r"{(\w+)}", pattern)

    def of(wildcards: Wildcards) -> str | list[str]:
        job, given = thing(wildcards), dict(wildcards.items())
        has = job if isinstance(job, Mapping) else {n: getattr(job, n) for n in names if n not in given}
        values = {name: given.get(name) or has.get(name) for name in names}
        return pattern.format(**values) if all(values.values()) else []

    return of


def blocks_with(section: Mapping[str, BaseModel], key: str, value: Any = None) -> list[str]:
    """Return the names of the blocks of a section that have a key, or that have it with a value."""
    having = {name: block for name, block in section.items() if key in type(block).model_fields}
    return [name for name, block in having.items() if value is None or getattr(block, key) == value]


def as_json(value: Any) -> str:
    """JSON with sorted keys; equal numbers are spelled alike, since Snakemake compares params as text."""
    return json.dumps(
        canonical(value), sort_keys=True, default=lambda block: canonical(block.model_dump(mode="json"))
    )


def get_path(value: Any, path: str) -> Any:
    """Return the part of some settings at a dotted path."""
    for key in path.split("."):
        value = value[key] if isinstance(value, Mapping) else getattr(value, key)
    return value


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


def name_pattern(names: Iterable[str]) -> str:
    """Return a wildcard constraint that matches only ``names``; without names, it matches nothing.

    Common prefixes are factored out. For hundreds of runs the pattern is a quarter as long, and Snakemake, which
    matches it with every file of every job, does so ten times as fast.
    """
    return _pattern([*names]) or "(?!)"


def _pattern(names: Sequence[str]) -> str:
    """A regular expression for the ends of names that begin alike."""
    ends = defaultdict[str, list[str]](list)
    for name in filter(None, names):
        ends[name[0]].append(name[1:])
    branches = [re.escape(letter) + _pattern(after) for letter, after in ends.items()]
    joined = branches[0] if len(branches) == 1 and "" not in names else f"(?:{'|'.join(branches)})"
    return "" if not branches else f"{joined}?" if "" in names else joined
