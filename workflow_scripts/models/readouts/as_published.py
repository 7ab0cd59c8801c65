"""An encoder as its authors published it: ``SentenceTransformer(folder)`` with all of its modules.

It is a readout of its own and not a value of ``pooler``, because it replaces the whole readout: pooling, the modules
after it, and the prompt before the text; there are no layers and no head to choose. It differs from the published
encoder in one point: weights in half precision are computed in float32, without rounding to their precision.
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
        if reason := next(unpublished(folder), None):
            raise ConfigError(f"readout.kind: as_published; {reason}. Take frozen_avg or frozen_cls.")
        self.folder, self.readout_settings = folder, settings
        options: Any = {"local_files_only": True, "model_kwargs": {**_PRECISION}}
        try:
            self.model: Any = SentenceTransformer(str(folder), device="cpu", **options)
            self.model.default_prompt_name = settings.prompt or self.model.default_prompt_name
            self.width = self.model.encode(["a"], prompt="", show_progress_bar=False).shape[1]
        except Exception as error:  # raised by any of the modules or libraries that read its files
            raise unreadable(folder, "model of sentence-transformers", error) from error
        if (name := settings.prompt) not in (None, *self.model.prompts):
            names = ", ".join(self.model.prompts)
            raise ConfigError(f"readout.prompt: {name}; {folder} has {names}. Name one of them, or null.")
        self.tokenizer = self.model.tokenizer
        self.model[0].register_forward_pre_hook(_check_input)

    @property
    def backbone(self) -> PreTrainedModel:
        """The encoder without the modules after it, as sentence-transformers loaded it."""
        return self.model[0].auto_model  # type: ignore[no-any-return]

    @property
    def leaves(self) -> list[SentenceEncoder]:
        """The encoder itself; callers use only its backbone."""
        return [cast(SentenceEncoder, self)]

    def read_by(self, readout: ReadoutConfig) -> SentenceEncoder:
        """The encoder without the modules after it, with another readout and no prompt."""
        backbone = load_backbone(self.folder)
        return SentenceEncoder(backbone, readout, head=False, head_at_test=False).read_by(readout)

    def forward(self, ids_BT: Tensor, mask_BT: Tensor, _packing: object = None) -> Tensor:
        """Embed the tokens of a batch, which must include the prompt if there is one; returns (B, D)."""
        features = self.model({"input_ids": ids_BT, "attention_mask": mask_BT})
        return features["sentence_embedding"]  # type: ignore[no-any-return]

    def encode(self, sentences: Sequence[str], max_tokens: int) -> NDArray[np.float32]:
        """Vectors of sentence-transformers; prompt and text together are cut at ``max_tokens`` or earlier."""
        longest = self.model.max_seq_length
        self.model.max_seq_length = min(longest, max_tokens)
        try:
            vectors = self.model.encode([*sentences], device=str(self.device), show_progress_bar=False)
        finally:
            self.model.max_seq_length = longest
        return vectors.astype(np.float32)  # type: ignore[no-any-return]

    def save(self, folder: Path) -> None:
        """Copy the folder, with the prompt and the precision of this encoder in its settings."""
        copy_files(self.folder, folder, files_of(self.folder))
        file, settings = input_settings(folder)
        _update(folder / PROMPTS, default_prompt_name=self.model.default_prompt_name)
        _update(encoder_folder(folder) / CONFIG, **_PRECISION)
        for name in {"model_args", "model_kwargs"} & {*settings}:
            _update(file, **{name: settings[name] | _PRECISION})

    def check_weights(self) -> None:
        """Check that the folder has all weights, since sentence-transformers would draw missing ones at random.

        Raises:
            DataError: naming the first missing weight.
        """
        kind, config = type(self.backbone), self.backbone.config
        folder = encoder_folder(self.folder)
        loaded: Any = kind.from_pretrained(folder, config=config, output_loading_info=True)
        check_whole(self.folder, loaded[1])


def _check_input(module: Any, inputs: tuple[Mapping[str, Tensor]]) -> None:
    """Check that there are positions for all tokens; a folder's own limit may be larger than their number."""
    check_length(module.auto_model, inputs[0]["input_ids"])


def _update(file: Path, **values: Any) -> None:
    content = json.loads(file.read_text("utf-8")) if file.exists() else {}
    file.write_text(json.dumps(content | values, indent=2) + "\n", "utf-8")
