"""Options of reader records."""

from typing import Literal

from pydantic import Field

from workflow_scripts.settings.readers import ColumnsConfig


class Config(ColumnsConfig):
    """JSON lines or Parquet: scored pairs, labelled texts or triples."""

    format: Literal["json", "parquet"] = Field(description="json for an object a line, or a list of objects.")
