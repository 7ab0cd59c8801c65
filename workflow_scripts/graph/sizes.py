"""Facts about encoders and text that are known before anything is read.

Of an encoder from its own config.json, where it is on this machine, how large it is and of which kind; whether it drops
out or attends both ways is seen when it is loaded. Of text from the contracts of datasets. Also memory and time of
jobs, by the size of their encoders; they decide no result, so Snakemake reruns nothing for them.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from workflow_scripts.data.published import encoder_folder
from workflow_scripts.errors import DataError
from workflow_scripts.graph.call import Wildcards
from workflow_scripts.graph.runs import members_of
from workflow_scripts.graph.schema import AdaptedEncoder, AnyEncoder, Configuration, FetchedEncoder
from workflow_scripts.settings.encoders import EncoderBlock, HubEncoder
from workflow_scripts.settings.readouts import BUILT_AS_BERT, Size

_NAMES = (
    ("num_hidden_layers", "n_layers", "n_layer", "num_layers"),
    ("hidden_size", "dim", "n_embd", "d_model"),
)
"""Names that families have for their layers and their width; DistilBERT, GPT-2 and T5 have names of their own."""


class Sizes:
    """Sizes by the encoder's name in the configuration."""

    def __init__(self, settings: Configuration, data_root: Path | None) -> None:
        self._encoders = settings.encoders
        self._fetched = Path("results", settings.name, "encoders")
        self._data_root = data_root
        self.of = cache(self._size)

    def _size(self, encoder: str) -> Size | None:
        """The size of an encoder that is fetched or adapted; None if nothing is known before it is fetched."""
        block = self._encoders.get(encoder)
        if isinstance(block, AdaptedEncoder):
            base, scratch = self.of(block.adapt.base), block.adapt.from_scratch
            if scratch is None:
                return base
            return (base or Size(0, 0))._replace(layers=scratch.layers, width=scratch.width)
        folders = folders_of(block.fetch, self._data_root) if isinstance(block, FetchedEncoder) else []
        return next(filter(None, map(_read, [*folders, self._fetched / encoder])), None)

    def behind(self, encoder: str) -> list[Size]:
        """Known sizes of an encoder, or of those that its runs start from."""
        return [*filter(None, (self.of(part) for part in parts_of(self._encoders, encoder)))]


def parts_of(encoders: Mapping[str, AnyEncoder], encoder: str) -> list[str]:
    """An encoder that is fetched or adapted, or those that its runs start from."""
    members = members_of(encoders, encoder).values()
    return [part for member in members for part in parts_of(encoders, member.encoder)] or [encoder]


def folders_of(encoder: EncoderBlock, data_root: Path | None) -> list[Path]:
    """Folders on this machine that an encoder may be fetched from, whether they are there or not."""
    in_folders = (source for source in encoder.sources if not isinstance(source, HubEncoder))
    return [root / source.path for source in in_folders if (root := source.root(data_root))]


def _read(folder: Path) -> Size | None:
    try:
        found = json.loads((encoder_folder(folder) / "config.json").read_text("utf-8"))
        layers, width = (int(found[name]) for names in _NAMES for name in names if name in found)
        return Size(layers, width, _positions(found), found.get("model_type"))
    except (OSError, ValueError, KeyError, TypeError, AttributeError, DataError):
        return None


def _positions(found: Mapping[str, Any]) -> int | None:
    """Positions of an encoder: all for BERT; RoBERTa's and MPNet's count from one past their padding."""
    if found.get("model_type") == "bert":
        return int(found["max_position_embeddings"])
    if found.get("model_type") in (*BUILT_AS_BERT, "mpnet"):
        return int(found["max_position_embeddings"]) - int(found.get("pad_token_id", 1)) - 1
    return None


# Memory and time


OF_SIZE = {"base": (1, 1), "large": (1, 3), "huge": (5, 60)}
"""Memory and time of a job that computes with one encoder, in those of one with BERT-base.

BERT-large computes 3.5 times as much; seven billion parameters 75 times, and they are 27 GB in float32.
"""

LONGEST = 7 * 24 * 60
"""Most minutes that a job asks for, since few queues take more; jobs that run so long go on in their next try."""


def asked(
    settings: Configuration,
    gigabytes: int,
    *,
    minutes: int = 0,
    hours: int = 0,
    loads: Callable[[Wildcards], Iterable[str]] = lambda _: (),
) -> dict[str, Callable[..., str | int]]:
    """Functions of a job's wildcards and of its try: memory, such as 16GB, and minutes; a second try asks for twice.

    Args:
        settings: The configuration.
        gigabytes: Of a job that loads BERT-base or no encoder.
        minutes: Of such a job.
        hours: The same, in hours.
        loads: Encoders that a job computes with; of several, it needs the time of each.
    """

    @cache
    def needs(*loaded: str) -> list[tuple[int, int]]:
        parts = [part for encoder in loaded for part in parts_of(settings.encoders, encoder)]
        return [OF_SIZE[settings.fetched(part).size] for part in parts] or [OF_SIZE["base"]]

    def memory(wildcards: Wildcards, attempt: int = 1) -> str:
        return f"{gigabytes * attempt * max(memory for memory, _ in needs(*loads(wildcards)))}GB"

    def runtime(wildcards: Wildcards, attempt: int = 1) -> int:
        factor = sum(time for _, time in needs(*loads(wildcards)))
        return min((minutes + 60 * hours) * attempt * factor, LONGEST)

    return {"mem": memory, "runtime": runtime}
