"""Blocks that say some keys of a section anew, each of which may be left out."""

from dataclasses import dataclass
from typing import Any

from pydantic import GetCoreSchemaHandler, ValidationError
from pydantic_core import CoreSchema, core_schema

from workflow_scripts.config import Settings


@dataclass(frozen=True)
class Partial:
    """Mark of a field that holds some keys of a section: ``Annotated[dict[str, Any], Partial(Training)]``."""

    whole: type[Settings]

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """A mapping whose keys the section has, with values that it takes."""
        return core_schema.no_info_after_validator_function(self._checked, handler(source))

    def _checked(self, given: dict[str, Any]) -> dict[str, Any]:
        try:
            self.whole.strictly(given)
        except ValidationError as error:
            wrong: list[Any] = [
                one for one in error.errors() if (one["type"], len(one["loc"])) != ("missing", 1)
            ]
            if wrong:
                raise ValidationError.from_exception_data(self.whole.__name__, wrong) from error
        return given
