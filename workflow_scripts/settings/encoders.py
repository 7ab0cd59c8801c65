"""Settings of a study's encoders: fetched, adapted, or made of runs."""

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field, Tag

from workflow_scripts.settings.base import Settings, told_by
from workflow_scripts.settings.grids import Run, RunBlock, expand
from workflow_scripts.settings.names import CorpusName, EncoderName, Printed, Substitution
from workflow_scripts.settings.overrides import TrainingOverrides
from workflow_scripts.settings.sources import EncoderBlock, Sizes


class Adapt(Settings):
    """Settings of an encoder made by masked-language-model training, from another encoder or from scratch."""

    base: EncoderName = Field(description="Encoder to start from.")
    corpus: CorpusName = Field(description="Corpus to train on.")
    label: Printed = Field(
        description="Label printed with every number of this encoder: the encoder that it replaces."
    )
    from_scratch: Sizes | None = Field(
        default=None,
        description="Sizes of an encoder with random weights, which takes only tokeniser and architecture from "
        "the base.",
    )
    training: TrainingOverrides = Field(
        default={}, description="Overrides of continue_mlm.training for this encoder's training."
    )


class _Encoder(Settings):
    """Settings and methods that all encoders have."""

    training: TrainingOverrides = Field(
        default={}, description="Overrides of training for all runs on this encoder."
    )

    @property
    def form(self) -> str:
        """Return the form of the block, which decides what references to it are valid."""
        return "single encoders"

    @property
    def substitution(self) -> str | None:
        """Return the label of runs on this encoder if its own runs replace others; None otherwise."""
        return None

    def members(self, _seeds: Sequence[int] = (0,)) -> dict[str, Run]:
        """Return the member runs, in order; empty for a fetched or adapted encoder."""
        return {}

    @property
    def starts(self) -> set[str | None]:
        """Return the encoders that this one is made from: its base, or the encoders and teachers of its runs."""
        return {name for run in self.members().values() for name in (run.encoder, run.teacher)}


class FetchedEncoder(_Encoder):
    """A published encoder, which is fetched."""

    fetch: EncoderBlock


class AdaptedEncoder(_Encoder):
    """An encoder that the study trains by masked-language modelling."""

    adapt: Adapt

    @property
    def starts(self) -> set[str | None]:
        """Return the base encoder."""
        return {self.adapt.base}


class EncoderFromRuns(_Encoder):
    """Models of finished runs, each with the seed of the run that uses them."""

    runs: list[RunBlock] = Field(
        min_length=1, description="Member runs: one for a teacher, several to be joined."
    )
    label: Substitution

    @property
    def form(self) -> str:
        """Return the form of the block: one member run, or several."""
        return "single runs" if len(self.runs) == 1 else "several runs"

    @property
    def substitution(self) -> str | None:
        """Return the label of the block."""
        return self.label

    def members(self, seeds: Sequence[int] = (0,)) -> dict[str, Run]:
        """Return the expanded member runs by name."""
        return {name: run for block in self.runs for name, run, _ in expand(block, seeds)}


AnyEncoder = Annotated[
    Annotated[FetchedEncoder, Tag("fetch")]
    | Annotated[AdaptedEncoder, Tag("adapt")]
    | Annotated[EncoderFromRuns, Tag("runs")],
    told_by("fetch", "adapt", "runs"),
]
