"""Encoders of a study as its graph sees them: what they are made from, and how large they are.

Of an encoder that is on this machine before anything is read, its own config.json says how large it is and of which
kind; whether it drops out or attends both ways is seen when it is loaded.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from workflow_scripts.data.published import encoder_folder
from workflow_scripts.errors import DataError
from workflow_scripts.figures.base import MODELS
from workflow_scripts.graph.slices import Config
from workflow_scripts.settings.encoders import AdaptedEncoder, AnyEncoder
from workflow_scripts.settings.grids import Run as AskedRun
from workflow_scripts.settings.overrides import laid_over
from workflow_scripts.settings.readouts import BUILT_AS_BERT, Size
from workflow_scripts.settings.sources import EncoderBlock, HubEncoder
from workflow_scripts.settings.training import ContinueMlm, Training

if TYPE_CHECKING:
    from workflow_scripts.graph.study import Study


@dataclass(frozen=True)
class Encoder:
    """An encoder that is fetched, adapted, or consists of runs."""

    study: Study = field(repr=False)
    name: str
    block: AnyEncoder

    def members(self, seeds: Sequence[int] = (0,)) -> dict[str, AskedRun]:
        """The runs that it consists of, in order; none of one that is fetched or adapted."""
        return self.block.members(seeds)

    @property
    def starts(self) -> set[str | None]:
        """Encoders that it is made from: its base, or encoders and teachers of its runs."""
        return self.block.starts

    @cached_property
    def parts(self) -> list[str]:
        """The encoder itself if it is fetched or adapted, or else those that its runs start from."""
        members = self.members().values()
        return [part for run in members for part in self.study.encoders[run.encoder].parts] or [self.name]

    @cached_property
    def size(self) -> Size | None:
        """The size of one that is fetched or adapted; None if nothing is known before it is fetched."""
        if isinstance(self.block, AdaptedEncoder):
            base, scratch = self.study.encoders[self.block.adapt.base].size, self.block.adapt.from_scratch
            if scratch is None:
                return base
            return (base or Size(0, 0))._replace(layers=scratch.layers, width=scratch.width)
        fetch = self.study.settings.fetched(self.name)
        folders = folders_of(fetch, self.study.data_root), [Path(self.study.folder, "encoders", self.name)]
        return next(filter(None, map(_size_in, chain(*folders))), None)

    @property
    def sizes(self) -> list[Size]:
        """Known sizes of it, or of those that its runs start from."""
        return [size for part in self.parts if (size := self.study.encoders[part].size)]

    def models(self, seed: str) -> list[str]:
        """Models of the runs that it consists of, each by the seed that goes with ``seed``."""
        members = (self.study.runs[name] for name in self.members([int(seed)]))
        seeds = ((run.name, run.asked.seed_for(int(seed))) for run in members)
        return [MODELS.format(run=name, seed=number) for name, number in seeds]

    @property
    def modules(self) -> list[str]:
        """Modules that loading its runs imports by name."""
        return sorted({module for name in self.members() for module in self.study.runs[name].loading})

    @cached_property
    def training(self) -> Training:
        """Settings of the training that adapts it: the shared ones with what its block says of its own."""
        return ContinueMlm.parse(self.adapting(), "continue_mlm").training

    def adapting(self) -> Config:
        """Return the settings of the adaptation as they are written down, for their check."""
        assert isinstance(self.block, AdaptedEncoder)
        shared = self.study.settings.continue_mlm.given()
        return laid_over(shared, {"training": self.block.adapt.training})

    @property
    def continue_mlm(self) -> Config:
        """Settings that decide this training, without those of its block."""
        shared = self.study.settings.continue_mlm.model_dump(mode="json")
        return shared | {"training": self.training.deciding()}

    @property
    def adapt(self) -> Config:
        """Its block's settings of the adaptation, without those of the training."""
        assert isinstance(self.block, AdaptedEncoder)
        return self.block.adapt.model_dump(mode="json", exclude={"training"})


_NAMES = (
    ("num_hidden_layers", "n_layers", "n_layer", "num_layers"),
    ("hidden_size", "dim", "n_embd", "d_model"),
)
"""Names that families have for their layers and their width; DistilBERT, GPT-2 and T5 have names of their own."""


def folders_of(encoder: EncoderBlock, data_root: Path | None) -> list[Path]:
    """Folders on this machine that an encoder may be fetched from, whether they are there or not."""
    in_folders = (source for source in encoder.sources if not isinstance(source, HubEncoder))
    return [root / source.path for source in in_folders if (root := source.root(data_root))]


def _size_in(folder: Path) -> Size | None:
    try:
        found = json.loads((encoder_folder(folder) / "config.json").read_text("utf-8"))
        layers, width = (int(found[name]) for names in _NAMES for name in names if name in found)
        return Size(layers, width, _positions(found), found.get("model_type"))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, DataError):
        return None


def _positions(found: Mapping[str, Any]) -> int | None:
    """Positions of an encoder: all for BERT; RoBERTa's and MPNet's count from one past their padding."""
    if found.get("model_type") not in (*BUILT_AS_BERT, "mpnet"):
        return None
    before = 0 if found["model_type"] == "bert" else int(found.get("pad_token_id", 1)) + 1
    return int(found["max_position_embeddings"]) - before
