"""Base class of readouts, which are trained and saved with an encoder and loaded by sentence-transformers.

Files of this folder are copied into model folders. Files that import only one another, relatively, work there without
the rest of the project.
"""

import json
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, Self

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor, nn
from transformers.dynamic_module_utils import get_relative_import_files

Reads = Literal["padded", "all", "last", "first"]
"""Hidden states that a readout needs: of all layers, with or without padding; of the last layer; or of the first token
in the last layer."""
OF_HUB = ("token", "cache_folder", "revision", "local_files_only")
"""Options with which sentence-transformers finds a folder on the hub."""
SETTINGS_FILE, WEIGHTS_FILE = "config.json", "model.safetensors"


class ReadoutModule(nn.Module):
    """A map from hidden states to sentence vectors; each module of this package has one subclass, named ``Readout``.

    A readout gets the encoder's ``width`` and all settings of its kind. It passes them to this class, which saves them.
    All of its parameters and buffers are trained and saved with the encoder. A vector must not depend on padding or on
    other sentences of its batch, unless ``labels`` of its settings warns of that. Two buffers have fixed names:
    ``mask_id`` is set to the tokeniser's mask, and ``mask_counts`` to the numbers of the prompt's masks before and
    after the sentence (``set_mask_token``).
    """

    reads: Reads = "all"
    """Hidden states that the readout needs; others need not be computed or kept."""
    width: int
    """Number of entries of a vector, R; a head maps them to the encoder's D."""

    def __init__(self, width: int, **settings: Any) -> None:
        super().__init__()
        self.width = width
        self.settings = {"width": width} | settings  # arguments with which a loader makes the same readout

    def read(self, hidden_states: Sequence[Tensor], ids_BT: Tensor, mask_BT: Tensor) -> Tensor:
        """Return sentence vectors.

        Args:
            hidden_states: The states that ``reads`` selects, each (B, T, D), or (B, 1, D) of the first token; states
                of padding are arbitrary but finite, unless ``reads`` is ``padded``.
            ids_BT: Token ids.
            mask_BT: 1 for a token, 0 for padding; every row has at least one token.

        Returns:
            Sentence vectors, shape (B, R), not normalised.
        """
        raise NotImplementedError

    def forward(self, features: dict[str, Any], **_: Any) -> dict[str, Any]:
        """Return the features with ``sentence_embedding``, for sentence-transformers."""
        states = features.get("all_layer_embeddings") or (features["token_embeddings"],)
        vectors_BR = self.read(states, features["input_ids"], features["attention_mask"])
        return features | {"sentence_embedding": vectors_BR}

    def sentence_modules(self, depth: int) -> Sequence[nn.Module]:
        """Return modules of sentence-transformers after an encoder of ``depth`` layers; by default only the readout."""
        return [self]

    def get_embedding_dimension(self) -> int:
        """Return the number of entries of a vector."""
        return self.width

    def save(self, output_path: str, *_: Any, **__: Any) -> None:
        """Write settings and weights, and copy the code into the model folder."""
        folder = Path(output_path)
        (folder / SETTINGS_FILE).write_text(json.dumps(self.settings, indent=1) + "\n", "utf-8")
        if weights := self.state_dict():
            save_file(weights, folder / WEIGHTS_FILE)
        write_own_code(self, folder.parent)

    @classmethod
    def load(cls, model_name_or_path: str, subfolder: str = "", **options: Any) -> Self:
        """Read settings and weights, from the hub if the model is not a local folder."""
        from sentence_transformers.util import load_dir_path

        hub = {name: options[name] for name in OF_HUB if name in options}
        folder = Path(str(load_dir_path(model_name_or_path, subfolder, **hub)))
        readout = cls(**json.loads((folder / SETTINGS_FILE).read_text("utf-8")))
        readout.load_weights(folder)
        return readout

    def load_weights(self, folder: Path) -> None:
        """Load weights from a folder that ``save`` wrote."""
        if self.state_dict():
            self.load_state_dict(load_file(folder / WEIGHTS_FILE))


def weighted_mean(states: Tensor, weight_BT: Tensor) -> Tensor:
    """Return the weighted mean over tokens, (B, ..., T, D) to (B, ..., D), never in bfloat16."""
    weight = weight_BT.view(len(weight_BT), *(1,) * (states.dim() - 3), -1).to(states.dtype)
    with torch.autocast(weight_BT.device.type, enabled=False):
        return torch.einsum("...td,...t->...d", states, weight / weight.sum(dim=-1, keepdim=True))


def own_masks(ids_BT: Tensor, mask_BT: Tensor, mask_id: Tensor, mask_counts: Tensor) -> Tensor:
    """Return 1 for each of the prompt's own masks, 0 otherwise, (B, T); its sentence may also contain masks."""
    is_mask_BT = (ids_BT == mask_id) & mask_BT.bool()
    number_BT = is_mask_BT.cumsum(dim=1)
    before, after = mask_counts
    is_own_BT = (number_BT <= before) | (number_BT > number_BT[:, -1:] - after)
    own_BT: Tensor = (is_mask_BT & is_own_BT).to(mask_BT.dtype)
    return own_BT


def bypass_layernorms(backbone: Any, last: int) -> None:
    """Skip the LayerNorms of an encoder's ``last`` layers (JTCSE, section VI-A and Fig. 8).

    Their weights stay in the model, unused: a saved encoder is a stock encoder.
    """
    layers = list(backbone.encoder.layer)
    for layer in layers[len(layers) - last :]:
        for norm in (layer.attention.output.LayerNorm, layer.output.LayerNorm):
            norm.register_forward_hook(lambda _module, inputs, _output: inputs[0])


def write_own_code(module: object, folder: str | Path) -> None:
    """Copy the source file of a module's class, and the files that it imports relatively, into ``folder``."""
    file = str(sys.modules[type(module).__module__].__file__)
    for source in (file, *get_relative_import_files(file)):
        target = Path(folder, Path(source).name)
        if target.resolve() != Path(source).resolve():
            shutil.copyfile(source, target)
