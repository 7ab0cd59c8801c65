"""Settings of an encoder as it is.

``readout`` is written in every block: one that followed from the folder would be known only once the folder is fetched,
and a folder that changes would silently be another method. ``frozen`` of config/methods.yaml, the block that names no
pooling, is ``as_published``, which stops on a folder that says nothing of how it is read.
"""

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
