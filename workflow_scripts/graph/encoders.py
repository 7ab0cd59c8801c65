"""Encoders in the graph of a study: their origins and sizes.

If an encoder is already on this machine, its config.json gives size and architecture. Dropout and attention direction
are checked on loading.
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
    """An encoder: fetched, adapted, or made of runs."""

    study: Study = field(repr=False)
    name: str
    block: AnyEncoder

    def members(self, seeds: Sequence[int] = (0,)) -> dict[str, AskedRun]:
        """Return the member runs, in order; empty for a fetched or adapted encoder."""
        return self.block.members(seeds)

    @property
    def starts(self) -> set[str | None]:
        """Return the encoders that this one is made from: its base, or the encoders and teachers of its runs."""
        return self.block.starts

    @cached_property
    def parts(self) -> list[str]:
        """Return the encoder itself if it is fetched or adapted, else the encoders from which its runs start."""
        members = self.members().values()
        return [part for run in members for part in self.study.encoders[run.encoder].parts] or [self.name]

    @cached_property
    def size(self) -> Size | None:
        """Return the size of a fetched or adapted encoder; None if it is unknown before the encoder is fetched."""
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
        """Return the known sizes of the encoder, or of those from which its runs start."""
        return [size for part in self.parts if (size := self.study.encoders[part].size)]

    def models(self, seed: str) -> list[str]:
        """Return the models of the member runs, each of the seed that a dependent run of ``seed`` uses."""
        members = (self.study.runs[name] for name in self.members([int(seed)]))
        seeds = ((run.name, run.asked.seed_for(int(seed))) for run in members)
        return [MODELS.format(run=name, seed=number) for name, number in seeds]

    @property
    def modules(self) -> list[str]:
        """Return the modules that are imported by name to load the member runs."""
        return sorted({module for name in self.members() for module in self.study.runs[name].loading})

    @cached_property
    def training(self) -> Training:
        """Return the settings of the training that adapts the encoder: the shared ones with its block's overrides."""
        return ContinueMlm.parse(self.adapting(), "continue_mlm").training

    def adapting(self) -> Config:
        """Return the settings of the adaptation as configured, for their check."""
        assert isinstance(self.block, AdaptedEncoder)
        shared = self.study.settings.continue_mlm.given()
        return laid_over(shared, {"training": self.block.adapt.training})

    @property
    def continue_mlm(self) -> Config:
        """Return the settings that determine this training, without those of the encoder's block."""
        shared = self.study.settings.continue_mlm.model_dump(mode="json")
        return shared | {"training": self.training.result_fields()}

    @property
    def adapt(self) -> Config:
        """Return the block's settings of the adaptation, without those of the training."""
        assert isinstance(self.block, AdaptedEncoder)
        return self.block.adapt.model_dump(mode="json", exclude={"training"})


_NAMES = (
    ("num_hidden_layers", "n_layers", "n_layer", "num_layers"),
    ("hidden_size", "dim", "n_embd", "d_model"),
)
"""Keys for numbers of layers and widths in config.json; DistilBERT, GPT-2 and T5 have keys of their own."""


def folders_of(encoder: EncoderBlock, data_root: Path | None) -> list[Path]:
    """Return the folders on this machine from which an encoder may be fetched; they need not exist."""
    in_folders = (source for source in encoder.sources if not isinstance(source, HubEncoder))
    return [root / source.path for source in in_folders if (root := source.root(data_root))]


def _size_in(folder: Path) -> Size | None:
    try:
        config = json.loads((encoder_folder(folder) / "config.json").read_text("utf-8"))
        layers, width = (int(config[name]) for names in _NAMES for name in names if name in config)
        return Size(layers, width, _positions(config), config.get("model_type"))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, DataError):
        return None


def _positions(config: Mapping[str, Any]) -> int | None:
    """Return the usable positions: all for BERT; RoBERTa's and MPNet's count from one past the padding id."""
    if config.get("model_type") not in (*BUILT_AS_BERT, "mpnet"):
        return None
    before = 0 if config["model_type"] == "bert" else int(config.get("pad_token_id", 1)) + 1
    return int(config["max_position_embeddings"]) - before
