"""Settings of an encoder as it is."""

from typing import Literal

from pydantic import Field

from workflow_scripts.settings.methods import ReadingMethod
from workflow_scripts.settings.templates import Template


class Config(ReadingMethod):
    """Settings of a frozen run."""

    module: Literal["frozen"]
    template: Template | None = Field(
        default=None, description="Prompt that sentences are put into; left out for none."
    )

    @property
    def is_prompted(self) -> bool:
        """Whether there is a template."""
        return self.template is not None
