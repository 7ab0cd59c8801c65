"""A readout as a module of sentence-transformers."""

from pathlib import Path
from typing import Any, ClassVar, Self

from sentence_transformers.base.modules.module import Module

from .own_code import write_own_code


class ReadoutModule(Module):
    """Hidden states of the encoder to one vector; a subclass names the class that computes it."""

    config_keys = ["settings"]  # noqa: RUF012
    core_class: ClassVar[Any]

    def __init__(self, settings: dict[str, Any]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.settings = settings
        self.core = type(self).core_class(**settings)

    def forward(self, features: dict[str, Any], **_: Any) -> dict[str, Any]:
        """Add ``sentence_embedding``."""
        states = features.get("all_layer_embeddings") or (features["token_embeddings"],)
        vectors = self.core(states, features["input_ids"], features["attention_mask"])
        features["sentence_embedding"] = vectors
        return features

    def get_embedding_dimension(self) -> int:
        """Entries of the vector."""
        return int(self.core.width)

    def save(self, output_path: str, *_: Any, safe_serialization: bool = True, **__: Any) -> None:
        """Write settings and weights, and the code into the model folder, where it is looked for."""
        self.save_config(output_path)
        if self.state_dict():
            self.save_torch_weights(output_path, safe_serialization=safe_serialization)
        write_own_code(self, Path(output_path).parent)

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
