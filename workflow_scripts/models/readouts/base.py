"""What a readout is: the module that is trained and saved, and that sentence-transformers loads.

Files of this folder go into model folders as they are. Those that import one another relatively, and nothing else of
the project, need nothing of it there.
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
"""The hidden states that are wanted: every layer's, with or without those of padding, the last one's, or of the last
one the first token's."""
OF_HUB = ("token", "cache_folder", "revision", "local_files_only")
"""How sentence-transformers finds a folder on the hub."""
SETTINGS_FILE, WEIGHTS_FILE = "config.json", "model.safetensors"


class ReadoutModule(nn.Module):
    """Hidden states to sentence vectors; a file of this folder has one subclass, called ``Readout``.

    Made with the encoder's ``width`` and every setting of the class of its kind in ``settings.readouts``, which it
    passes on, so that they are saved with it.
    Parameters and buffers are trained and saved with the encoder, whatever they are. A vector must not depend on
    padding or on other sentences of its batch, unless ``labels`` of its settings says so. A buffer named ``mask_id``
    is told which token the mask is (``set_mask_token``).
    """

    reads: Reads = "all"
    """The hidden states that it needs; whatever is not asked for need not be computed or kept."""
    is_independent: bool = True
    """Whether other sentences in a batch change nothing of a vector in training either, nor of what is drawn for it."""
    width: int
    """Entries of the vectors, R; a head brings them back to the encoder's D."""

    def __init__(self, width: int, **settings: Any) -> None:
        super().__init__()
        self.width = width
        self.settings = {"width": width} | settings  # what makes it anew, but for weights

    def read(self, hidden_states: Sequence[Tensor], ids_BT: Tensor, mask_BT: Tensor) -> Tensor:
        """Read sentence vectors.

        Args:
            hidden_states: Those that ``reads`` asks for, each (B, T, D), or (B, 1, D) of the first token;
                unless it asks for them, states of padding are arbitrary, though finite.
            ids_BT: Token ids.
            mask_BT: 1 for a token, 0 for padding; every row holds at least one token.

        Returns:
            Sentence vectors, shape (B, R), not normalised.
        """
        raise NotImplementedError

    def forward(self, features: dict[str, Any], **_: Any) -> dict[str, Any]:
        """Add ``sentence_embedding``, for sentence-transformers."""
        states = features.get("all_layer_embeddings") or (features["token_embeddings"],)
        vectors_BR = self.read(states, features["input_ids"], features["attention_mask"])
        return features | {"sentence_embedding": vectors_BR}

    def sentence_modules(self, depth: int) -> Sequence[nn.Module]:
        """What computes it in sentence-transformers, behind an encoder of ``depth`` layers: it itself."""
        return [self]

    def get_embedding_dimension(self) -> int:
        """Entries of the vector."""
        return self.width

    def save(self, output_path: str, *_: Any, **__: Any) -> None:
        """Write settings and weights, and the code into the model folder, where it is looked for."""
        folder = Path(output_path)
        (folder / SETTINGS_FILE).write_text(json.dumps(self.settings, indent=1) + "\n", "utf-8")
        if weights := self.state_dict():
            save_file(weights, folder / WEIGHTS_FILE)
        write_own_code(self, folder.parent)

    @classmethod
    def load(cls, model_name_or_path: str, subfolder: str = "", **options: Any) -> Self:
        """Read settings and weights; from the hub, if the model is there."""
        from sentence_transformers.util import load_dir_path

        hub = {name: options[name] for name in OF_HUB if name in options}
        folder = Path(str(load_dir_path(model_name_or_path, subfolder, **hub)))
        made = cls(**json.loads((folder / SETTINGS_FILE).read_text("utf-8")))
        made.load_weights(folder)
        return made

    def load_weights(self, folder: Path) -> None:
        """Take the weights of a folder that ``save`` wrote."""
        if self.state_dict():
            self.load_state_dict(load_file(folder / WEIGHTS_FILE))


def weighted_mean(states: Tensor, weight_BT: Tensor) -> Tensor:
    """Mean over tokens, (B, ..., T, D) to (B, ..., D), each with its weight, never in bfloat16."""
    weight = weight_BT.view(len(weight_BT), *(1,) * (states.dim() - 3), -1).to(states.dtype)
    with torch.autocast(weight_BT.device.type, enabled=False):
        return torch.einsum("...td,...t->...d", states, weight / weight.sum(dim=-1, keepdim=True))


def bypass_layernorms(backbone: Any, last: int) -> None:
    """Let the states of an encoder's ``last`` layers through unnormalised (JTCSE, section VI-A and Fig. 8).

    The weights of the LayerNorms stay where they are, unused, so that a saved encoder is a stock encoder.
    """
    layers = list(backbone.encoder.layer)
    for layer in layers[len(layers) - last :]:
        for norm in (layer.attention.output.LayerNorm, layer.output.LayerNorm):
            norm.register_forward_hook(lambda _module, inputs, _output: inputs[0])


def write_own_code(module: object, folder: str | Path) -> None:
    """Copy the file of the class of ``module``, and those that it imports relatively, into ``folder``."""
    file = str(sys.modules[type(module).__module__].__file__)
    for source in (file, *get_relative_import_files(file)):
        target = Path(folder, Path(source).name)
        if target.resolve() != Path(source).resolve():
            shutil.copyfile(source, target)
