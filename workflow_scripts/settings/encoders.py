"""Encoders of a study: fetched, adapted, or made of runs."""

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field, Tag

from workflow_scripts.settings.base import Settings, told_by
from workflow_scripts.settings.grids import Run, RunBlock, expand
from workflow_scripts.settings.names import CorpusName, EncoderName, Printed, Substitution
from workflow_scripts.settings.overrides import TrainingOverrides
from workflow_scripts.settings.sources import EncoderBlock, Sizes


class Adapt(Settings):
    """An encoder made by masked-language-model training: from another one, or from scratch."""

    base: EncoderName = Field(description="Encoder to start from.")
    corpus: CorpusName = Field(description="Corpus to train on.")
    label: Printed = Field(description="Substitution to print wherever this encoder stands in for another.")
    from_scratch: Sizes | None = Field(
        default=None,
        description="Sizes of an encoder with random weights; of the base, tokeniser and architecture are taken.",
    )
    training: TrainingOverrides = Field(
        default={}, description="Overrides of continue_mlm.training while it is made."
    )


class _Encoder(Settings):
    """What all encoders have."""

    training: TrainingOverrides = Field(default={}, description="Overrides of training for every run on it.")

    @property
    def form(self) -> str:
        """Return the form of the block, for those who refer to it."""
        return "single encoders"

    @property
    def substitution(self) -> str | None:
        """Return the substitution that its runs are printed with, where it consists of runs in place of others."""
        return None

    def members(self, _seeds: Sequence[int] = (0,)) -> dict[str, Run]:
        """Return the runs that it consists of, in order; none of one that is fetched or adapted."""
        return {}

    @property
    def starts(self) -> set[str | None]:
        """Return the encoders that it is made from: its base, or encoders and teachers of its runs."""
        return {name for run in self.members().values() for name in (run.encoder, run.teacher)}


class FetchedEncoder(_Encoder):
    """A published encoder."""

    fetch: EncoderBlock


class AdaptedEncoder(_Encoder):
    """An encoder of the project's own making."""

    adapt: Adapt

    @property
    def starts(self) -> set[str | None]:
        """Return its base."""
        return {self.adapt.base}


class EncoderFromRuns(_Encoder):
    """Models of finished runs, taken with the seed of the run that is made from them."""

    runs: list[RunBlock] = Field(min_length=1, description="One for a teacher, several to be joined.")
    label: Substitution

    @property
    def form(self) -> str:
        """Return whether there is one run."""
        return "single runs" if len(self.runs) == 1 else "several runs"

    @property
    def substitution(self) -> str | None:
        """Return its label."""
        return self.label

    def members(self, seeds: Sequence[int] = (0,)) -> dict[str, Run]:
        """Return the runs, expanded."""
        return {name: run for block in self.runs for name, run, _ in expand(block, seeds)}


AnyEncoder = Annotated[
    Annotated[FetchedEncoder, Tag("fetch")]
    | Annotated[AdaptedEncoder, Tag("adapt")]
    | Annotated[EncoderFromRuns, Tag("runs")],
    told_by("fetch", "adapt", "runs"),
]
