"""The runs that grids and encoders ask for, with their settings; sizes of encoders, and memory and time of jobs.

The settings of a run are merged from all that may override them. Of an encoder, its own config.json says how large it
is and of which kind, where it is on this machine before anything is read; whether it drops out or attends both ways is
seen when it is loaded. Memory and time decide no result, so Snakemake reruns nothing for them.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, reduce
from pathlib import Path
from typing import Any

from workflow_scripts.data.published import encoder_folder
from workflow_scripts.errors import ConfigError, DataError
from workflow_scripts.graph.call import Config, Wildcards, as_json
from workflow_scripts.graph.mistakes import read
from workflow_scripts.graph.schema import (
    AdaptedEncoder,
    AnyEncoder,
    Configuration,
    EncoderFromRuns,
    FetchedEncoder,
    GridBlock,
    RunSettings,
)
from workflow_scripts.settings.grids import Run, expand, merged, runs_of
from workflow_scripts.settings.readouts import BUILT_AS_BERT, Size
from workflow_scripts.settings.sources import EncoderBlock, HubEncoder

_OVERRIDABLE = ("training", "development")
"""Sections of the configuration that a method, a reading and a run can change for themselves."""


def all_runs(grids: Mapping[str, GridBlock], encoders: Mapping[str, AnyEncoder]) -> dict[str, Run]:
    """Every run of every grid, and those that they are made from, each with all seeds that are asked of it.

    Raises:
        ConfigError: if one name is given to different runs.
    """
    runs: dict[str, Run] = {}
    for experiment, grid in grids.items():
        for name, run in runs_of(grid).items():
            _add(runs, name, run, encoders, f"experiments.{experiment}")
    return runs


def _add(runs: dict[str, Run], name: str, run: Run, encoders: Mapping[str, AnyEncoder], place: str) -> None:
    """Add a run and those that it is made from to ``runs``."""
    seen = runs.get(name, run)
    if seen._replace(seeds=()) != run._replace(seeds=()):
        raise ConfigError(f"{place}: run {name} differs from another of that name. Give it a tag.")
    joined = run._replace(seeds=tuple(sorted({*seen.seeds, *run.seeds})))
    if runs.get(name) != joined:
        runs[name] = joined
        for encoder in filter(None, (run.encoder, run.teacher)):
            for part, made in members_of(encoders, encoder, run.seeds).items():
                _add(runs, part, made, encoders, f"encoders.{encoder}.runs")


def members_of(encoders: Mapping[str, AnyEncoder], name: str, seeds: Sequence[int] = (0,)) -> dict[str, Run]:
    """The runs that an encoder consists of, in order; none for one that is fetched or adapted."""
    encoder = encoders.get(name)
    blocks = encoder.runs if isinstance(encoder, EncoderFromRuns) else ()
    return {part: run for block in blocks for part, run, _ in expand(block, seeds)}


def run_settings(config: Config, run: Run) -> Config:
    """Settings of one run: its method, training and development, with what encoder, method, reading and run override.

    Later ones win: ``training``, then the encoder's, then the method's, then the reading's, then the run's; likewise
    ``development``, which encoders leave alone. A method that names another one as its ``base`` is given that one's
    block, and its training and development settings. A reading that the method lacks changes nothing.

    Args:
        config: As files have it, since only keys that are written down override others.
        run: The run.

    Returns:
        Parts of the configuration, shared with it and so not to be changed.
    """
    block = config["methods"][run.method]
    below = config["methods"][block["base"]] if "base" in block else {}
    method = _method_keys(block) | ({"base": _method_keys(below)} if below else {})
    development = {key: value for key, value in config["development"].items() if key != "dataset"}
    overrides = (
        {"training": config["encoders"][run.encoder].get("training", {})},
        *({section: one.get(section, {}) for section in _OVERRIDABLE} for one in (below, block)),
        block.get("readings", {}).get(run.reading, {}),
        run.overrides,
    )
    shared = {"method": method, "training": config["training"], "development": development}
    return reduce(merged, overrides, shared)


def _method_keys(block: Config) -> Config:
    """A block of ``methods`` without training, development and readings."""
    return {key: value for key, value in block.items() if key not in (*_OVERRIDABLE, "readings")}


def read_run(config: Config, run: Run) -> tuple[RunSettings | None, list[str]]:
    """The settings of one run (``run_settings``), or a line for each thing that is wrong with them."""
    return _read(as_json(run_settings(config, run)))


@cache
def _read(settings: str) -> tuple[RunSettings | None, list[str]]:
    return read(RunSettings, json.loads(settings), "")


def adapting_training(config: Config, encoder: str) -> Config:
    """Settings of the training that adapts an encoder: the shared ones with what its block says of its own."""
    return {**config["continue_mlm"]["training"], **config["encoders"][encoder]["adapt"].get("training", {})}


# Sizes of encoders


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
        return next(filter(None, map(_size_in, [*folders, self._fetched / encoder])), None)

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


def _size_in(folder: Path) -> Size | None:
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
