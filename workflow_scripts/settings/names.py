"""Names that a user of the configuration chooses."""

from typing import Annotated

from pydantic import Field

Name = Annotated[str, Field(pattern="^[a-z0-9_]+$")]
Defined = str | Annotated[list[str], Field(min_length=1)]
"""Names of blocks of the configuration, which are looked up there."""
Seed = Annotated[int, Field(ge=0, lt=2**32)]
Setting = Annotated[str, Field(pattern=r"^(method|training)(\.[a-z_]+)+$")]
Place = Annotated[str, Field(pattern=r"^(method|training|exemplars)(\.[a-z_]+)+$")]
