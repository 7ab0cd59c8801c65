"""Suites of attention."""

from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import Field

from workflow_scripts.config import Settings
from workflow_scripts.settings.names import Texts
from workflow_scripts.settings.suites import Cells, Suite, cells


class Energy(Settings):
    """The sentences over which E_CLS is averaged."""

    dataset: Texts = Field(description="Dataset of the form sentences or pairs.")
    max_sentences: int = Field(gt=0, description="Use the first so many sentences.")
    max_tokens: int = Field(gt=2, description="Longer sentences are truncated; [CLS] and [SEP] count.")
    batch_size: int = Field(gt=0, description="Sentences per forward pass; does not change the result.")


class Maps(Settings):
    """The sentences and layers whose attention is drawn."""

    sentences: list[str] = Field(min_length=1, description="Drawn one by one, so nothing is padded.")
    layers: list[int] = Field(min_length=1, description="Counted from 1.")
    max_tokens: int = Field(gt=2, description="Longer sentences are cut; [CLS] and [SEP] count.")


class Config(Suite):
    """What is measured and drawn for one encoder."""

    on_gpu: ClassVar[bool] = False

    energy: Energy
    maps: Maps

    def written(self, _lists: Mapping[str, Mapping[str, Any]]) -> dict[str, Cells]:
        """The energy of [CLS] in each layer."""
        return {self.energy.dataset: cells(("mean", "layer:*"), ["cls_energy"])}
