"""The check of every run that a study asks for: its merged settings, and what they make of what it starts from.

Overrides, readings and sweeps can name any setting, so that only what they are merged to can be checked. Runs share
most of their settings; each distinct part is read by its class once.
"""

import json
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from workflow_scripts.graph.findings import advice, unknown
from workflow_scripts.graph.mistakes import read
from workflow_scripts.graph.references import base_of, columns_of
from workflow_scripts.graph.rows import Rows
from workflow_scripts.graph.runs import Run, identity, members_of, run_settings
from workflow_scripts.graph.sizes import Sizes
from workflow_scripts.graph.slices import Config, as_json, deciding
from workflow_scripts.settings.methods import MethodConfig
from workflow_scripts.settings.start import Start
from workflow_scripts.settings.study import RunSettings
from workflow_scripts.settings.training import Training

_SHOWN = 2
"""Runs that a line names; of more it gives the number."""


class RunChecks:
    """Checks of runs, whose names have all been found to be defined."""

    def __init__(self, config: Config, sizes: Sizes, rows: Rows) -> None:
        self._config = config
        self._rows = rows
        self._read = cache(lambda text: read(RunSettings, json.loads(text), ""))
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

    def size_findings(self, place: str, grid: Mapping[str, Any], runs: Mapping[str, Run]) -> Iterator[str]:
        """What suites and figures of a grid ask of encoders that are too small for it."""
        yield from self.length_findings(place, grid["suites"], (run.encoder for run in runs.values()))
        yield from self._of_attention(place, grid, runs)
        yield from self._of_similarity(place, grid, runs)

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

    def _of_attention(self, place: str, grid: Mapping[str, Any], runs: Mapping[str, Run]) -> Iterator[str]:
        """Layers whose attention a suite maps and that an encoder of the grid lacks."""
        known = self._config["suites"].get("attention", {})
        for suite in grid["suites"].get("attention", []):
            layers = known.get(suite, {}).get("maps", {}).get("layers", [])
            for encoder in dict.fromkeys(run.encoder for run in runs.values()):
                for size in dict.fromkeys(self._sizes_of(encoder)):
                    if size and (outside := [layer for layer in layers if not 1 <= layer <= size.layers]):
                        found = f"{outside[0]}; {encoder} has layers 1 to {size.layers}"
                        yield f"{place}: suites.attention.{suite}.maps.layers: {found}. Name one of them."

    def _of_similarity(self, place: str, grid: Mapping[str, Any], runs: Mapping[str, Run]) -> Iterator[str]:
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
        merged, _ = self._read(as_json(run_settings(self._config, run)))
        members = members_of(self._config["encoders"], run.encoder, (0,)).values()
        joins = merged and merged.method.starts_from in ("pair", "runs")
        return bool(joins) or any(map(self._joins, members))

    def _of_run(self, run: Run) -> Sequence[str]:
        readings = self._config["methods"][run.method].get("readings", {})
        if run.reading != "default" and run.reading not in readings:
            return [
                f"reading: {run.reading} is no reading of methods.{run.method}. {advice(run.reading, readings)}"
            ]
        settings = run_settings(self._config, run)
        merged, found = self._read(as_json(settings))
        if not merged:
            return found
        method, training = merged.method, merged.training
        pool = getattr(method, "pool", None)
        if pool and (found := [*unknown(pool, self._config["exemplars"], "method.pool")]):
            return found
        start = self._start(run, pool)
        trained = self._trained(run, settings, training) if run.corpus else ()
        return [*trained, *self._origin(run, method), *method.misfits(start)]

    def _trained(self, run: Run, settings: Config, training: Training) -> Iterator[str]:
        """What is wrong with a training, which has to choose a checkpoint."""
        corpus = str(run.corpus)
        yield from training.misfits(corpus, self._rows.most(corpus))
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

    def _start(self, run: Run, pool: str | None) -> Start:
        """What a method's settings are held against."""
        members = members_of(self._config["encoders"], run.encoder, (0,))
        return Start(
            encoder=run.encoder,
            sizes=[size for size in self._sizes_of(run.encoder) if size],
            members=len(members) if "runs" in self._config["encoders"][run.encoder] else None,
            frozen=[name for name, member in members.items() if not member.corpus],
            teacher=run.teacher or "",
            teacher_sizes=[size for size in self._sizes_of(run.teacher) if size] if run.teacher else [],
            pool_sentences=self._config["exemplars"][pool]["sentences"] if pool else None,
        )

    def _origin(self, run: Run, method: MethodConfig) -> Iterator[str]:
        """Encoder, corpus and teacher of a run against what its method starts from."""
        inner = getattr(method, "base", method)
        module, encoder = method.module, run.encoder
        is_made = "runs" in self._config["encoders"][encoder]
        members = list(members_of(self._config["encoders"], encoder, (0,)))
        count = f"{len(members)} run{'s' if len(members) != 1 else ''}" if is_made else "no runs"
        match inner.starts_from:
            case "pair" if len(members) != 2:
                found = f"{module} joins two different runs; {encoder} consists of {count}"
                yield f"encoder: {found}. Name two in its `runs`."
            case "pair" if alike := self._alike(encoder):
                same = f"{' and '.join(alike)} differ in nothing that decides a model"
                found = f"{module} joins two different runs; {same}"
                yield f"encoder: {found}. Change one in `runs` of {encoder}."
            case "runs" if not is_made:
                found = f"{module} adds up runs; {encoder} consists of none"
                yield f"encoder: {found}. Name an encoder with `runs`."
            case "run" if len(members) != 1:
                found = f"{module} reads one run anew; {encoder} consists of {count}"
                yield f"encoder: {found}. Name an encoder with one in `runs`."
            case "encoder" if is_made and (len(members) != 1 or not inner.columns):
                yield f"encoder: {module} starts from one encoder; {encoder} consists of {count}. Name another."
        yield from self._corpus(run, method)
        if method.has_teacher and not run.teacher:
            found = f"{module} learns the vectors of a teacher, and none is named"
            yield f"teacher: {found}. Name an encoder with one run."
        if run.teacher and not method.has_teacher:
            yield f"teacher: {module} learns from no teacher; {run.teacher} is named. Leave it out, or name distil."

    def _corpus(self, run: Run, method: MethodConfig) -> Iterator[str]:
        module, corpus, wanted = method.module, run.corpus, method.read_columns
        if wanted and corpus is None:
            yield f"corpus: {module} trains, and no corpus is named. Name one."
        if not wanted and corpus is not None:
            yield f"corpus: {module} trains nothing; {corpus} is named. Leave it out, or name another method."
        has = columns_of(self._config, corpus) if corpus else wanted
        if missing := [column for column in wanted if column not in has]:
            found = f"{module} reads the column {missing[0]}; {corpus} has {', '.join(has)}"
            yield f"corpus: {found}. Name another corpus, or another method."

    def _alike_in(self, encoder: str) -> Sequence[str]:
        """Two of an encoder's runs that differ in nothing that decides a model, where all of its runs are sound."""
        members = members_of(self._config["encoders"], encoder, (0,))
        first: dict[str, str] = {}
        for name, run in members.items():
            if self._of_run(run):
                return ()
            settings = run_settings(self._config, run)
            settings["training"] = deciding(settings["training"], Training)
            other = first.setdefault(identity(run, settings), name)
            if other != name:
                return (other, name)
        return ()
