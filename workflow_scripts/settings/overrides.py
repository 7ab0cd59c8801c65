"""Overrides of a run's settings by encoders, methods, readings and runs.

An override has only the keys that it changes; an explicit null sets a value to null. Its keys are first checked on
their own, and again as part of the complete settings.
"""

from collections.abc import Iterator
from functools import reduce
from typing import Annotated, Any

from pydantic import AfterValidator, Field, JsonValue

from workflow_scripts.errors import ConflictError, ErrorDetails
from workflow_scripts.settings.base import Settings
from workflow_scripts.settings.training import Development, Training
from workflow_scripts.settings.wording import read

Keys = dict[str, JsonValue]
"""Some keys of a section, with their values."""


def _keys_of(kind: type[Settings]) -> AfterValidator:
    """Return a validator of some keys of a section, without the others."""

    def check(keys: Keys) -> Keys:
        if errors := read(kind, keys, partial=True)[1]:
            raise ConflictError(errors)
        return keys

    return AfterValidator(check)


TrainingOverrides = Annotated[Keys, _keys_of(Training)]
DevelopmentOverrides = Annotated[Keys, _keys_of(Development)]


class Override(Settings):
    """Overrides of a method's settings, of its training and of its checkpoint selection."""

    method: Keys = Field(default={}, description="Overrides of the method's own settings.")
    training: TrainingOverrides = Field(default={}, description="Overrides of the training.")
    development: DevelopmentOverrides = Field(default={}, description="Overrides of checkpoint selection.")

    def value_errors(self) -> Iterator[ErrorDetails]:
        """Refuse keys that belong to a method's block but not to its own settings."""
        for key in sorted(self.method.keys() & {"training", "development", "readings"}):
            yield ErrorDetails(
                f"method.{key}", "no setting of a method", "Move it out of method, to the same level."
            )


def laid_over(below: dict[str, Any], *above: dict[str, Any]) -> dict[str, Any]:
    """Return a copy of settings with overrides applied in order, key by key."""
    return reduce(_merged, above, below)


def _merged(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    inside = {
        key: _merged(below[key], value)
        for key, value in above.items()
        if isinstance(value, dict) and isinstance(below.get(key), dict)
    }
    return below | above | inside
