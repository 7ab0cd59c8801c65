"""A part of the configuration checked against the class that reads it, a line for each mistake.

Pydantic finds the mistakes. Here they are put into words that say where it is, what was found and what to do: the path
of a value is followed through the classes, which know its meaning, the other keys of its block and the forms that it
may have.
"""

import difflib
import functools
import json
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from types import NoneType, UnionType
from typing import Annotated, Any, NamedTuple, TypeVar, Union, get_args, get_origin

from pydantic import Tag, ValidationError

from workflow_scripts.config import Settings
from workflow_scripts.errors import advice, shown

S = TypeVar("S", bound=Settings)
_LONGEST = 300
"""Characters of a wrong value that a message repeats."""
_TYPES = {
    int: "a whole number",
    float: "a number",
    str: "text",
    bool: "true or false",
    list: "a list",
    dict: "a block of settings",
    NoneType: "null",
}
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


class Form(NamedTuple):
    """One type that a value may have."""

    kind: Any
    marks: Sequence[Any]
    """Limits, descriptions and the key that tells forms apart."""

    @property
    def is_block(self) -> bool:
        """Whether it is a class of settings."""
        return isinstance(self.kind, type) and issubclass(self.kind, Settings)

    @property
    def plain(self) -> Any:
        """The type without its arguments, as JSON has it."""
        kind = get_origin(self.kind) or self.kind
        return dict if self.is_block else list if kind is tuple else kind

    def fits(self, value: Any) -> bool:
        """Whether a value is meant as this form: by its type and, for classes of settings, by the key that tells."""
        plain: Any = self.plain
        if not isinstance(plain, type) or not isinstance(value, plain):
            return False
        if tags := [mark.tag for mark in self.marks if isinstance(mark, Tag)]:
            return isinstance(value, Mapping) and tags[0] in value
        if keys := [mark.discriminator for mark in self.marks if getattr(mark, "discriminator", None)]:
            return isinstance(value, Mapping) and value.get(keys[0]) in get_args(
                self.kind.model_fields[keys[0]].annotation
            )
        return isinstance(value, bool) == (plain is bool)

    def part(self, value: Any, key: Any) -> Any:
        """The type of one part of a value of this form; None if it has no such part."""
        if self.is_block:
            field = self.kind.fields_in(value).get(key)
            return field and Annotated[field.annotation, *field.metadata, field]
        inside = get_args(self.kind)
        return Annotated[inside[-1 if self.plain is dict else 0], *self.marks, None] if inside else None


def possible_forms(kind: Any) -> Iterator[Form]:
    """The types that a value may have, null among them, each with the marks of all that it is part of."""
    marks: list[Any] = []
    while get_origin(kind) is Annotated:
        kind, *more = get_args(kind)
        marks = [*marks, *more]
    if get_origin(kind) not in (Union, UnionType):
        yield Form(kind, marks)
        return
    for part in get_args(kind):
        yield from (form._replace(marks=[*form.marks, *marks]) for form in possible_forms(part))


def meant_form(kind: Any, value: Any) -> Form | None:
    """The form that a value is meant to have; None if it has none of them."""
    return next((form for form in possible_forms(kind) if form.fits(value)), None)


class _Found(NamedTuple):
    """Where an error is."""

    path: Path
    forms: Sequence[Form]
    """Forms that the value may have."""
    known: Sequence[str]
    """Keys of the block that the last step is a key of."""
    value: Any


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
    missing: dict[Path, list[str]] = defaultdict(list)
    unknown: dict[Path, list[str]] = defaultdict(list)
    known: dict[Path, Sequence[str]] = {}
    misnamed = [one["loc"][:-1] for one in errors if one["loc"][-1:] == ("[key]",)]
    for one in errors:
        if (found := _located(kind, one, whole)) is None:
            continue
        if any(one["loc"][: len(name)] == name and one["loc"][-1] != "[key]" for name in misnamed):
            continue  # in a block of a wrong name
        *above, last = found.path or ("",)
        match one["type"]:
            case "missing":
                missing[tuple(above)].append(last)
            case "union_tag_not_found":
                missing[found.path].append(one["ctx"]["discriminator"].strip("'"))
            case "extra_forbidden":
                unknown[tuple(above)].append(last)
                known[tuple(above)] = found.known
            case _:
                yield from _words(one, found)
    yield from (_without(keys, path, whole) for path, keys in missing.items())
    for path, keys in unknown.items():
        yield from _unknown(keys, path, known[path], whole)


def _located(kind: Any, error: Any, value: Any) -> _Found | None:
    """Where one of pydantic's errors is; None if it is about another form than the value has.

    Its steps are keys, numbers and, where a value may have several forms, what the form is called.
    """
    path: list[str] = []
    known: list[str] = []
    for number, step in enumerate(error["loc"], start=1):
        forms = [form for form in possible_forms(kind) if form.kind is not NoneType]
        if len(forms) > 1:
            if (meant := meant_form(kind, value)) is None:
                break
            kind = Annotated[meant.kind, *meant.marks, None]
        elif step in (
            value if isinstance(value, Mapping) else range(len(value)) if isinstance(value, list) else ()
        ):
            known = sorted(forms[0].kind.fields_in(value)) if forms[0].is_block else []
            kind, value = forms[0].part(value, step), value[step]
            path.append(str(step))
        elif error["type"] == "missing" and number == len(error["loc"]):
            path.append(str(step))
    forms = [*possible_forms(kind)]
    if error["type"].endswith("_type") and any(form.fits(value) for form in forms):
        return None
    return _Found(tuple(path), forms, known, value)


def _words(one: Any, found: _Found) -> Iterator[str]:
    """One of pydantic's errors."""
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
        case "no_form" if isinstance(found.value, dict):
            yield _line(place, found, one["msg"])
        case wrong if wrong in _WORDS:
            limits = {
                key: f"{limit:g}" if isinstance(limit, float) else limit for key, limit in context.items()
            }
            yield _line(place, found, _WORDS[wrong].format(**limits))
        case wrong if wrong.endswith("_type") or wrong in ("int_from_float", "no_form"):
            names = dict.fromkeys(_TYPES[form.plain] for form in found.forms if form.plain in _TYPES)
            yield _line(place, found, f"is not {' or '.join(names)}")
        case _:
            yield _line(place, found, f"cannot be read: {one['msg']}")


def _line(place: str, found: _Found, wrong: str) -> str:
    """A line about a value, with the description of its setting."""
    text = shown(found.value)
    text = text if len(text) <= _LONGEST else f"{text[:_LONGEST]} ..."
    described = (getattr(mark, "description", None) for form in found.forms[:1] for mark in form.marks)
    meaning = next(filter(None, described), "").removesuffix(".")
    return f"{place}: {text} {wrong}{f' ({meaning})' if meaning else ''}."


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
