"""The base class of typed settings, and the lookup of the class of a section."""

import importlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from textwrap import shorten
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError, model_validator

from workflow_scripts.errors import ConfigError

OPERATIONAL: dict[str, JsonValue] = {"operational": True}
"""Marks a field that decides no result: ``Field(json_schema_extra=OPERATIONAL)``.

The graph excludes the field from Snakemake's comparison and from the job's key.
"""


_MAX_SHOWN = 120  # characters of a wrong value, which may be a whole file


class Settings(BaseModel):
    """A part of the configuration: immutable, without unknown keys."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    @classmethod
    def class_of(cls, section: Any) -> type[Self]:
        """The class of ``section``: this one, unless a key of the section names another."""
        return cls

    def conflicts(self) -> Iterator[str]:
        """Values that exclude each other, a line each: key, value and remedy."""
        return iter(())

    @model_validator(mode="after")
    def _agrees(self) -> Self:
        if lines := [*self.conflicts()]:
            raise ValueError("\n".join(lines))
        return self

    @classmethod
    def strictly(cls, section: Any) -> Self:
        """Read ``section`` without conversions between texts and numbers, as JSON; settings are returned unchanged.

        Raises:
            ValidationError: with all mistakes.
        """
        if isinstance(section, cls):
            return section
        return cls.class_of(section).model_validate_json(json.dumps(section, default=str), strict=True)

    @classmethod
    def parse(cls, section: dict[str, Any], place: str) -> Self:
        """Read ``section``; ``place`` is its path in the configuration, for messages.

        Raises:
            ConfigError: naming the first wrong key and its mistake.
        """
        try:
            return cls.class_of(section).model_validate(section)
        except ValidationError as error:
            first = error.errors()[0]
            key = ".".join([place, *map(str, first["loc"])])
            message = first["msg"].removeprefix("Value error, ")
            if first["type"] == "value_error" and isinstance(first["input"], Mapping):
                raise ConfigError(f"{key}.{message.splitlines()[0]}") from error  # conflicts begin with a key
            value = shorten(repr(first["input"]), _MAX_SHOWN)
            raise ConfigError(f"{key}: {message}; found {value}.") from error


def names_in(package: str) -> list[str]:
    """Names of the modules of a package of settings, each with a ``Config``."""
    folders = importlib.import_module(package).__path__
    return sorted(file.stem for folder in folders for file in Path(folder).glob("[a-z]*.py"))


def named_class(package: str, key: str, section: Any, otherwise: type[Settings]) -> Any:
    """``Config`` of the module that ``key`` of a section names; ``otherwise`` if the section lacks the key.

    Raises:
        ValidationError: if the module does not exist.
    """
    if not isinstance(section, Mapping) or key not in section:
        return otherwise
    name, known = section[key], names_in(package)
    if name in known:
        return importlib.import_module(f"{package}.{name}").Config
    expected = " or ".join(map(repr, known))
    mistake: Any = {"type": "literal_error", "loc": (key,), "input": name, "ctx": {"expected": expected}}
    raise ValidationError.from_exception_data(otherwise.__name__, [mistake])
