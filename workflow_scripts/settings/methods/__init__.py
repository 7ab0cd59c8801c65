"""Settings of methods, a module a method, imported by the name in the configuration.

A registry that imports them all would be part of every job's code, and one new method would rerun every old one.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Literal, Self

from pydantic import Field

from workflow_scripts.config import Settings, named_class
from workflow_scripts.settings.readouts import AnyReadout
from workflow_scripts.settings.start import Start


class MethodConfig(Settings):
    """Settings of a method: every field is a key of its block in config/methods.yaml.

    ``readout`` (``settings.readouts.AnyReadout``) says how token states become a vector, ``base`` holds the settings
    of a method underneath, ``pool`` and ``words`` ask for the columns ``exemplar`` and ``word``.
    """

    columns: ClassVar[tuple[str, ...]] = ()
    """Columns that it reads of the corpus; none for a method that trains nothing."""
    starts_from: ClassVar[Literal["encoder", "pair", "runs", "run"]] = "encoder"
    """One encoder, two runs, any number of runs, or one run."""
    has_teacher: ClassVar[bool] = False
    """Whether it learns the vectors of a teacher."""
    reducible: ClassVar[bool] = False
    """Whether 3R can come between the halves of its objective (``training.contrastive.Objective``)."""

    module: str

    @classmethod
    def class_of(cls, section: Any) -> type[Self]:
        """The class of the module that ``section`` names."""
        return cls if cls is not MethodConfig else named_class(__name__, "module", section, cls)

    @property
    def labels(self) -> Sequence[str]:
        """Substitutions and warnings, printed with every number that these settings lead to."""
        return ()

    @property
    def read_columns(self) -> Sequence[str]:
        """Those columns of a corpus that these settings read."""
        return self.columns

    @property
    def is_prompted(self) -> bool:
        """Whether sentences are put into a prompt, where [MASK] can be read."""
        return False

    @property
    def overrides(self) -> Mapping[str, Any]:
        """Keyword arguments of ``models.encoder.load_backbone``: dropout, entries of the model's configuration."""
        return {}

    def misfits(self, start: Start) -> Iterator[str]:
        """What these settings need and what a run starts from lacks, a line each.

        Lines begin with ``method.`` and the setting, or with ``encoder`` or ``teacher``.
        """
        return iter(())

    def unchunkable(self, start: Start) -> Iterator[str]:
        """Why ``training.chunk`` would change what these settings make of a batch, a line each."""
        return iter(())


class ReadingMethod(MethodConfig):
    """Settings of a method whose encoder has one readout."""

    readout: AnyReadout

    @property
    def labels(self) -> Sequence[str]:
        """The readout's."""
        return self.readout.labels

    def conflicts(self) -> Iterator[str]:
        """[MASK] is read in a prompt alone, and what was published without training."""
        setting = self.readout.mask_setting
        if setting and not self.is_prompted:
            found = f"{getattr(self.readout, setting)} reads [MASK], and the method puts no template around sentences"
            yield f"readout.{setting}: {found}. Use promptbert, a frozen run's template, or other tokens."
        if self.readout.needs_frozen and (self.module != "frozen" or self.is_prompted):
            found = f"{self.readout.kind}, which is an encoder as it is, with a prompt of its own"
            yield f"readout.kind: {found}. Use it in frozen without a template, or take pooling."

    def misfits(self, start: Start) -> Iterator[str]:
        """The readout's."""
        return (f"method.{line}" for line in self.readout.misfits(start))


class TrainingMethod(ReadingMethod):
    """Settings of a method that trains an encoder on sentences."""

    columns: ClassVar[tuple[str, ...]] = ("anchor",)

    dropout: float | None = Field(
        ge=0, lt=1, description="Dropout of hidden states and attention; null keeps the model's."
    )

    @property
    def overrides(self) -> Mapping[str, Any]:
        """The dropout."""
        return {"dropout": self.dropout}

    def unchunkable(self, start: Start) -> Iterator[str]:
        """A readout in which sentences of a batch meet."""
        if not self.readout.is_independent:
            found = f"the readout {self.readout.kind}, as it is set, sums over a whole batch"
            yield f"training.chunk: {found}. Set it to null for this method, or change the readout."
