"""Base of the typed configuration slices; each slice stands beside the code that reads it."""

from typing import Any, Self

from pydantic import BaseModel, ConfigDict, ValidationError

from workflow_scripts.errors import ConfigError


class Slice(BaseModel):
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
            raise ConfigError(f"{key}: {first['msg']}; found {first['input']!r}.") from error
