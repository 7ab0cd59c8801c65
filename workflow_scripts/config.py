"""Base of the typed configuration slices, and how a section finds the class that reads it."""

import importlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from textwrap import shorten
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError, model_validator

from workflow_scripts.errors import ConfigError

OPERATIONAL: dict[str, JsonValue] = {"operational": True}
"""Mark of a field that decides no result: ``Field(json_schema_extra=OPERATIONAL)``.

The graph leaves the field out of what Snakemake compares and of the job's key.
"""


_SHOWN = 120  # characters at most of what was found: it may be a whole file


class Settings(BaseModel):
    """The part of the configuration that one piece of code reads: immutable, unknown keys refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    @classmethod
    def class_of(cls, section: Any) -> type[Self]:
        """The class that reads ``section``: this one, unless a key of the section names another."""
        return cls

    def conflicts(self) -> Iterator[str]:
        """Values that exclude each other, a line each: the key, what was found, and what to do."""
        return iter(())

    @model_validator(mode="after")
    def _agrees(self) -> Self:
        if found := [*self.conflicts()]:
            raise ValueError("\n".join(found))
        return self

    @classmethod
    def strictly(cls, section: Any) -> Self:
        """Read ``section`` as JSON is read: a text is no number, and a number no text; settings stay as they are.

        Raises:
            ValidationError: with everything that is wrong in it.
        """
        if isinstance(section, cls):
            return section
        return cls.class_of(section).model_validate_json(json.dumps(section, default=str), strict=True)

    @classmethod
    def parse(cls, section: dict[str, Any], place: str) -> Self:
        """Read ``section``, the configuration found at ``place``.

        Raises:
            ConfigError: naming the first key that is wrong and what is wrong with it.
        """
        try:
            return cls.class_of(section).model_validate(section)
        except ValidationError as error:
            first = error.errors()[0]
            key = ".".join([place, *map(str, first["loc"])])
            what = first["msg"].removeprefix("Value error, ")
            if first["type"] == "value_error" and isinstance(
                first["input"], Mapping
            ):  # conflicts, by their keys
                raise ConfigError(f"{key}.{what.splitlines()[0]}") from error
            raise ConfigError(f"{key}: {what}; found {shorten(repr(first['input']), _SHOWN)}.") from error


def names_in(package: str) -> list[str]:
    """Modules of a package of settings, each of which has a ``Config``."""
    folders = importlib.import_module(package).__path__
    return sorted(file.stem for folder in folders for file in Path(folder).glob("[a-z]*.py"))


def named_class(package: str, key: str, section: Any, otherwise: type[Settings]) -> Any:
    """``Config`` of the module that ``key`` of a section names; ``otherwise`` where the section names none.

    Raises:
        ValidationError: if there is no such module.
    """
    if not isinstance(section, Mapping) or key not in section:
        return otherwise
    name, known = section[key], names_in(package)
    if name in known:
        return importlib.import_module(f"{package}.{name}").Config
    expected = " or ".join(map(repr, known))
    mistake: Any = {"type": "literal_error", "loc": (key,), "input": name, "ctx": {"expected": expected}}
    raise ValidationError.from_exception_data(otherwise.__name__, [mistake])
