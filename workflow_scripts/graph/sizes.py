"""What is known of an encoder before it is fetched: from its own config.json, or from config/rates.yaml."""

import json
from collections.abc import Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from workflow_scripts.graph.runs import members_of
from workflow_scripts.planning.rates import read_rates
from workflow_scripts.settings.start import BUILT_AS_BERT, Size

_TWO = {"hidden_dropout_prob": 0.1, "attention_probs_dropout_prob": 0.1}
_DROPOUT: Mapping[str, Mapping[str, float]] = dict.fromkeys((*BUILT_AS_BERT, "mpnet"), _TWO) | {
    "distilbert": {"dropout": 0.1, "attention_dropout": 0.1},
    "modernbert": {"embedding_dropout": 0.0, "attention_dropout": 0.0, "mlp_dropout": 0.0},
}
"""Model type to its settings of dropout, and what Transformers takes where config.json has none."""


class Sizes:
    """Sizes by the encoder's name in the configuration."""

    def __init__(self, config: Mapping[str, Any], root: Path, data_root: Path | None) -> None:
        self._encoders = config["encoders"]
        self._fetched = Path("results", config["name"], "encoders")
        self._data_root = data_root
        self._rates = root / "config/rates.yaml"
        self.of = cache(self._of)

    def _of(self, encoder: str) -> Size | None:
        """The size of an encoder that is fetched or adapted; None where nobody can say before it is fetched."""
        block = self._encoders.get(encoder, {})
        if afresh := block.get("adapt", {}).get("afresh"):
            return (self.of(block["adapt"]["base"]) or Size(0, 0))._replace(
                layers=afresh["layers"], width=afresh["width"]
            )
        if "adapt" in block:
            return self.of(block["adapt"]["base"])
        places = [folder_of(source, self._data_root) for source in block.get("fetch", {}).get("sources", [])]
        for folder in [*places, self._fetched / encoder]:
            if folder is not None and (size := _read(folder / "config.json")):
                return size
        known = read_rates(self._rates).encoders.get(encoder)
        return Size(known.layers, known.width) if known else None

    def behind(self, encoder: str) -> list[Size | None]:
        """Size of an encoder, or of those that its runs start from."""
        return [self.of(part) for part in parts_of(self._encoders, encoder)]


def parts_of(encoders: Mapping[str, Any], encoder: str) -> list[str]:
    """An encoder that is fetched or adapted, or those that its runs start from."""
    members = members_of(encoders, encoder, (0,)).values()
    return [part for member in members for part in parts_of(encoders, member.encoder)] or [encoder]


def folder_of(source: Mapping[str, Any], data_root: Path | None) -> Path | None:
    """The folder that a source on this machine names, whether it is there or not; None for any other source."""
    if source["kind"] == "local":
        return data_root / str(source["path"]) if data_root else None
    if source["kind"] == "package" and (spec := find_spec(source["package"])) and spec.origin:
        return Path(spec.origin).parent / str(source["path"])
    return None


def _read(file: Path) -> Size | None:
    try:
        found = json.loads(file.read_text("utf-8"))
        layers, width = int(found["num_hidden_layers"]), int(found["hidden_size"])
        return Size(layers, width, _positions(found), found.get("model_type"), _drops(found))
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _positions(found: Mapping[str, Any]) -> int | None:
    """Of BERT's kind, all; RoBERTa's and MPNet's count from one past their padding."""
    if found.get("model_type") == "bert":
        return int(found["max_position_embeddings"])
    if found.get("model_type") in (*BUILT_AS_BERT, "mpnet"):
        return int(found["max_position_embeddings"]) - int(found.get("pad_token_id", 1)) - 1
    return None


def _drops(found: Mapping[str, Any]) -> bool | None:
    known = _DROPOUT.get(found.get("model_type", ""))
    return None if known is None else any(found.get(name, usual) for name, usual in known.items())
