"""Messages for pydantic's errors: the place in a YAML file, the value found and the remedy."""

import difflib
import json
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from textwrap import shorten
from typing import Any, NamedTuple, TypeVar, get_args, get_origin

from pydantic import ValidationError

from workflow_scripts.errors import ConflictError, ErrorDetails, advice, shown
from workflow_scripts.settings.base import Settings, in_words
from workflow_scripts.settings.renamed import new_name

S = TypeVar("S", bound=Settings)


_LONGEST = 300  # characters of a wrong value that a message repeats


_NO_KEYS = {
    "^[a-z0-9_]+$": ("not a name", "Use small letters, digits and underscores."),
    r"^(method|training)(\.[a-z_]+)+$": ("not a dotted setting", "Begin it with `method.` or `training.`."),
    r"^(method|training|exemplars)(\.[a-z_]+)+$": (
        "not a dotted setting",
        "Begin it with `method.`, `training.` or `exemplars.`.",
    ),
}
"""Messages for keys that do not match, by pattern: the error and the remedy."""


_PATTERNS = {
    "^[a-z0-9_]+$": "must consist of small letters, digits and underscores",
    r"^\w[\w.-]*(/\w[\w.-]*)*$": "must be a relative path of letters, digits, dots, hyphens and underscores",
    "^[0-9a-f]{40}$": "must be a commit: 40 hexadecimal digits",
    "^[0-9a-f]{64}$": "must be a SHA-256: 64 hexadecimal digits",
}
"""Words for patterns of values."""


_PARTIAL = ("missing", "value_error")
"""Errors to ignore when only part of a block is given."""


Keys = tuple[str, ...]
"""Path of a value: keys of mappings and numbers in lists."""


class _Location(NamedTuple):
    """Location of an error."""

    path: Keys
    values: Sequence[Any]
    """The whole value, and the values at each step of the path."""
    known: Sequence[str]
    """Known keys of the block that contains the last step."""
    meaning: str
    """Description of the setting, without its full stop."""
    form: "_Form | None"
    """The form of the innermost block around it that has one of several."""

    @property
    def other_form(self) -> "_Form | None":
        """Return the form of its own block, if the last step is a key of another form."""
        form = self.form
        is_own = form and form.path[:-1] == self.path[:-1]
        return form if form and is_own and self.path[-1] in form.others else None


class _Form(NamedTuple):
    """One of several forms of a block."""

    path: Keys
    """Path of the setting that decides the form."""
    words: str
    """This setting as it is written; its value, if it may have several forms with it."""
    others: Collection[str]
    """Keys of the other forms."""

    @property
    def is_by_key(self) -> bool:
        """Return whether the key decides, and not its value."""
        return self.words == self.path[-1]


def read(kind: type[S], value: Any, *, partial: bool = False) -> tuple[S | None, list[ErrorDetails]]:
    """Return ``value`` as a class of settings, or None and the distinct errors about it.

    Args:
        kind: The class.
        value: A part of the configuration.
        partial: Whether the value is only part of a block.
    """
    try:
        return kind.strictly(value), []
    except ValidationError as error:
        raw_errors = [
            raw for raw in error.errors(include_url=False) if not partial or raw["type"] not in _PARTIAL
        ]
        errors = _worded(raw_errors, kind, json.loads(json.dumps(value, default=str)))
        return None, [*dict.fromkeys(errors)]


def _worded(raw_errors: Sequence[Any], kind: type[Settings], whole: Any) -> Iterator[ErrorDetails]:
    """Yield the details of each of pydantic's errors, with the setting that decides the form of the block around it."""
    located = [(raw, _located(kind, raw, whole)) for raw in raw_errors]
    deciding = {".".join(location.path): location.form for _, location in located}
    for error in _details(located):
        form = deciding.get(error.path)
        yield error._replace(decided_by=".".join(form.path)) if form else error


def _details(located: Sequence[tuple[Any, _Location]]) -> Iterator[ErrorDetails]:
    """Yield the details of located errors, only once for a value that matches none of several forms."""
    valued = defaultdict[Keys, list[tuple[Any, _Location]]](list)
    mixed = {location.path[:-1] for raw, location in located if _mixes_forms(raw, location)}
    for raw, location in located:
        path = ".".join(location.path)
        match raw["type"]:
            case "value_error":  # raised by Settings.value_errors
                error = raw["ctx"]["error"]
                assert isinstance(error, ConflictError), error
                yield from (detail.under(path) for detail in error.errors)
            case "missing" if _has_old_name(location) or location.path[:-1] in mixed:
                pass  # reported as renamed, or perhaps missing in the wrong form only
            case "missing" | "union_tag_not_found":
                yield ErrorDetails(path, "missing", "Add it, or check the block's name.")
            case "extra_forbidden" if name := new_name(location.path[-1], location.known):
                yield ErrorDetails(path, f"renamed to {name}", f"Write `{name}`.")
            case "extra_forbidden":
                yield _unknown_key(location)
            case "string_pattern_mismatch" if raw["loc"][-1] == "[key]":
                yield ErrorDetails(path, *_NO_KEYS.get(raw["ctx"]["pattern"], (raw["msg"],)))
            case "unknown_kind":
                yield ErrorDetails(path, "not a kind of suites", raw["msg"])
            case _:
                valued[location.path].append((raw, location))
    for keys, pairs in valued.items():
        problem = " or ".join(dict.fromkeys(_problem(raw) for raw, _ in pairs)).replace(" or must be", " or")
        raw, location = pairs[0]
        value, meaning = shown(location.values[-1]), f" ({location.meaning})" if location.meaning else ""
        context = raw.get("ctx", {})
        expected = re.findall("'([^']+)'", context.get("expected") or context.get("expected_tags") or "")
        hint = _meant(str(location.values[-1]), expected)
        yield ErrorDetails(".".join(keys), f"{problem}; found {shorten(value, _LONGEST)}{meaning}", hint)


def _problem(raw: Any) -> str:
    """Return what a value must be, in words for one of pydantic's errors."""
    words = _PATTERNS.get(raw["ctx"]["pattern"]) if raw["type"] == "string_pattern_mismatch" else None
    return words or in_words(raw["msg"])


def _mixes_forms(raw: Any, location: _Location) -> bool:
    """Return whether an error is about a key of one form in a block with the key that tells another form."""
    form = location.other_form
    return bool(form and raw["type"] == "extra_forbidden" and form.is_by_key)


def _unknown_key(location: _Location) -> ErrorDetails:
    """Return the error about a key that its block does not have, or not in this form."""
    *_, key = location.path
    path, remedy = ".".join(location.path), _meant(key, location.known, *_home(location))
    if location.other_form and not remedy:
        problem = f"not a key of a block with `{location.other_form.words}`"
        return ErrorDetails(path, problem, advice(key, location.known))
    return ErrorDetails(path, "unknown key", remedy or advice(key, location.known))


def _has_old_name(location: _Location) -> bool:
    """Return whether a block that lacks a key has it under an earlier name."""
    block = location.values[-1]
    return any(new_name(key, location.path[-1:]) for key in block) if isinstance(block, dict) else False


def _located(kind: type[Settings], error: Any, value: Any) -> _Location:
    """Return the location of one of pydantic's errors.

    Its steps are keys, numbers and, for a value of several possible forms, the name of the form.
    """
    path, values, known = list[str](), [value], list[str]()
    blocks, meaning, is_key, form = {kind}, "", False, None
    for step in error["loc"]:
        if len(blocks) > 1 and not is_key and (told := _told(blocks, step)):
            form = _form_of(path, step, told, blocks - told)
            blocks = told
            continue
        fields = {name: field for block in blocks for name, field in block.model_fields.items()}
        field = fields.get(step)
        if step in (
            value if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
        ):
            path, value, known = [*path, str(step)], value[step], [*fields]
            values.append(value)
        if field:
            blocks, meaning = classes_in(field.annotation), (field.description or "").removesuffix(".")
        is_key = bool(field and get_origin(field.annotation) is dict)
    if error["type"] == "missing":
        path.append(error["loc"][-1])
    if error["type"].startswith("union_tag"):
        path.append(error["ctx"]["discriminator"].strip("'"))
        values.append(error["ctx"].get("tag"))
    return _Location(tuple(path), values, sorted(known), meaning, form)


def classes_in(kind: Any) -> set[type[Settings]]:
    """Return the classes of settings in the type of a value."""
    if isinstance(kind, type) and issubclass(kind, Settings):
        return {kind}
    return {block for part in get_args(kind) for block in classes_in(part)}


def _told(blocks: Iterable[type[Settings]], tag: str) -> set[type[Settings]]:
    """Return the union member selected by a discriminator's value or, failing that, by a key's presence."""
    fields = {block: block.model_fields for block in blocks}
    valued = {
        block
        for block in fields
        if any(tag in get_args(field.annotation) for field in fields[block].values())
    }
    return valued or {block for block in fields if tag in fields[block]}


def _form_of(
    path: Sequence[str], tag: str, told: Iterable[type[Settings]], others: Iterable[type[Settings]]
) -> _Form:
    """Return the form of the block at ``path`` that a tag selects: the value of a key or, failing that, a key."""
    fields = [name_field for block in told for name_field in block.model_fields.items()]
    key = next((name for name, field in fields if tag in get_args(field.annotation)), tag)
    words = tag if key == tag else f"{key}: {tag}"
    return _Form((*path, key), words, {name for block in others for name in block.model_fields})


def _home(location: _Location) -> list[str]:
    """Return where a key that its block lacks is known: in a block around it or, at the top, in a section."""
    *above, key = location.path
    if not above:
        sections = (
            name for name, part in location.values[0].items() if isinstance(part, dict) and key in part
        )
        first = next(sections, None)
        return [f"{first}.{key}"] if first else []
    homes = [depth for depth in range(len(above)) if key in location.values[depth]]
    return [".".join([*above[: homes[-1]], key]) + ("" if homes[-1] else " at the top")] if homes else []


def _meant(name: str, known: Sequence[str], *homes: str) -> str:
    """Return a hint with the most similar known name, and with places of the same name; empty without either."""
    close = [*difflib.get_close_matches(name, known, n=1), *homes]
    return f"Did you mean {', or '.join(close)}?" if close else ""
