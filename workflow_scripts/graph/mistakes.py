"""A part of the configuration checked against the class that reads it, a line for each mistake.

Pydantic finds the mistakes. Here they are put into words that say where it is, what was found and what to do.
"""

import difflib
import functools
import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from types import NoneType, UnionType
from typing import Annotated, Any, NamedTuple, TypeVar, Union, get_args, get_origin

from pydantic import ValidationError

from workflow_scripts.config import Settings
from workflow_scripts.errors import advice, shown

S = TypeVar("S", bound=Settings)
_LONGEST = 300
"""Characters of a wrong value that a message repeats."""
_TYPES = {
    **dict.fromkeys(("int_type", "int_from_float"), "a whole number"),
    "float_type": "a number",
    "string_type": "text",
    "bool_type": "true or false",
    **dict.fromkeys(("list_type", "tuple_type"), "a list"),
    **dict.fromkeys(("dict_type", "model_type", "model_attributes_type"), "a block of settings"),
}
"""Kind of pydantic's error to what a value is not."""
_WORDS = {
    "greater_than": "is not above {gt}",
    "greater_than_equal": "is below {ge}",
    "less_than": "is not below {lt}",
    "less_than_equal": "is above {le}",
    "too_short": "has fewer entries than {min_length}",
    "too_long": "has more entries than {max_length}",
    "string_too_short": "is shorter than {min_length}",
    "string_pattern_mismatch": "does not match {pattern}",
    "finite_number": "must be finite",
}
"""Kind of pydantic's error to what is wrong with a value."""
_PARTIAL = ("missing", "value_error")
"""Errors that say nothing of some keys of a block by themselves."""

Path = tuple[str, ...]
"""Keys and numbers that lead to a value."""


class _Found(NamedTuple):
    """Where an error is."""

    path: Path
    value: Any
    known: Sequence[str]
    """Keys of the block that the last step is a key of."""
    meaning: str
    """Description of the setting."""
    null: Sequence[str]
    """``["null"]`` if the value may be null; otherwise empty."""


def read(kind: type[S], value: Any, place: str, *, partial: bool = False) -> tuple[S | None, list[str]]:
    """``value`` as its class reads it, or a line for each thing that is wrong with it.

    Args:
        kind: The class.
        value: A part of the configuration.
        place: In front of every line, with the dot or blank that ends it.
        partial: Whether the value is some keys of a block, whose others are elsewhere.
    """
    try:
        return kind.strictly(value), []
    except ValidationError as error:
        whole = place.removesuffix(".") if place.endswith(".") else f"{place}configuration"
        errors = [
            one for one in error.errors(include_url=False) if not partial or one["type"] not in _PARTIAL
        ]
        lines = dict.fromkeys(_lines(errors, kind, json.loads(json.dumps(value, default=str))))
        return None, [f"{whole}{line}" if line.startswith(":") else f"{place}{line}" for line in lines]


def _lines(errors: Sequence[Any], kind: type[Settings], whole: Any) -> Iterator[str]:
    """A line for each mistake, those of the keys of one block together; one about ``whole`` begins with a colon."""
    located = [(one, _located(kind, one, whole)) for one in errors]
    at = {found.path: found for _, found in located}
    # What is wrong with a value, or below it, is about the form that it has: that it has no other is no mistake.
    formed = {
        found.path[:depth]
        for one, found in located
        for depth in range(len(found.path) + (one["type"] not in _TYPES))
    }
    missing, unknown, types = (defaultdict[Path, list[str]](list) for _ in range(3))
    for one, found in located:
        match one["type"]:
            case "missing":
                missing[found.path[:-1]].append(found.path[-1])
            case "union_tag_not_found":
                missing[found.path].append(one["ctx"]["discriminator"].strip("'"))
            case "extra_forbidden":
                unknown[found.path[:-1]].append(found.path[-1])
            case wrong if wrong not in _TYPES:
                yield from _words(one, found)
            case wrong if found.path not in formed:
                types[found.path].append(_TYPES[wrong])
    for path, names in types.items():
        yield _line(at[path], f"is not {' or '.join(dict.fromkeys([*names, *at[path].null]))}")
    yield from (_without(keys, path, whole) for path, keys in missing.items())
    for path, keys in unknown.items():
        yield from _unknown(keys, path, at[(*path, keys[0])].known, whole)


def _located(kind: type[Settings], error: Any, value: Any) -> _Found:
    """Where one of pydantic's errors is.

    Its steps are keys, numbers and, where a value may have several forms, what the form is called; a block's settings
    may stand among its own keys in the configuration (``MethodBlock``).
    """
    path, forms, field, null = list[str](), [kind], None, False
    known, beside = set[str](), set[str]()
    for step in error["loc"]:
        blocks = [form for form in forms if isinstance(form, type) and issubclass(form, Settings)]
        if len(blocks) > 1:
            forms = _told(blocks, step)
            continue
        fields = blocks[0].model_fields if blocks else {}
        beside.update(fields)
        if step in (
            value if isinstance(value, Mapping) else range(len(value)) if isinstance(value, list) else ()
        ):
            path, value, known, beside = [*path, str(step)], value[step], beside, set()
            inside = [
                get_args(form)[-1 if get_origin(form) is dict else 0] for form in forms if get_args(form)
            ]
            forms, null = [form for one in inside for form in _forms(one)], False
        elif error["type"] == "missing" and step == error["loc"][-1]:
            path = [*path, str(step)]
        if step in fields:
            beside.discard(step)
            field = fields[step]
            forms, null = _forms(field.annotation), NoneType in get_args(field.annotation)
    meaning = ((field and field.description) or "").removesuffix(".")
    return _Found(tuple(path), value, sorted(known), meaning, ["null"] * null)


def _forms(kind: Any) -> list[Any]:
    """The types that a value may have besides null."""
    if get_origin(kind) is Annotated:
        return _forms(get_args(kind)[0])
    if get_origin(kind) in (Union, UnionType):
        return [form for part in get_args(kind) for form in _forms(part)]
    return [] if kind is NoneType else [kind]


def _told(blocks: Sequence[type[Settings]], tag: str) -> list[type[Settings]]:
    """The one of several classes that a tag stands for: by the value of a key, or else by a key."""
    fields = {block: block.model_fields for block in blocks}
    valued = [
        one for one in blocks if any(tag in get_args(field.annotation) for field in fields[one].values())
    ]
    return valued or [one for one in blocks if tag in fields[one]]


def _words(one: Any, found: _Found) -> Iterator[str]:
    """One of pydantic's errors that is about a value, and not about its type."""
    context, place = one.get("ctx", {}), ".".join(found.path)
    match one["type"]:
        case "value_error":  # of our own: lines that begin with the key
            yield from (".".join((*found.path, line)) for line in str(context["error"]).splitlines())
        case "literal_error":
            yield f"{place}: {_not_among(one['input'], _expected(context['expected']))}"
        case "union_tag_invalid":
            key = context["discriminator"].strip("'")
            known = sorted(_expected(context["expected_tags"]))
            yield f"{'.'.join((*found.path, key))}: {_not_among(context['tag'], known)}"
        case "string_pattern_mismatch" if one["loc"][-1] == "[key]":
            yield f"{place}: {_no_name(context['pattern'])}"
        case "no_form":
            yield _line(found, one["msg"])
        case wrong if wrong in _WORDS:
            limits = {
                key: f"{limit:g}" if isinstance(limit, float) else limit for key, limit in context.items()
            }
            yield _line(found, _WORDS[wrong].format(**limits))
        case _:
            yield _line(found, f"cannot be read: {one['msg']}")


def _line(found: _Found, wrong: str) -> str:
    """A line about a value, with the description of its setting."""
    text = shown(found.value)
    text = text if len(text) <= _LONGEST else f"{text[:_LONGEST]} ..."
    meaning = f" ({found.meaning})" if found.meaning else ""
    return f"{'.'.join(found.path)}: {text} {wrong}{meaning}."


def _without(missing: Sequence[str], path: Path, whole: Any) -> str:
    """Report missing keys, with a sibling block's name if this one looks misspelt."""
    beside = functools.reduce(_step, path[:-1], whole)
    blocks = beside.items() if path and isinstance(beside, dict) else ()
    complete = [name for name, block in blocks if isinstance(block, dict) and {*missing} <= block.keys()]
    close = difflib.get_close_matches(path[-1], complete, n=1) if complete else []
    hint = f" Did you mean {close[0]}?" if close else ""
    return f"{'.'.join(path)}: without {', '.join(missing)}. Write it there.{hint}"


def _unknown(names: Sequence[str], path: Path, known: Sequence[str], whole: Any) -> Iterator[str]:
    meant = {
        name: [*difflib.get_close_matches(name, known, n=1), *_home(name, path, whole)] for name in names
    }
    for name in filter(meant.get, names):
        yield f"{'.'.join((*path, name))}: unknown key. Did you mean {', or '.join(meant[name])}?"
    if far := [name for name in names if not meant[name]]:
        keys = "key" if len(far) == 1 else "keys"
        yield f"{'.'.join((*path, ', '.join(far)))}: unknown {keys}. {advice(far[0], known)}"


def _home(key: str, path: Path, whole: Any) -> list[str]:
    """Where a key that is unknown in its block is known: in a block around it, or, at the top, in a section."""
    if not path:
        sections = (name for name, part in whole.items() if isinstance(part, dict) and key in part)
        return [f"{name}.{key}" for name in sections][:1]
    around = [path[:depth] for depth in range(len(path))]
    homes = [above for above in around if key in functools.reduce(_step, above, whole)]
    return [".".join([*homes[-1], key]) + ("" if homes[-1] else " at the top")] if homes else []


def _step(value: Any, step: str) -> Any:
    return value[int(step)] if isinstance(value, list) else value[step]


def _expected(words: str) -> list[str]:
    """The values that pydantic lists, as in "'a', 'b' or 'c'"."""
    return [word.strip("'") for word in re.split(", | or ", words)]


def _not_among(found: Any, known: Sequence[str]) -> str:
    close = difflib.get_close_matches(str(found), known, n=1)
    hint = f" Did you mean {close[0]}?" if close else ""
    return f"{shown(found)} is not one of {', '.join(known)}.{hint}"


def _no_name(pattern: str) -> str:
    """Mistake in a key, and the remedy: for names, and for settings with dots such as ``method.temperature``."""
    if "\\." not in pattern:
        return "not a name. Use small letters, digits and underscores."
    sections = re.findall("[a-z]+", pattern.partition(")")[0])
    return f"not a dotted setting. Begin it with {' or '.join(f'{section}.' for section in sections)}"
