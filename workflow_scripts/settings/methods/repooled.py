"""Settings of another readout of one run."""

from typing import ClassVar, Literal

from pydantic import Field

from workflow_scripts.settings.methods import ReadingMethod


class Config(ReadingMethod):
    """Settings of another readout of one run."""

    starts_from: ClassVar[Literal["encoder", "pair", "runs", "run"]] = "run"

    module: Literal["repooled"]
    keeps_prompt: bool = Field(
        default=True, description="False reads sentences as they are, where the run puts them into a prompt."
    )
