"""A module of sentence-transformers that adds up the vectors of the encoders in its folder."""

from typing import Any, Self, cast

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules.input_module import InputModule
from torch import nn

from .own_code import write_own_code


class EncoderSum(InputModule):
    """Weighted sum over sub-encoders, each an encoder of its own in encoder1, encoder2, ..."""

    config_keys = ["weights", "bypassed_layernorms", "own_tokenizers"]  # noqa: RUF012
    config_file_name = "encoder_sum.json"

    def __init__(
        self,
        weights: list[float],
        bypassed_layernorms: int,
        sub_encoders: list[SentenceTransformer],
        own_tokenizers: bool = False,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.weights = weights
        self.bypassed_layernorms = bypassed_layernorms
        modules: Any = nn.ModuleList(sub_encoders)
        self.sub_encoders = modules
        self.own_tokenizers = own_tokenizers
        self.tokenizer = sub_encoders[0].tokenizer  # of all, unless each has its own
        if bypassed_layernorms:
            for sub_encoder in modules:
                for layer in sub_encoder[0].auto_model.encoder.layer[-bypassed_layernorms:]:
                    for norm in (layer.attention.output.LayerNorm, layer.output.LayerNorm):
                        norm.register_forward_hook(lambda _module, inputs, _output: inputs[0])

    @property
    def max_seq_length(self) -> int:
        """Tokens that a sentence is cut at."""
        first: Any = self.sub_encoders[0]
        return int(first.max_seq_length)

    @max_seq_length.setter
    def max_seq_length(self, value: int) -> None:
        for sub_encoder in self.sub_encoders:
            sub_encoder.max_seq_length = value

    def preprocess(self, inputs: Any, *arguments: Any, **options: Any) -> dict[str, Any]:
        """Tokenise once for all sub_encoders, or once for each, its tokens under names of its own."""
        if not self.own_tokenizers:
            first: Any = self.sub_encoders[0]
            tokens: dict[str, Any] = first[0].preprocess(inputs, *arguments, **options)
            return tokens
        return {
            f"encoder{number}/{name}": value
            for number, sub_encoder in enumerate(cast(Any, self.sub_encoders))
            for name, value in sub_encoder[0].preprocess(inputs, *arguments, **options).items()
        }

    def _of(self, number: int, features: dict[str, Any]) -> dict[str, Any]:
        """What one sub-encoder reads of the features."""
        if not self.own_tokenizers:
            return dict(features)
        prefix = f"encoder{number}/"
        return {
            name.removeprefix(prefix): value for name, value in features.items() if name.startswith(prefix)
        }

    def forward(self, features: dict[str, Any], **_: Any) -> dict[str, Any]:
        """Add ``sentence_embedding``."""
        vectors = [
            weight * sub_encoder(self._of(number, features))["sentence_embedding"]
            for number, (weight, sub_encoder) in enumerate(zip(self.weights, self.sub_encoders, strict=True))
        ]
        return features | {"sentence_embedding": torch.stack(vectors).sum(dim=0)}

    def get_embedding_dimension(self) -> int:
        """Entries of the vector."""
        return int(self.sub_encoders[0].get_embedding_dimension())

    def save(self, output_path: str, *_: Any, safe_serialization: bool = True, **__: Any) -> None:
        """Write settings, code and sub_encoders."""
        self.save_config(output_path)
        write_own_code(self, output_path)
        for number, sub_encoder in enumerate(self.sub_encoders, start=1):
            sub_encoder.save_pretrained(
                f"{output_path}/encoder{number}",
                create_model_card=False,
                safe_serialization=safe_serialization,
            )

    @classmethod
    def load(  # type: ignore[override]
        cls, model_name_or_path: str, *, trust_remote_code: bool = False, **hub: Any
    ) -> Self:
        """Read settings and sub_encoders."""
        names = ("token", "cache_folder", "revision", "local_files_only")
        hub = {name: hub[name] for name in names if name in hub}
        settings = cls.load_config(model_name_or_path, **hub)
        places = [
            cls.load_dir_path(model_name_or_path, subfolder=f"encoder{number}", **hub)
            for number in range(1, len(settings["weights"]) + 1)
        ]
        sub_encoders = [
            SentenceTransformer(place, device="cpu", trust_remote_code=trust_remote_code) for place in places
        ]
        return cls(**settings, sub_encoders=sub_encoders)
