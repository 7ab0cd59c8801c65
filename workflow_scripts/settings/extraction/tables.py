"""Tables of the study."""

from typing import Literal

from pydantic import Field

from workflow_scripts.config import Settings
from workflow_scripts.settings.extraction.cells import Variants
from workflow_scripts.settings.names import Measured, ModelName


class ExtractionTable(Settings):
    """One table."""

    title: str
    source: str = Field(description="Paper and table.")
    columns: Literal["models", "measures"] = Field(
        description="What the columns are; rows are variants, or models where columns are measures."
    )
    models: list[ModelName] = Field(min_length=1)
    measures: list[Measured] = Field(min_length=1)
    variants: list[Variants] = Field(min_length=1)
    digits: int = Field(ge=0, le=6, description="Decimals printed.")
