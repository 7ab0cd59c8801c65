"""A module of sentence-transformers that adds up the vectors of encoders which lie in its folder."""

from typing import Any, Self

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules.input_module import InputModule
from torch import nn


class TowerSum(InputModule):
    """Weighted sum over towers, each an encoder of its own in tower1, tower2, ..."""

    config_keys = ["weights", "bypassed_layernorms"]  # noqa: RUF012
    config_file_name = "tower_sum.json"

    def __init__(
        self, weights: list[float], bypassed_layernorms: int, towers: list[SentenceTransformer]
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.weights = weights
        self.bypassed_layernorms = bypassed_layernorms
        modules: Any = nn.ModuleList(towers)
        self.towers = modules
        self.tokenizer = towers[0].tokenizer  # all share it
        if bypassed_layernorms:
            for tower in modules:
                for layer in tower[0].auto_model.encoder.layer[-bypassed_layernorms:]:
                    for norm in (layer.attention.output.LayerNorm, layer.output.LayerNorm):
                        norm.register_forward_hook(lambda _module, inputs, _output: inputs[0])

    @property
    def max_seq_length(self) -> int:
        """Tokens that a sentence is cut at."""
        return int(self.towers[0].max_seq_length)

    def preprocess(self, inputs: Any, *arguments: Any, **options: Any) -> dict[str, Any]:
        """Tokenise once for all towers."""
        first: Any = self.towers[0]
        tokens: dict[str, Any] = first[0].preprocess(inputs, *arguments, **options)
        return tokens

    def forward(self, features: dict[str, Any], **_: Any) -> dict[str, Any]:
        """Add ``sentence_embedding``."""
        vectors = [
            weight * tower(dict(features))["sentence_embedding"]
            for weight, tower in zip(self.weights, self.towers, strict=True)
        ]
        return features | {"sentence_embedding": torch.stack(vectors).sum(dim=0)}

    def get_embedding_dimension(self) -> int:
        """Entries of the vector."""
        return int(self.towers[0].get_embedding_dimension())

    def save(self, output_path: str, *_: Any, safe_serialization: bool = True, **__: Any) -> None:
        """Write settings and towers."""
        self.save_config(output_path)
        for number, tower in enumerate(self.towers, start=1):
            tower.save_pretrained(
                f"{output_path}/tower{number}", create_model_card=False, safe_serialization=safe_serialization
            )

    @classmethod
    def load(  # type: ignore[override]
        cls, model_name_or_path: str, *, trust_remote_code: bool = False, **hub: Any
    ) -> Self:
        """Read settings and towers."""
        names = ("token", "cache_folder", "revision", "local_files_only")
        hub = {name: hub[name] for name in names if name in hub}
        settings = cls.load_config(model_name_or_path, **hub)
        places = [
            cls.load_dir_path(model_name_or_path, subfolder=f"tower{number}", **hub)
            for number in range(1, len(settings["weights"]) + 1)
        ]
        towers = [
            SentenceTransformer(place, device="cpu", trust_remote_code=trust_remote_code) for place in places
        ]
        return cls(**settings, towers=towers)
