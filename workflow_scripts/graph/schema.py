"""Holding a part of the configuration to its JSON Schema, a line for each mistake.

The schemas in ``config/schemas`` are written from the Settings classes beside the code (``write_schema``), so that
the graph knows every key, type and range without importing what reads them.
"""

import difflib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError

from workflow_scripts.graph.findings import advice

SCHEMA = "schemas/config.schema.json"
GRID_SCHEMA = "schemas/experiment.schema.json"
CLAIM_SCHEMA = "schemas/claims.schema.json"
_LONGEST = 300
"""Characters of a message, which repeats what was found."""


def read_schema(path: Path) -> dict[str, Any]:
    """Read a JSON Schema."""
    schema: dict[str, Any] = json.loads(path.read_text("utf-8"))
    return schema


def validator_of(schema: Mapping[str, Any], definition: str | None = None) -> Draft202012Validator:
    """A validator of a whole schema, or of one of its definitions."""
    if definition is None:
        return Draft202012Validator(schema)
    return Draft202012Validator({"$ref": f"#/$defs/{definition}", "$defs": schema["$defs"]})


def schema_findings(value: Any, validator: Draft202012Validator, place: str) -> Iterator[str]:
    """What is wrong with ``value``; of a choice between several forms, what is wrong with the nearest one."""
    nearest = [mistake for error in validator.iter_errors(value) for mistake in _mistakes(error)]
    nearest.sort(key=lambda error: list(map(str, error.absolute_path)))
    seen: set[tuple[Any, ...]] = set()
    for error in nearest:
        kind = (*error.absolute_path, error.validator)
        if error.validator not in _ONE_A_PLACE or kind not in seen:
            yield from (f"{place}{line}" for line in _lines(error, value, place))
        seen.add(kind)


def _mistakes(error: ValidationError) -> Iterator[ValidationError]:
    """An error itself or, where a value has none of several forms, what keeps it from the nearest, if one is."""
    forms = sorted(_forms(error), key=_distance)
    if not forms or (len(forms) > 1 and _distance(forms[0]) == _distance(forms[1])):
        yield error
    else:
        for mistake in forms[0]:
            yield from _mistakes(mistake)


def _forms(error: ValidationError) -> list[list[ValidationError]]:
    """What keeps a value from each of the forms that it may have."""
    forms: dict[Any, list[ValidationError]] = {}
    for mistake in error.context or ():
        forms.setdefault(mistake.schema_path[0], []).append(mistake)
    return list(forms.values())


def _distance(form: Sequence[ValidationError]) -> tuple[bool, int, int]:
    """How far a value is from a form: of another type; keys too many or missing; whatever is wrong, inside too."""
    own = [mistake for mistake in form if not mistake.path]
    keys = sum(len(_strange_keys(one)) if one.validator == "additionalProperties" else 1 for one in own)
    return any(one.validator == "type" for one in own), keys, len(form)


_ONE_A_PLACE = ("type", "required", "additionalProperties")
"""What several branches of a schema complain of at one place, or what one line says for all keys."""


def _lines(error: ValidationError, whole: Any, place: str) -> Iterator[str]:
    if error.validator == "additionalProperties":
        yield from _unknown_keys(error, whole, place)
    elif error.validator == "required":
        missing = ", ".join(key for key in error.validator_value if key not in error.instance)
        yield f"{_path(error) or 'configuration'}: without {missing}. Write it there."
    else:
        yield _one_line(error)


def _path(error: ValidationError) -> str:
    return ".".join(map(str, error.absolute_path))


def _strange_keys(error: ValidationError) -> list[str]:
    return [str(key) for key in error.instance if key not in error.schema.get("properties", {})]


def _unknown_keys(error: ValidationError, whole: Any, place: str) -> Iterator[str]:
    path = f"{_path(error)}." if error.absolute_path else ""
    patterns = list(error.schema.get("patternProperties", {}))
    known = sorted(error.schema.get("properties", {}))
    strange = _strange_keys(error)
    if patterns:  # names that its user chooses
        wanted = Draft202012Validator({"pattern": patterns[0]})
        for key in strange:
            if not wanted.is_valid(key):
                yield f"{path}{key}: {_no_name(patterns[0])}"
        return
    at_home = {key: home for key in strange if (home := _home_of(key, error, whole, place))}
    near = {key for key in strange if difflib.get_close_matches(key, known, n=1)} | at_home.keys()
    for key in strange:
        if key in near:
            yield f"{path}{key}: unknown key. {_meant(key, known, at_home.get(key))}"
    if far := [key for key in strange if key not in near]:
        keys = "key" if len(far) == 1 else "keys"
        yield f"{path}{', '.join(far)}: unknown {keys}. {advice(far[0], known)}"


def _home_of(key: str, error: ValidationError, whole: Any, place: str) -> str | None:
    """Where a key that is unknown in its block would be known: in a section of the whole, or at the top of it."""
    if not error.absolute_path:
        sections = (name for name, part in whole.items() if isinstance(part, Mapping) and key in part)
        return next((f"{name}.{key}" for name in sections), None)
    section = place.rpartition(" ")[2]
    return f"{section}{key}{'' if section else ' at the top'}" if key in whole else None


def _meant(key: str, known: Sequence[str], home: str | None) -> str:
    close = difflib.get_close_matches(key, known, n=1)
    return f"Did you mean {', or '.join(filter(None, [*close, home]))}?"


def _no_name(pattern: str) -> str:
    """What is wrong with a key, and what to do: of names, or of settings with dots such as ``method.temperature``."""
    if "\\." not in pattern:
        return "not a name. Use small letters, digits and underscores."
    sections = re.findall("[a-z]+", pattern.partition(")")[0])
    return f"not a dotted setting. Begin it with {' or '.join(f'{section}.' for section in sections)}"


def _one_line(error: ValidationError) -> str:
    path = ".".join(map(str, error.absolute_path)) or "configuration"
    if error.validator == "enum":
        close = difflib.get_close_matches(str(error.instance), map(str, error.schema["enum"]), n=1)
        hint = f" Did you mean {close[0]}?" if close else ""
        return f"{path}: {error.instance!r} is none of {', '.join(map(str, error.schema['enum']))}.{hint}"
    meaning = f" ({error.schema['description']})" if "description" in error.schema else ""
    message = _none_of(error) if error.context else error.message
    message = message if len(message) <= _LONGEST else f"{message[:_LONGEST]} ..."
    return f"{path}: {message}{meaning}."


def _none_of(error: ValidationError) -> str:
    """That a value has none of several forms, each named by its type or the keys that it needs."""
    mistakes = [mistake for form in _forms(error) for mistake in form]
    types = [str(one.validator_value) for one in mistakes if one.validator == "type"]
    keys = [" and ".join(one.validator_value) for one in mistakes if one.validator == "required"]
    return f"needs {', or '.join(dict.fromkeys([*types, *keys]))}, but is {error.instance!r}"
