"""Parts of the configuration as params and inputs of rules."""

import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from workflow_scripts.provenance.key import canonical

Config = dict[str, Any]


class Wildcards(Protocol):
    """A job's wildcards, by attribute, and their values in order."""

    def __iter__(self) -> Iterator[str]:
        """Values of all wildcards."""

    def items(self) -> Iterable[tuple[str, str]]:
        """Names and values."""

    def __getattr__(self, name: str) -> str:
        """Value of the wildcard ``name``."""


def parts(thing: Callable[[Wildcards], object], *names: str, **called: str) -> Callable[[Wildcards], str]:
    """Make a param function: parts of the configuration, or of a job's run or suite, with their defaults as JSON.

    One string with sorted keys, because Snakemake compares params as a set of their ``repr``: two
    numbers that trade places would count as unchanged, and reordered keys as a change.

    Args:
        thing: By a job's wildcards.
        names: Attributes that have their own names in the slice; what is empty is left out.
        called: Name in the slice to dotted path from the thing, where these differ; ``{wildcards}`` are filled in.
    """
    paths = dict(zip(names, names, strict=True)) | called

    def of(wildcards: Wildcards) -> str:
        job, given = thing(wildcards), dict(wildcards.items())
        values = {name: at(job, path.format(**given)) for name, path in paths.items()}
        return as_json({name: value for name, value in values.items() if value not in (None, [], {})})

    return of


def filled(pattern: str, thing: Callable[[Wildcards], Any]) -> Callable[[Wildcards], str | list[str]]:
    """Make an input function: a path with what a job's run or block says; no file where that says nothing.

    Args:
        pattern: Has attributes or keys of the thing, and wildcards, in braces.
        thing: By a job's wildcards.
    """
    names = re.findall(r"{(\w+)}", pattern)

    def of(wildcards: Wildcards) -> str | list[str]:
        job, given = thing(wildcards), dict(wildcards.items())
        has = job if isinstance(job, Mapping) else {name: getattr(job, name, None) for name in names}
        named = {name: given.get(name) or has.get(name) for name in names}
        return pattern.format(**named) if all(named.values()) else []

    return of


def having(section: Mapping[str, Any], key: str, value: Any = None) -> list[str]:
    """Names of the blocks of a section that have a key, or that have it with a value."""
    return [
        name
        for name, block in section.items()
        if hasattr(block, key) and value in (None, getattr(block, key))
    ]


def as_json(value: Any) -> str:
    """JSON with sorted keys; equal numbers are spelled alike, since Snakemake compares params as text."""
    return json.dumps(
        canonical(value), sort_keys=True, default=lambda block: canonical(block.model_dump(mode="json"))
    )


def at(value: Any, path: str) -> Any:
    """The part of some settings at a dotted path."""
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


def one_of(names: Iterable[str]) -> str:
    """A wildcard constraint that matches exactly ``names``, and nothing where there are none.

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
