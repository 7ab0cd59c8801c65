"""Overrides: what encoders, methods, readings and runs change of a run's settings.

An override has only the keys that it changes; an explicit null changes a value to null. Its keys are checked by
themselves, and once more in the settings that they are laid over.
"""

from collections.abc import Iterator
from functools import reduce
from typing import Annotated, Any

from pydantic import AfterValidator, Field, JsonValue

from workflow_scripts.errors import ConflictError, Finding
from workflow_scripts.settings.base import Settings
from workflow_scripts.settings.training import Development, Training
from workflow_scripts.settings.wording import read

Keys = dict[str, JsonValue]
"""Some keys of a section, with their values."""


def _keys_of(kind: type[Settings]) -> AfterValidator:
    """Return the check of some keys of a section by themselves."""

    def check(keys: Keys) -> Keys:
        if findings := read(kind, keys, partial=True)[1]:
            raise ConflictError(findings)
        return keys

    return AfterValidator(check)


TrainingOverrides = Annotated[Keys, _keys_of(Training)]
DevelopmentOverrides = Annotated[Keys, _keys_of(Development)]


class Override(Settings):
    """Changes of a method's settings, of its training, and of how its checkpoints are chosen."""

    method: Keys = Field(default={}, description="Of the method itself.")
    training: TrainingOverrides = Field(default={}, description="Of the training.")
    development: DevelopmentOverrides = Field(default={}, description="Of how checkpoints are chosen.")

    def conflicts(self) -> Iterator[Finding]:
        """Refuse keys of a method's block that are no settings of the method."""
        for key in sorted(self.method.keys() & {"training", "development", "readings"}):
            yield Finding(f"method.{key}", "no setting of a method", "Write it beside method, not in it.")


def laid_over(below: dict[str, Any], *above: dict[str, Any]) -> dict[str, Any]:
    """Return settings with others laid over them, key by key, the last of them on top; none of them is changed."""
    return reduce(_merged, above, below)


def _merged(below: dict[str, Any], above: dict[str, Any]) -> dict[str, Any]:
    inside = {
        key: _merged(below[key], value)
        for key, value in above.items()
        if isinstance(value, dict) and isinstance(below.get(key), dict)
    }
    return below | above | inside
