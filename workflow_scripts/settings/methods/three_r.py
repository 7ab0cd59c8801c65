"""Settings of 3R."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, SerializeAsAny

from workflow_scripts.config import Settings
from workflow_scripts.settings.methods import MethodConfig
from workflow_scripts.settings.names import Refers
from workflow_scripts.settings.start import Start


class ThresholdConfig(Settings):
    """The threshold c."""

    surrogate: Literal["straight_through", "soft", "frozen"] = Field(description="How c gets a gradient.")
    start: float | None = Field(
        ge=0, description="First value; null draws it from U(0, 1) with the run's seed."
    )
    temperature: float = Field(gt=0, description="T of the surrogate, on the scale of the deviations.")
    travel: float = Field(
        ge=0,
        description="How far c can move in one schedule: the sum of its learning rates; 0 if frozen.",
    )

    def conflicts(self) -> Iterator[str]:
        """A frozen threshold does not learn."""
        if (self.surrogate == "frozen") != (self.travel == 0):
            found = f"{self.travel:g} with surrogate {self.surrogate}"
            yield f"travel: {found}. A frozen threshold has 0, and no other has."


class Config(MethodConfig):
    """Settings of 3R."""

    columns: ClassVar[tuple[str, ...]] = ("anchor", "exemplar", "word")

    module: Literal["three_r"]
    base: Annotated[SerializeAsAny[MethodConfig], BeforeValidator(MethodConfig.strictly)] = Field(
        description="The method underneath; in the configuration, the name of its block."
    )
    pool: Annotated[str, Refers("exemplars")] | None = Field(
        description="Pool of exemplars; null where none are subtracted."
    )
    k: int = Field(gt=0, description="Exemplars a step; at most as many as the pool has.")
    words: int | None = Field(
        gt=1, description="Most frequent words of the corpus; null where none are read."
    )
    identify: Literal["batch", "both_views", "words_at_start", "words_each_step", "all"]
    subtract: Literal["exemplars", "words", "word_rows", "own"]
    where: Literal["after_head", "before_head"]
    detach: bool = Field(description="Whether the redundant vector is held fixed.")
    threshold: ThresholdConfig

    @property
    def labels(self) -> Sequence[str]:
        """Those of the method underneath."""
        return self.base.labels

    @property
    def overrides(self) -> Mapping[str, Any]:
        """Those of the method underneath."""
        return self.base.overrides

    @property
    def reads_words(self) -> bool:
        """Whether frequent words are embedded."""
        return self.identify.startswith("words") or self.subtract.startswith("word")

    @property
    def read_columns(self) -> Sequence[str]:
        """Those of the method underneath."""
        return self.base.read_columns

    def conflicts(self) -> Iterator[str]:
        """The method underneath has vectors to reduce, and a pool and words are named where they are read."""
        if not isinstance(self.base, MethodConfig):
            return
        if not self.base.reducible:
            found = f"{self.base.module} compares no pairs of vectors that could be reduced"
            yield f"base: {found}. Name a block of a contrastive method, such as simcse."
        if self.base.is_prompted:
            found = f"exemplars and words have no template, and {self.base.module} reads its [MASK]"
            yield f"base: {found}. Name a block without one."
        if (self.pool is not None) != (self.subtract == "exemplars"):
            found = f"{self.pool} with subtract {self.subtract}"
            yield f"pool: {found}. Give a pool where exemplars are subtracted, and null elsewhere."
        if (self.words is not None) != self.reads_words:
            found = f"{self.words} with identify {self.identify} and subtract {self.subtract}"
            yield f"words: {found}. Give a number where words are embedded, and null elsewhere."

    def misfits(self, start: Start) -> Iterator[str]:
        """Those of the method underneath, and the pool has as many exemplars as a step takes."""
        yield from (line.replace("method.", "method.base.", 1) for line in self.base.misfits(start))
        if start.pool_sentences is not None and self.k > start.pool_sentences:
            found = f"{self.k} exemplars a step; pool {self.pool} has {start.pool_sentences}"
            yield f"method.k: {found}. Lower it."

    def unchunkable(self, start: Start) -> Iterator[str]:
        """That of the method underneath."""
        return (line.replace("method.", "method.base.", 1) for line in self.base.unchunkable(start))
