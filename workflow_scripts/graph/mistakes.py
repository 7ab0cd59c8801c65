"""A part of the configuration checked against the class that reads it, a line for each mistake.

Pydantic says whether all is well. If not, the part and its classes are walked again together, and what is wrong is put
into words that say where it is, what was found and what to do. Where several forms are allowed, such as one block or
another, a value is compared with the nearest.
"""

import difflib
import functools
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from types import NoneType, UnionType
from typing import Annotated, Any, NamedTuple, TypeVar, Union, get_args, get_origin

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from workflow_scripts.config import Settings
from workflow_scripts.errors import advice

S = TypeVar("S", bound=Settings)
_LONGEST = 300
"""Characters of what was found, which a message repeats."""
_TYPES = {
    int: "a whole number",
    float: "a number",
    str: "text",
    bool: "true or false",
    list: "a list",
    tuple: "a list",
    dict: "a block of settings",
}
_READ_AS = {int: (int,), float: (int, float), tuple: (list,)}
"""Type to those of JSON that are read as one, where it is not itself."""
_WORDS = {
    "greater_than": "is not above {gt}",
    "greater_than_equal": "is below {ge}",
    "less_than": "is not below {lt}",
    "less_than_equal": "is above {le}",
    "too_short": "has fewer entries than {min_length}",
    "too_long": "has more entries than {max_length}",
    "string_too_short": "is shorter than {min_length}",
    "string_pattern_mismatch": "does not match {pattern}",
    "finite_number": "is no number to compute with",
}
"""Kind of pydantic's error to what is wrong with a value."""

Path = tuple[str, ...]
"""Keys and numbers that lead to a value."""


class Form(NamedTuple):
    """One type that a value may have."""

    kind: Any
    marks: Sequence[Any]
    """Limits, descriptions and the key that tells forms apart."""

    @property
    def plain(self) -> Any:
        """Of a type with arguments, the type; of a class of settings, a dictionary."""
        kind = get_origin(self.kind) or self.kind
        return dict if isinstance(kind, type) and issubclass(kind, Settings) else kind

    @property
    def meaning(self) -> str:
        """Description of the setting; empty where there is none."""
        return next((mark.description for mark in self.marks if getattr(mark, "description", "")), "")

    @property
    def discriminating_key(self) -> str | None:
        """The key whose value tells several classes apart, if one does."""
        return next((mark.discriminator for mark in self.marks if getattr(mark, "discriminator", None)), None)

    def is_of(self, value: Any) -> bool:
        """Whether a value has the type, whatever else may be wrong with it."""
        types = _READ_AS.get(self.plain, (self.plain,))
        return self.plain not in _TYPES or (
            isinstance(value, types) and isinstance(value, bool) == (bool in types)
        )


def read(kind: type[S], value: Any, place: str) -> tuple[S | None, list[str]]:
    """``value`` as its class reads it, or what is wrong with it.

    Args:
        kind: The class, or a base class of those that a key of the value chooses from.
        value: A part of the configuration.
        place: In front of every line, with the dot or blank that ends it.
    """
    try:
        return kind.strictly(value), []
    except ValidationError as error:
        whole = place.removesuffix(".") if place.endswith(".") else f"{place}configuration"
        as_json = json.loads(json.dumps(value, default=str))
        found = [*_Walk(as_json).lines(kind, as_json)] or [*_words(error, ())]
        return None, [f"{whole}{line}" if line.startswith(":") else f"{place}{line}" for line in found]


def mistakes(kind: type[Settings], value: Any, place: str) -> list[str]:
    """What is wrong with ``value``, as in ``read``."""
    return read(kind, value, place)[1]


class _Walk:
    """A walk over a part of the configuration, each value beside what it should be."""

    def __init__(self, whole: Any) -> None:
        self._whole = whole

    def lines(self, kind: Any, value: Any, path: Path = ()) -> Iterator[str]:
        """What is wrong with the value at a path; a line that is about the whole part begins with a colon."""
        forms = [*forms_of(kind)]
        null = any(form.kind is NoneType for form in forms)
        if value is None and null:
            return
        fitting = [form for form in forms if form.is_of(value) and form.kind is not NoneType]
        blocks = [form for form in fitting if form.plain is dict and not get_origin(form.kind)]
        if not fitting:
            names = dict.fromkeys(_TYPES[form.plain] for form in forms if form.kind is not NoneType)
            yield _line(path, value, f"is not {' or '.join([*names, *['null'] * null])}", forms[0].meaning)
        elif blocks:
            yield from self._in_block(blocks, value, path)
        else:
            yield from _limit_mistakes(fitting[0], value, path)
            if fitting[0].plain in (list, tuple, dict):
                yield from self._in_entries(fitting[0], value, path)

    def _in_entries(self, form: Form, value: Any, path: Path) -> Iterator[str]:
        described = Field(description=form.meaning)
        if form.plain is dict:
            of_key, of_value = get_args(form.kind)
            for key, one in value.items():
                wrong = [*_name_mistakes(of_key, key, (*path, key))]  # a block of a wrong name is not read
                yield from wrong or self.lines(Annotated[of_value, described], one, (*path, key))
        else:
            for number, one in enumerate(value):
                yield from self.lines(Annotated[get_args(form.kind)[0], described], one, (*path, str(number)))

    def _in_block(self, forms: Sequence[Form], value: Mapping[str, Any], path: Path) -> Iterator[str]:
        """One class of settings, or the nearest of several."""
        if key := forms[0].discriminating_key:
            named = {
                name: form for form in forms for name in get_args(form.kind.model_fields[key].annotation)
            }
            if key not in value:
                yield self._without([key], path)
            elif value[key] not in named:
                yield f"{'.'.join((*path, key))}: {_none_of(value[key], sorted(named))}"
            else:
                yield from self._in_class(named[value[key]].kind, value, path)
            return
        first, *others = sorted(forms, key=lambda form: len(_wrong_keys(form.kind, value)))
        if others and len(_wrong_keys(others[0].kind, value)) == len(_wrong_keys(first.kind, value)):
            needs = (" and ".join(_missing(form.kind, value)) for form in (first, *others))
            wrong = f"is not {' or '.join(f'a block with {keys}' for keys in needs)}"
            yield _line(path, value, wrong, first.meaning)
        else:
            yield from self._in_class(first.kind, value, path)

    def _in_class(self, kind: type[Settings], value: Mapping[str, Any], path: Path) -> Iterator[str]:
        try:
            kind = kind.class_of(value)
            found = [*self._in_keys(kind, value, path)]
            yield from found
            if not found:  # values may still exclude each other
                kind.strictly(value)
        except ValidationError as error:
            yield from _words(error, path)

    def _in_keys(self, kind: type[Settings], value: Mapping[str, Any], path: Path) -> Iterator[str]:
        fields = kind.model_fields
        if missing := _missing(kind, value):
            yield self._without(missing, path)
        yield from self._unknown([key for key in value if key not in fields], path, sorted(fields))
        for key, field in fields.items():
            if key in value:
                yield from self.lines(Annotated[field.annotation, field], value[key], (*path, key))

    def _without(self, missing: Sequence[str], path: Path) -> str:
        """A line about keys that a block lacks, and the block beside it that its name may be a misspelling of."""
        beside = functools.reduce(_step, path[:-1], self._whole)
        blocks = beside.items() if path and isinstance(beside, dict) else ()
        whole = [name for name, block in blocks if isinstance(block, dict) and {*missing} <= block.keys()]
        close = difflib.get_close_matches(path[-1], whole, n=1) if whole else []
        hint = f" Did you mean {close[0]}?" if close else ""
        return f"{'.'.join(path)}: without {', '.join(missing)}. Write it there.{hint}"

    def _unknown(self, names: Sequence[str], path: Path, known: Sequence[str]) -> Iterator[str]:
        meant = {
            name: [*difflib.get_close_matches(name, known, n=1), *self._home_of(name, path)] for name in names
        }
        for name in filter(meant.get, names):
            yield f"{'.'.join((*path, name))}: unknown key. Did you mean {', or '.join(meant[name])}?"
        if far := [name for name in names if not meant[name]]:
            keys = "key" if len(far) == 1 else "keys"
            yield f"{'.'.join((*path, ', '.join(far)))}: unknown {keys}. {advice(far[0], known)}"

    def _home_of(self, key: str, path: Path) -> list[str]:
        """Where a key that is unknown in its block is known: in a block around it, or, at the top, in a section."""
        if not path:
            sections = (name for name, part in self._whole.items() if isinstance(part, dict) and key in part)
            return [f"{name}.{key}" for name in sections][:1]
        around = [path[:depth] for depth in range(len(path))]
        homes = [above for above in around if key in functools.reduce(_step, above, self._whole)]
        return [".".join([*homes[-1], key]) + ("" if homes[-1] else " at the top")] if homes else []


def _step(value: Any, step: str) -> Any:
    return value[int(step)] if isinstance(value, list) else value[step]


def forms_of(kind: Any) -> Iterator[Form]:
    """The types that a value may have, null among them, each with the marks of all that it is part of."""
    marks: list[Any] = []
    while get_origin(kind) is Annotated:
        kind, *more = get_args(kind)
        marks = [*marks, *more]
    if get_origin(kind) not in (Union, UnionType):
        yield Form(kind, marks)
        return
    for part in get_args(kind):
        yield from (form._replace(marks=[*form.marks, *marks]) for form in forms_of(part))


def _missing(kind: type[Settings], value: Mapping[str, Any]) -> list[str]:
    return [key for key, field in kind.model_fields.items() if field.is_required() and key not in value]


def _wrong_keys(kind: type[Settings], value: Mapping[str, Any]) -> list[str]:
    return [*_missing(kind, value), *(key for key in value if key not in kind.model_fields)]


def _limit_mistakes(form: Form, value: Any, path: Path) -> Iterator[str]:
    """What is wrong with a value that has the right type; what is inside of it is left out."""
    kind: Any = Annotated[form.plain if form.plain in _TYPES else form.kind, *form.marks, None]
    try:
        TypeAdapter(kind, config=ConfigDict(allow_inf_nan=False)).validate_json(json.dumps(value))
    except ValidationError as error:
        yield from _words(error, path, form.meaning)


def _name_mistakes(kind: Any, name: str, path: Path) -> Iterator[str]:
    """What is wrong with a key that a user of the configuration chose."""
    try:
        TypeAdapter(kind).validate_python(name)
    except ValidationError as error:
        pattern = error.errors()[0].get("ctx", {}).get("pattern")
        yield from [f"{'.'.join(path)}: {_no_name(pattern)}"] if pattern else _words(error, path)


def _words(error: ValidationError, path: Path, meaning: str = "") -> Iterator[str]:
    """Pydantic's errors of the value at a path, whose setting has a meaning."""
    for one in error.errors(include_url=False):
        place, context, kind = (*path, *map(str, one["loc"])), one.get("ctx", {}), one["type"]
        if kind == "value_error":  # of our own: lines that begin with the key
            yield from (".".join((*place, line)) for line in str(context["error"]).splitlines())
        elif kind == "literal_error":
            yield f"{'.'.join(place)}: {_none_of(one['input'], _expected(context['expected']))}"
        else:
            limits = {
                key: f"{limit:g}" if isinstance(limit, float) else limit for key, limit in context.items()
            }
            wrong = _WORDS[kind].format(**limits) if kind in _WORDS else f"cannot be read: {one['msg']}"
            yield _line(place, one["input"], wrong, meaning)


def _line(path: Path, found: Any, wrong: str, meaning: str) -> str:
    text = repr(found)
    shown = text if len(text) <= _LONGEST else f"{text[:_LONGEST]} ..."
    return f"{'.'.join(path)}: {shown} {wrong}{f' ({meaning})' if meaning else ''}."


def _expected(words: str) -> list[str]:
    """The values that pydantic lists, as in "'a', 'b' or 'c'"."""
    return [word.strip("'") for word in re.split(", | or ", words)]


def _none_of(found: Any, known: Sequence[str]) -> str:
    close = difflib.get_close_matches(str(found), known, n=1)
    hint = f" Did you mean {close[0]}?" if close else ""
    return f"{found!r} is none of {', '.join(known)}.{hint}"


def _no_name(pattern: str) -> str:
    """What is wrong with a key, and what to do: of names, or of settings with dots such as ``method.temperature``."""
    if "\\." not in pattern:
        return "not a name. Use small letters, digits and underscores."
    sections = re.findall("[a-z]+", pattern.partition(")")[0])
    return f"not a dotted setting. Begin it with {' or '.join(f'{section}.' for section in sections)}"
