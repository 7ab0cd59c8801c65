"""Module of sentence-transformers that adds up the vectors of the encoders in its folder."""

from typing import Any, Self

import torch
from sentence_transformers import SentenceTransformer
from sentence_transformers.base.modules.input_module import InputModule
from torch import nn

from .base import OF_HUB, bypass_layernorms, write_own_code

_ARGUMENTS = ("model_kwargs", "processor_kwargs", "config_kwargs")
"""Arguments of ``SentenceTransformer`` for the encoders and tokenisers of its modules."""


class EncoderSum(InputModule):
    """Weighted sum of sub-encoders, in the folders encoder1, encoder2, ... with their tokenisers."""

    config_keys = ["weights", "bypassed_layernorms"]  # noqa: RUF012
    config_file_name = "encoder_sum.json"

    def __init__(
        self, weights: list[float], bypassed_layernorms: int, sub_encoders: list[SentenceTransformer]
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.weights = weights
        self.bypassed_layernorms = bypassed_layernorms
        modules: Any = nn.ModuleList(sub_encoders)
        self.sub_encoders = modules
        self.tokenizer = sub_encoders[0].tokenizer
        if bypassed_layernorms:
            for sub_encoder in modules:
                bypass_layernorms(sub_encoder[0].auto_model, bypassed_layernorms)

    @property
    def max_seq_length(self) -> int:
        """Return the maximum number of tokens of a sentence."""
        return int(self.sub_encoders[0].max_seq_length)

    @max_seq_length.setter
    def max_seq_length(self, value: int) -> None:
        for sub_encoder in self.sub_encoders:
            sub_encoder.max_seq_length = value

    def preprocess(self, inputs: Any, *arguments: Any, **options: Any) -> dict[str, Any]:
        """Tokenise for each sub-encoder; the name of a feature begins with ``encoder`` and a number."""
        return {
            f"encoder{number}/{name}": value
            for number, sub_encoder in enumerate(self.sub_encoders)
            for name, value in sub_encoder[0].preprocess(inputs, *arguments, **options).items()
        }

    def forward(self, features: dict[str, Any], **_: Any) -> dict[str, Any]:
        """Return the features with ``sentence_embedding``."""
        vectors = []
        for number, (weight, sub_encoder) in enumerate(zip(self.weights, self.sub_encoders, strict=True)):
            prefix = f"encoder{number}/"
            inputs = {
                name.removeprefix(prefix): features[name] for name in features if name.startswith(prefix)
            }
            vectors.append(weight * sub_encoder(inputs)["sentence_embedding"])
        return features | {"sentence_embedding": torch.stack(vectors).sum(dim=0)}

    def get_embedding_dimension(self) -> int:
        """Return the number of entries of a vector."""
        return int(self.sub_encoders[0].get_embedding_dimension())

    def save(self, output_path: str, *_: Any, **__: Any) -> None:
        """Write settings, code and sub-encoders."""
        self.save_config(output_path)
        write_own_code(self, output_path)
        for number, sub_encoder in enumerate(self.sub_encoders, start=1):
            sub_encoder.save_pretrained(f"{output_path}/encoder{number}", create_model_card=False)

    @classmethod
    def load(  # type: ignore[override]
        cls, model_name_or_path: str, *, trust_remote_code: bool = False, **options: Any
    ) -> Self:
        """Read settings and sub-encoders; the user's arguments, such as a precision, apply to sub-encoders."""
        arguments = {name: options[name] for name in _ARGUMENTS if name in options}
        hub = {name: options[name] for name in OF_HUB if name in options}
        settings = cls.load_config(model_name_or_path, **hub)
        folders = [
            cls.load_dir_path(model_name_or_path, subfolder=f"encoder{number}", **hub)
            for number in range(1, len(settings["weights"]) + 1)
        ]
        sub_encoders = [
            SentenceTransformer(folder, device="cpu", trust_remote_code=trust_remote_code, **arguments)
            for folder in folders
        ]
        return cls(**settings, sub_encoders=sub_encoders)
