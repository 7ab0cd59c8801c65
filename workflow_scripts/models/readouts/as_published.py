"""An encoder as its authors published it: ``SentenceTransformer(folder)`` with all of its modules.

It is a readout of its own and not a value of ``pooler``, because it replaces the whole readout: pooling, the modules
after it, and the prompt before the text. It has no choice of layers or head. sentence-transformers applies all settings
of the folder, or raises an error. One point differs: weights in half precision are computed and saved in float32.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sentence_transformers import SentenceTransformer
from torch import Tensor
from transformers import PreTrainedModel

from workflow_scripts.data.published import (
    CONFIG,
    MODULES,
    PROMPTS,
    copy_files,
    encoder_folder,
    files_of,
    input_settings,
    published_modules,
    read_json,
)
from workflow_scripts.errors import ConfigError
from workflow_scripts.models.backbone import (
    check_whole,
    load_backbone,
    load_tokenizer,
    max_position_embeddings,
)
from workflow_scripts.models.encoder import SentenceEncoder
from workflow_scripts.models.folders import SavedEncoder, read_settings, write_settings
from workflow_scripts.models.probe import MOST_TOKENS, compare, in_two_ways, is_large, one_by_one
from workflow_scripts.models.text_encoder import TextEncoder
from workflow_scripts.settings.readouts import AsPublished as Config
from workflow_scripts.settings.readouts import ReadoutConfig

_MODEL_ARGUMENTS, _CONFIG_ARGUMENTS = ("model_args", "model_kwargs"), ("config_args", "config_kwargs")
"""Input settings with arguments for the model and its configuration, of older and newer sentence-transformers."""


class PublishedEncoder(TextEncoder):
    """A folder as sentence-transformers loads it, with one of its prompts.

    Raises:
        ConfigError: if sentence-transformers did not write the folder; it would then assume a pooling.
    """

    template = None
    can_be_summed = False

    def __init__(self, folder: Path, settings: Config) -> None:
        super().__init__()
        if not published_modules(folder):
            problem = f"as_published; {folder} has no {MODULES} (of a pinned source, only files that it pins are taken)"
            raise ConfigError(f"readout.kind: {problem}. Take frozen_avg or frozen_cls.")
        self.folder, self.readout_settings = folder, settings
        options: Any = {"local_files_only": True, "model_kwargs": {"dtype": "float32"}}
        self.model = SentenceTransformer(
            str(folder), device="cpu", default_prompt_name=settings.prompt, **options
        )
        self.width = int(self.model.get_embedding_dimension() or 0)
        self.tokenizer = self.model.tokenizer

    @property
    def backbone(self) -> PreTrainedModel:
        """Return the encoder without the modules after it, as sentence-transformers loaded it."""
        transformer: Any = self.model[0]
        return transformer.auto_model  # type: ignore[no-any-return]

    @property
    def backbones(self) -> list[PreTrainedModel]:
        """Return the only backbone, in a list."""
        return [self.backbone]

    @property
    def positions(self) -> int | None:
        """Return the number of tokens with position embeddings in the encoder; None without a limit."""
        return max_position_embeddings(self.backbone)

    def with_readout(self, readout: ReadoutConfig, *, keep_prompt: bool = True) -> SentenceEncoder:
        """Return the encoder without the modules after it, with another readout and always without a prompt."""
        backbone, tokenizer = load_backbone(self.folder), load_tokenizer(self.folder)
        plain = SentenceEncoder(backbone, tokenizer, readout, head=False, head_at_test=False)
        return plain.with_readout(readout, keep_prompt=keep_prompt)

    def forward(self, ids_BT: Tensor, mask_BT: Tensor, _packing: object = None) -> Tensor:
        """Return embeddings of a batch, (B, D); its tokens must include those of the prompt, if any."""
        features = self.model({"input_ids": ids_BT, "attention_mask": mask_BT})
        return features["sentence_embedding"]  # type: ignore[no-any-return]

    def encode(self, sentences: Sequence[str], max_tokens: int) -> NDArray[np.float32]:
        """Return the vectors of sentence-transformers; prompt and text together are cut at ``max_tokens`` or earlier.

        Raises:
            ConfigError: if ``max_tokens`` exceeds the encoder's positions.
        """
        longest = self.model.max_seq_length
        most = min(max_tokens, max_tokens if longest is None else longest)
        if self.positions is not None and most > self.positions:
            problem = f"{max_tokens}; {self.folder} has positions for {self.positions} tokens"
            raise ConfigError(f"max_tokens: {problem}. Set it to {self.positions} or less.")
        self.model.max_seq_length = most
        vectors = self.model.encode([*sentences], show_progress_bar=False)
        self.model.max_seq_length = longest
        return vectors

    def save(self, folder: Path) -> None:
        """Copy the published files, with the prompt as their default, and with float32 for any precision that they set.

        Files written by sentence-transformers can lack settings that it has read, such as ``do_lower_case``.
        """
        folder.mkdir(exist_ok=True)
        copy_files(self.folder, folder, files_of(self.folder))
        if self.readout_settings.prompt is not None:
            _change(folder / PROMPTS, {"default_prompt_name": self.readout_settings.prompt})
        config = encoder_folder(folder) / CONFIG
        config.write_text(json.dumps(_in_float32(read_json(config)), indent=2) + "\n", "utf-8")
        file, settings = input_settings(folder)
        arguments = {name: value for name, value in settings.items() if name in _MODEL_ARGUMENTS and value}
        if arguments:
            _change(file, {name: _in_float32(value) for name, value in arguments.items()})
        write_settings(folder, SavedEncoder(readout=self.readout_settings, head_at_test=False, template=None))

    def sentence_transformer(self, folder: Path) -> SentenceTransformer:
        """Write the folder, and return the model that sentence-transformers loaded."""
        self.save(folder)
        return self.model

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Return the encoder in a folder that ``save`` wrote."""
        settings = read_settings(folder).readout
        assert isinstance(settings, Config)
        return cls(folder, settings)

    def check(self) -> None:
        """Check the weights, and the vectors of a large encoder, which was not loaded when it arrived.

        Raises:
            DataError: naming a weight, or a sentence whose vector depends on others.
        """
        self.check_weights()
        if is_large(self.folder):
            compare(self.folder, one_by_one(self.probed), in_two_ways(self.probed), "as published")

    def probed(self, sentences: Sequence[str]) -> NDArray[np.float32]:
        """Return vectors of sentences, which are cut at the encoder's limit and at ``MOST_TOKENS``."""
        return self.encode(sentences, min(MOST_TOKENS, self.positions or MOST_TOKENS))

    def check_weights(self) -> None:
        """Check that the folder has all weights; sentence-transformers would draw missing ones at random.

        Surplus weights are errors too, unless the folder itself changes the encoder's configuration.

        Raises:
            DataError: naming the first such weight.
        """
        kind: Any = type(self.backbone)
        folder, config = encoder_folder(self.folder), self.backbone.config
        loading = kind.from_pretrained(folder, config=config, output_loading_info=True)[1]
        if any(input_settings(self.folder)[1].get(name) for name in _CONFIG_ARGUMENTS):
            loading["unexpected_keys"] = set()
        check_whole(self.folder, self.backbone, loading)


def _in_float32(settings: dict[str, Any]) -> dict[str, Any]:
    """Return a model's settings with ``dtype`` float32, without the old name ``torch_dtype``."""
    return {name: value for name, value in settings.items() if name != "torch_dtype"} | {"dtype": "float32"}


def _change(file: Path, changes: dict[str, Any]) -> None:
    """Set entries of a JSON file."""
    file.write_text(json.dumps(read_json(file) | changes, indent=2) + "\n", "utf-8")
