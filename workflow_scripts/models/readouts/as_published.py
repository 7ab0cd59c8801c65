"""What an encoder's authors put behind it: the modules of their sentence-transformers folder, and their prompt.

A kind of its own rather than a value of ``pooler``: it stands in for all of a readout, the pooling, what follows it,
and the prompt before the text, and has neither layers nor a head to choose. Vectors are those of
``SentenceTransformer(folder).encode``: sentence-transformers' own classes compute them, taken by name from its package
and never from the folder. Prompt and text are cut together, at no more tokens than the encoder was published for.

Departs in one point: weights in half precision are computed in float32, where ``encode`` rounds to theirs.

Shape suffixes: B sentences, T tokens, D width of the encoder, R of the last module.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from torch import Tensor, nn

from workflow_scripts.data.published import MODULES, Module, modules_of, read_published
from workflow_scripts.errors import ConfigError, DataError
from workflow_scripts.models.readouts.base import ReadoutModule
from workflow_scripts.settings.templates import SENTENCE, Prefix


class Readout(ReadoutModule):
    """The modules behind the encoder that was loaded from ``folder``, one after the other.

    It is the folder of the authors, or the first module's in a run's folder, which has the same modules.

    Raises:
        ConfigError: if something of them is not done here, or there is no such prompt.
    """

    reads = "last"

    def __init__(self, width: int, folder: Path, prompt: str | None) -> None:
        super().__init__(width, prompt=prompt)
        folder = folder if (folder / MODULES).exists() else folder.parent
        published = read_published(folder)
        if found := next(published.misfits(prompt, str(folder)), None):
            raise ConfigError(found)
        self.following = nn.ModuleList(_load(folder, one) for one in modules_of(folder)[1:])
        sized: Any = [one for one in self.following if hasattr(one, "get_embedding_dimension")]
        self.width = int(sized[-1].get_embedding_dimension())
        name, prompts = prompt or published.default, dict(published.prompts)
        self.template = Prefix(text=f"{prompts.get(name or '', '')}{SENTENCE}", add_period=False)
        self.sentence_options = {"prompts": prompts, "default_prompt_name": name}

    def read(self, hidden_states: Sequence[Tensor], ids_BT: Tensor, mask_BT: Tensor) -> Tensor:
        """Vectors of the last module, (B, R)."""
        states_BTD = hidden_states[-1].float()
        features: dict[str, Any] = {"token_embeddings": states_BTD, "attention_mask": mask_BT}
        with torch.autocast(mask_BT.device.type, enabled=False):
            for module in self.following.children():
                features = module(features)
        vectors_BR: Tensor = features["sentence_embedding"]
        return vectors_BR

    def sentence_modules(self, depth: int) -> Sequence[nn.Module]:
        """They themselves."""
        return [*self.following]

    def load_weights(self, folder: Path) -> None:
        """They have been loaded."""


def _load(folder: Path, module: Module) -> nn.Module:
    from sentence_transformers.base.modules import Dense, Normalize
    from sentence_transformers.sentence_transformer.modules import LayerNorm, Pooling

    kinds: dict[str, Any] = {
        "Dense": Dense,
        "LayerNorm": LayerNorm,
        "Normalize": Normalize,
        "Pooling": Pooling,
    }
    try:
        loaded: nn.Module = kinds[module.kind].load(str(folder), subfolder=module.path, local_files_only=True)
    except (RuntimeError, SafetensorError) as error:
        reason = str(error).strip().splitlines()[-1].strip()
        raise DataError(f"{folder / module.path}: {reason}. Get the model again.") from error
    return loaded
