"""Base class of the typed settings, and the function that reads a part of the configuration as settings."""

import json
import re
from collections.abc import Iterator, Mapping
from functools import cache
from textwrap import shorten
from typing import Any, Self

from pydantic import (
    BaseModel,
    ConfigDict,
    Discriminator,
    JsonValue,
    TypeAdapter,
    ValidationError,
    model_validator,
)

from workflow_scripts.errors import ConfigError, ConflictError, ErrorDetails

OPERATIONAL: dict[str, JsonValue] = {"operational": True}
"""Mark of a field that changes no result: ``Field(json_schema_extra=OPERATIONAL)``.

The graph excludes the field from Snakemake's comparison and from the job's key.
"""


_MAX_SHOWN = 120  # characters of a wrong value, which may be a whole file


class Settings(BaseModel):
    """A part of the configuration: immutable, without unknown keys."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    def value_errors(self) -> Iterator[ErrorDetails]:
        """Yield an error for each pair of values that exclude each other: key, value and remedy."""
        return iter(())

    @model_validator(mode="after")
    def _agrees(self) -> Self:
        if errors := [*self.value_errors()]:
            raise ConflictError(errors)
        return self

    def result_fields(self) -> dict[str, Any]:
        """Return the settings as JSON, without operational ones."""
        fields = type(self).model_fields.items()
        left_out = {name for name, field in fields if field.json_schema_extra == OPERATIONAL}
        return self.model_dump(mode="json", exclude=left_out)

    def parts(self) -> dict[str, Any]:
        """Return the settings by name; nested settings stay objects."""
        return {name: getattr(self, name) for name in type(self).model_fields}

    def given(self) -> dict[str, Any]:
        """Return the settings that were given explicitly, without defaults, as JSON."""
        return self.model_dump(mode="json", exclude_unset=True)

    @classmethod
    def strictly(cls, section: Any) -> Self:
        """Return ``section`` as this class, with JSON's strict types: a text is no number, and a number no text.

        Raises:
            ValidationError: with all errors.
        """
        return cls.model_validate_json(json.dumps(section, default=str), strict=True)

    @classmethod
    def parse(cls, section: Mapping[str, Any], path: str) -> Self:
        """Return ``section`` as this class (``parse``)."""
        read: Self = parse(cls, section, path)
        return read


def told_by(*keys: str) -> Discriminator:
    """Discriminate a union by key: the first of ``keys`` that a block contains."""

    def tag(block: Any) -> str | None:
        return next((key for key in keys if isinstance(block, Mapping) and key in block), None)

    return Discriminator(
        tag, custom_error_type="no_form", custom_error_message=f"is not a block with {' or '.join(keys)}"
    )


_WORDS = (
    ("Input should be a valid (array|list|tuple|set)", "must be a list"),
    ("Input should be (an object|a valid dictionary.*)", "must be a block of keys"),
    ("Input should be a valid string", "must be a text"),
    ("Input should be a valid integer.*", "must be a whole number"),
    ("Input should be a valid number.*", "must be a number"),
    ("Input should be a valid boolean.*", "must be true or false"),
    ("Input should be None", "must be null"),
    ("Input should be ", "must be "),
    (
        "(List|Tuple|Dictionary|Value|String) should have at least 1 (item|character)s? after validation, not 0",
        "name at least one",
    ),
    ("String should have at least 1 character", "must be a text that is not empty"),
    (
        r"(List|Tuple|Dictionary|Value) should have at least (\d+) items? after validation, not (\d+)",
        r"needs at least \2, but has \3",
    ),
    (
        r"(List|Tuple|Dictionary|Value) should have at most (\d+) items? after validation, not (\d+)",
        r"allows at most \2, but has \3",
    ),
    (r"String should match pattern '(.*)'", r"must match the pattern \1"),
    (
        r"Input tag '.*' found using '(\w+)' does not match any of the expected tags: (.*)",
        r"must be one of \2",
    ),
)
"""Patterns of pydantic's messages, with wordings for a person who writes YAML."""


def in_words(message: str) -> str:
    """Return a message of pydantic, reworded for a person who writes YAML."""
    for pattern, words in _WORDS:
        if re.match(pattern, message):
            return re.sub(pattern, words, message, count=1)
    return message


@cache
def _reader(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)


def parse(kind: Any, section: Any, path: str) -> Any:
    """Return ``section``, the configuration found at ``path``, as a class of settings or a union of such classes.

    Raises:
        ConfigError: with the first wrong key and its error.
    """
    try:
        return _reader(kind).validate_python(section)
    except ValidationError as error:
        first = error.errors()[0]
        key = ".".join([path, *map(str, first["loc"])])  # pydantic names the class that it chose, too
        raise ConfigError(
            f"{key}: {in_words(first['msg'])}; found {shorten(repr(first['input']), _MAX_SHOWN)}."
        ) from error
