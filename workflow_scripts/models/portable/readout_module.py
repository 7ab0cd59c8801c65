"""A readout as a module of sentence-transformers, for model folders.

``saving`` puts the readout's own file before what follows the mark below, so that ``Core`` is that readout.
"""

from typing import Any

from torch import nn

Core: Any = nn.Module

# The file of a model folder goes on from here.
from typing import Any, Self  # noqa: E402

from sentence_transformers.base.modules.module import Module  # noqa: E402


class SentenceReadout(Module):
    """Hidden states of the encoder to one vector."""

    config_keys = ["settings"]  # noqa: RUF012

    def __init__(self, settings: dict[str, Any]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.settings = settings
        self.core = Core(**settings)

    def forward(self, features: dict[str, Any], **_: Any) -> dict[str, Any]:
        """Add ``sentence_embedding``."""
        states = features.get("all_layer_embeddings") or (features["token_embeddings"],)
        read = self.core(states, features["input_ids"], features["attention_mask"])
        features["sentence_embedding"] = read
        return features

    def get_embedding_dimension(self) -> int:
        """Entries of the vector."""
        return int(self.core.width)

    def save(self, output_path: str, *_: Any, safe_serialization: bool = True, **__: Any) -> None:
        """Write settings and weights."""
        self.save_config(output_path)
        self.save_torch_weights(output_path, safe_serialization=safe_serialization)

    @classmethod
    def load(  # type: ignore[override]
        cls, model_name_or_path: str, *, trust_remote_code: bool = False, **options: Any
    ) -> Self:
        """Read settings and weights."""
        of_hub = ("subfolder", "token", "cache_folder", "revision", "local_files_only")
        hub = {key: options[key] for key in of_hub if key in options}
        made = cls(**cls.load_config(model_name_or_path, **hub))
        if made.state_dict():
            cls.load_torch_weights(model_name_or_path, model=made, **hub)
        return made
