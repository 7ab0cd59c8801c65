"""Blocks that say some keys of a section anew, each of which may be left out."""

from typing import Any

from pydantic import create_model
from pydantic.fields import FieldInfo

from workflow_scripts.config import Settings


def some_of(whole: type[Settings]) -> Any:
    """A class of blocks with any keys of ``whole``, which take the values that they take there."""
    fields: dict[str, Any] = {
        name: (field.annotation, FieldInfo.merge_field_infos(field, default=None))
        for name, field in whole.model_fields.items()
    }
    return create_model(f"Some{whole.__name__}", __base__=Settings, __doc__=whole.__doc__, **fields)
