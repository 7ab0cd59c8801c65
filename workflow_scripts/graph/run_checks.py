"""The check of every run that a study asks for: its merged settings, and what they make of what it starts from.

Overrides, readings and sweeps can name any setting, so that only what they are merged to can be checked. Runs share
most of their settings; each distinct part is held to its schema once.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

from jsonschema import Draft202012Validator

from workflow_scripts.graph.findings import advice, unknown
from workflow_scripts.graph.references import base_of, columns_of
from workflow_scripts.graph.rows import most_rows
from workflow_scripts.graph.rules import NEEDS, Start, run_rules, training_rules
from workflow_scripts.graph.runs import OF_A_RUN, Run, identity, members_of, run_settings
from workflow_scripts.graph.schema import schema_findings, validator_of
from workflow_scripts.graph.sizes import Sizes
from workflow_scripts.graph.slices import Config, as_json, deciding

_SHOWN = 2
"""Runs that a line names; of more it gives the number."""


class RunChecks:
    """Checks of runs, whose names have all been found to be defined."""

    def __init__(
        self, config: Config, schema: Mapping[str, Any], sizes: Sizes, data_root: Path | None
    ) -> None:
        self._config = config
        self.rows = cache(partial(most_rows, config, data_root=data_root))
        self._schema = schema
        self._method_findings = cache(self._of_method)
        self._training_findings = cache(self._of_training)
        self._development_findings = cache(self._of_development)
        self._alike = cache(self._alike_in)
        self._sizes_of = sizes.behind

    def findings(self, place: str, runs: Mapping[str, Run]) -> Iterator[str]:
        """What is wrong with runs, a line for each mistake: a mistake of several runs is one line.

        Args:
            place: The file or the block that asks for them.
            runs: Runs by name.
        """
        found: dict[str, list[str]] = defaultdict(list)
        for name, run in runs.items():
            for finding in self._of_run(run):
                found[finding].append(name)
        for finding, names in found.items():
            more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
            yield f"{place}: run {', '.join(names[:_SHOWN])}{more}: {finding}"

    def length_findings(
        self, place: str, suites: Mapping[str, Iterable[str]], encoders: Iterable[str]
    ) -> Iterator[str]:
        """Suites whose sentences may be longer than one of the encoders takes that they evaluate."""
        encoders = set(encoders)
        for kind, names in suites.items():
            for suite in names:
                block = self._config["suites"].get(kind, {}).get(suite, {})
                yield from self._too_long(block, f"{place}: suites.{kind}.{suite}", encoders)

    def _too_long(self, block: Mapping[str, Any], place: str, encoders: Iterable[str]) -> Iterator[str]:
        """Settings of a length, anywhere in a block, above what one of the encoders takes."""
        known = [(size.positions, name) for name in encoders for size in self._sizes_of(name) if size]
        most, encoder = min((one for one in known if one[0]), default=(None, ""))
        for key, value in block.items():
            if isinstance(value, Mapping):
                yield from self._too_long(value, f"{place}.{key}", encoders)
            elif most and key in ("max_tokens", "tokens") and value > most:
                yield f"{place}.{key}: {value}; {encoder} takes {most}. Lower it."

    def attention_findings(
        self, place: str, grid: Mapping[str, Any], runs: Mapping[str, Run]
    ) -> Iterator[str]:
        """Layers whose attention a suite maps and that an encoder of the grid lacks."""
        known = self._config["suites"].get("attention", {})
        for suite in grid["suites"].get("attention", []):
            layers = known.get(suite, {}).get("maps", {}).get("layers", [])
            for encoder in dict.fromkeys(run.encoder for run in runs.values()):
                for size in dict.fromkeys(self._sizes_of(encoder)):
                    if size and (outside := [layer for layer in layers if not 1 <= layer <= size.layers]):
                        found = f"{outside[0]}; {encoder} has layers 1 to {size.layers}"
                        yield f"{place}: suites.attention.{suite}.maps.layers: {found}. Name one of them."

    def similarity_findings(
        self, place: str, grid: Mapping[str, Any], runs: Mapping[str, Run]
    ) -> Iterator[str]:
        """Runs that a figure looks inside of and that hold several encoders, or lack the layer that it compares."""
        figure = grid.get("token_similarity") or {}
        shown = {name: runs[name] for name in figure.get("runs", []) if name in runs}
        where = f"{place}: token_similarity"
        for name, run in shown.items():
            if self._joins(run):
                yield f"{where}.runs: {name} holds several encoders, and the figure shows one. Name another."
        for encoder in dict.fromkeys(run.encoder for run in shown.values()):
            for size in dict.fromkeys(filter(None, self._sizes_of(encoder))):
                if not -size.layers - 1 <= figure["layer"] <= size.layers:
                    found = f"{figure['layer']}; {encoder} has hidden states 0 to {size.layers}"
                    yield f"{where}.layer: {found}. Name one of them."

    def _joins(self, run: Run) -> bool:
        """Whether a run's model consists of several encoders."""
        methods = self._config["methods"]
        method = methods[run.method]
        needs = NEEDS.get(methods[method["base"]]["module"] if "base" in method else method["module"])
        members = members_of(self._config["encoders"], run.encoder, (0,)).values()
        return bool(needs and needs.starts_from in ("pair", "runs")) or any(map(self._joins, members))

    def _of_run(self, run: Run) -> Sequence[str]:
        readings = self._config["methods"][run.method].get("readings", {})
        if run.reading != "default" and run.reading not in readings:
            return [
                f"reading: {run.reading} is no reading of methods.{run.method}. {advice(run.reading, readings)}"
            ]
        settings = run_settings(self._config, run)
        found = [
            *_strange_sections(settings),
            *self._method_findings(as_json(settings["method"])),
            *self._training_findings(as_json(settings["training"])),
            *self._development_findings(as_json(settings["development"])),
        ]
        if found:
            return found
        method = settings["method"]
        if method.get("pool") and (
            found := [*unknown(method["pool"], self._config["exemplars"], "method.pool")]
        ):
            return found
        trained = self._trained(run, settings) if run.corpus else ()
        return [*trained, *run_rules(method, self._start(run, method))]

    def _trained(self, run: Run, settings: Config) -> Iterator[str]:
        """What is wrong with a training, which has to choose a checkpoint."""
        corpus = str(run.corpus)
        yield from training_rules(settings["training"], corpus, self.rows(corpus))
        for section in ("training", "development"):
            yield from self._too_long(settings[section], section, [run.encoder])
        if run.teacher:
            yield from self._too_long(self._config["teacher"], "teacher", [run.teacher])
        corpus = base_of(self._config, corpus)
        if (
            not self._config["development"]["dataset"]
            and not self._config["corpora"][corpus]["dev_sentences"]
        ):
            found = "null, and no sentence of the corpus is held out"
            yield f"development.dataset: {found}. Name one, or set corpora.{corpus}.dev_sentences."

    def _of_method(self, text: str) -> list[str]:
        """Mistakes in keys, types and ranges of a method's settings."""
        return [*self._of_block(json.loads(text), "method.")]

    def _of_training(self, text: str) -> list[str]:
        """Mistakes in keys, types and ranges of a training's settings."""
        return [*schema_findings(json.loads(text), self._validator("TrainingBlock"), "training.")]

    def _of_development(self, text: str) -> list[str]:
        """Mistakes in those of its choice of checkpoints; the development set is the same for all runs."""
        settings = json.loads(text)
        if "dataset" in settings:
            return ["development.dataset: one for all runs of a study. Leave it out here."]
        whole = settings | {"dataset": None}
        return [*schema_findings(whole, self._validator("DevelopmentBlock"), "development.")]

    def _of_block(self, method: Any, place: str) -> Iterator[str]:
        if not isinstance(method, dict):
            yield f"{place.rstrip('.')}: {method!r} is no block of settings. Give a mapping."
            return
        module = method.get("module")
        modules = [
            name.removeprefix("Method_") for name in self._schema["$defs"] if name.startswith("Method_")
        ]
        if module not in modules:
            yield f"{place}module: {module} is not defined. {advice(str(module), sorted(modules))}"
            return
        if "base" in method:
            yield from self._of_block(method["base"], f"{place}base.")
            method = method | {"base": "checked_by_itself"}
        yield from schema_findings(method, self._validator(f"Method_{module}"), place)

    def _validator(self, definition: str) -> Draft202012Validator:
        return validator_of(self._schema, definition)

    def _start(self, run: Run, method: Config) -> Start:
        """What the rules of a run read of the rest of the configuration."""
        encoders, pool = self._config["encoders"], method.get("pool")
        members = members_of(encoders, run.encoder, (0,)) if "runs" in encoders[run.encoder] else None
        return Start(
            encoder=run.encoder,
            members=list(members) if members is not None else None,
            sizes=self._sizes_of(run.encoder),
            corpus=run.corpus,
            columns=columns_of(self._config, run.corpus) if run.corpus else (),
            teacher=run.teacher,
            teacher_sizes=self._sizes_of(run.teacher) if run.teacher else (),
            pool_sentences=self._config["exemplars"][pool]["sentences"] if pool else None,
            alike=self._alike(run.encoder),
            frozen=[name for name, member in (members or {}).items() if not member.corpus],
        )

    def _alike_in(self, encoder: str) -> Sequence[str]:
        """Two of an encoder's runs that differ in nothing that decides a model, where all of its runs are sound."""
        members = members_of(self._config["encoders"], encoder, (0,))
        first: dict[str, str] = {}
        for name, run in members.items():
            if self._of_run(run):
                return ()
            settings = run_settings(self._config, run)
            settings["training"] = deciding(settings["training"], self._schema, "TrainingBlock")
            other = first.setdefault(identity(run, settings), name)
            if other != name:
                return (other, name)
        return ()


def _strange_sections(settings: Mapping[str, Any]) -> Iterator[str]:
    """Parts that nobody reads: a reading may hold ``method`` and the sections of runs alone."""
    known = ["method", *OF_A_RUN]
    for name in settings:
        if name not in known:
            yield f"{name}: unknown key. {advice(name, known)}"
