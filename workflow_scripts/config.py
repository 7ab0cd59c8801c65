"""Base of the typed configuration slices; each one is next to the code that reads it."""

from textwrap import shorten
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, JsonValue, ValidationError

from workflow_scripts.errors import ConfigError

OPERATIONAL: dict[str, JsonValue] = {"operational": True}
"""Mark of a field that decides no result: ``Field(json_schema_extra=OPERATIONAL)``.

The graph reads it in the schema, and leaves the field out of what Snakemake compares and of the job's key.
"""


_SHOWN = 120  # characters at most of what was found: it may be a whole file


class Settings(BaseModel):
    """The part of the configuration that one piece of code reads: immutable, unknown keys refused."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    @classmethod
    def parse(cls, section: dict[str, Any], place: str) -> Self:
        """Read ``section``, the configuration found at ``place``.

        Raises:
            ConfigError: naming the first key that is wrong and what is wrong with it.
        """
        try:
            return cls.model_validate(section)
        except ValidationError as error:
            first = error.errors()[0]
            key = ".".join([place, *map(str, first["loc"])])
            what = first["msg"].removeprefix("Value error, ")  # of our own validators
            raise ConfigError(f"{key}: {what}; found {shorten(repr(first['input']), _SHOWN)}.") from error
