"""An encoder as its authors published it: ``SentenceTransformer(folder)``, whatever its files make of it.

A kind of its own rather than a value of ``pooler``: it stands in for all of a readout, the pooling, what follows it,
and the prompt before the text, and has neither layers nor a head to choose. Departs in one point: weights in half
precision are computed in float32, where ``encode`` rounds to theirs.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from torch import Tensor
from transformers import PreTrainedModel

from workflow_scripts.data.published import (
    CONFIG,
    PROMPTS,
    copy_files,
    encoder_folder,
    files_of,
    input_settings,
    unpublished,
    unreadable,
)
from workflow_scripts.errors import ConfigError
from workflow_scripts.models.encoder import (
    SentenceEncoder,
    TextEncoder,
    check_length,
    check_whole,
    load_backbone,
)
from workflow_scripts.settings.readouts import AsPublished as Config
from workflow_scripts.settings.readouts import ReadoutConfig

_PRECISION = {"dtype": "float32"}


class PublishedEncoder(TextEncoder):
    """A folder as sentence-transformers loads it, with one of its prompts.

    Raises:
        ConfigError: if the folder was not published with sentence-transformers, or has no such prompt.
        DataError: if it cannot be loaded.
    """

    template = None

    def __init__(self, folder: Path, settings: Config) -> None:
        from sentence_transformers import SentenceTransformer  # slow to import

        super().__init__()
        if found := next(unpublished(folder), None):
            raise ConfigError(f"readout.kind: as_published; {found}. Take frozen_avg or frozen_cls.")
        self.folder, self.readout_settings = folder, settings
        options: Any = {"local_files_only": True, "model_kwargs": {**_PRECISION}}
        try:
            self.model: Any = SentenceTransformer(str(folder), device="cpu", **options)
            self.model.default_prompt_name = settings.prompt or self.model.default_prompt_name
            self.width = self.model.encode(["a"], prompt="", show_progress_bar=False).shape[1]
        except Exception as error:  # of whatever module or library reads one of its files
            raise unreadable(folder, "model of sentence-transformers", error) from error
        if (name := settings.prompt) not in (None, *self.model.prompts):
            names = ", ".join(self.model.prompts)
            raise ConfigError(f"readout.prompt: {name}; {folder} has {names}. Name one of them, or null.")
        self.tokenizer = self.model.tokenizer
        self.model[0].register_forward_pre_hook(_check_input)

    @property
    def backbone(self) -> PreTrainedModel:
        """The encoder without the modules behind it, as sentence-transformers loaded it."""
        return self.model[0].auto_model  # type: ignore[no-any-return]

    @property
    def leaves(self) -> list[SentenceEncoder]:
        """The encoder itself, of which callers read the backbone alone."""
        return [cast(SentenceEncoder, self)]

    def read_by(self, readout: ReadoutConfig) -> SentenceEncoder:
        """The encoder without the modules behind it, with another readout and no prompt."""
        backbone = load_backbone(self.folder)
        return SentenceEncoder(backbone, readout, head=False, head_at_test=False).read_by(readout)

    def forward(self, ids_BT: Tensor, mask_BT: Tensor, _packing: object = None) -> Tensor:
        """Embed the tokens of a batch, which hold the prompt if one is wanted; returns (B, D)."""
        features = self.model({"input_ids": ids_BT, "attention_mask": mask_BT})
        return features["sentence_embedding"]  # type: ignore[no-any-return]

    def encode(self, sentences: Sequence[str], max_tokens: int) -> NDArray[np.float32]:
        """Vectors of sentence-transformers; prompt and text are cut together, at ``max_tokens`` at most."""
        longest = self.model.max_seq_length
        self.model.max_seq_length = min(longest, max_tokens)
        try:
            vectors = self.model.encode([*sentences], device=str(self.device), show_progress_bar=False)
        finally:
            self.model.max_seq_length = longest
        return vectors.astype(np.float32)  # type: ignore[no-any-return]

    def save(self, folder: Path) -> None:
        """Copy the folder; loaders find the prompt and the precision that were used here."""
        copy_files(self.folder, folder, files_of(self.folder))
        file, settings = input_settings(folder)
        _update(folder / PROMPTS, default_prompt_name=self.model.default_prompt_name)
        _update(encoder_folder(folder) / CONFIG, **_PRECISION)
        for name in {"model_args", "model_kwargs"} & {*settings}:
            _update(file, **{name: settings[name] | _PRECISION})

    def check_weights(self) -> None:
        """Refuse weights that the folder lacks: sentence-transformers would start them from random numbers.

        Raises:
            DataError: naming the first.
        """
        kind, config = type(self.backbone), self.backbone.config
        place = encoder_folder(self.folder)
        loaded: Any = kind.from_pretrained(place, config=config, output_loading_info=True)
        check_whole(self.folder, loaded[1])


def _check_input(module: Any, given: tuple[Mapping[str, Tensor]]) -> None:
    """Refuse more tokens than there are positions: the longest input of a folder may be above them."""
    check_length(module.auto_model, given[0]["input_ids"])


def _update(file: Path, **values: Any) -> None:
    content = json.loads(file.read_text("utf-8")) if file.exists() else {}
    file.write_text(json.dumps(content | values, indent=2) + "\n", "utf-8")
