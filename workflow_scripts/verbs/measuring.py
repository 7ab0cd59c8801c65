"""Times of trainings, from a few steps of each distinct one on this machine's device; nothing is written.

A training is built as its job builds it, from the encoder in its folder; its steps are those of the training loop. It
trains on sentences of its corpus or, if the corpus is not made yet, on random ones as long as those of Wikipedia.

If other programs keep the processor busy, times on a CPU are processor time over the number of threads, if that is less
than the time on the clock. Otherwise the other programs would count, by a different amount each time.
"""

import json
import math
import os
import time
from collections.abc import Callable, Sequence
from contextlib import closing, redirect_stderr
from functools import partial
from io import StringIO
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow.parquet as pq
import torch
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from workflow_scripts.data.published import encoder_folder
from workflow_scripts.errors import ConfigError
from workflow_scripts.graph.encoders import folders_of
from workflow_scripts.graph.lengths import corpus_rows, encoder_of, is_training, length, training_of
from workflow_scripts.graph.study import Study
from workflow_scripts.methods import load_method
from workflow_scripts.models.backbone import load_backbone, load_tokenizer
from workflow_scripts.models.encoding import encode_sentences
from workflow_scripts.models.tokens import Shapes, tokenise
from workflow_scripts.progress import progress
from workflow_scripts.settings.encoders import AdaptedEncoder
from workflow_scripts.settings.methods import read_method
from workflow_scripts.settings.training import ContinueMlm, Training
from workflow_scripts.training import mlm
from workflow_scripts.training.data import Teacher, TrainingData
from workflow_scripts.training.loop import prepare
from workflow_scripts.training.objective import Objective
from workflow_scripts.training.sampler import Sampler
from workflow_scripts.training.step import TrainStep, prefetch, prepare_inputs, shapes_for, step_runner
from workflow_scripts.verbs.plan import PlannedJob
from workflow_scripts.verbs.timing import looks_of

SECONDS_EACH, SECONDS_IN_ALL = 8.0, 900.0
"""Maximum time in which the steps of one training are timed, and in which trainings are begun."""
BUSY = 0.5
"""Minimum number of other running programs per processor core for the machine to count as busy."""
_LEAST_STEPS = {"cuda": 20}
"""Minimum number of timed steps by type of device: on a GPU, the first ones are captured. 4 on others."""
_MOST_STEPS = 200
_TEXTS, _LOOK = 2_000, 64
"""Number of sentences to tokenise, and of sentences of the development set to encode."""
_WORDS = """
the of and to in a is that for it as was with be by on not he his but at are this have from or had an they which river
village century government music season company family system history station island written people university national
language published southern members building during several between political population
"""
_LENGTHS = (12, 46)
"""Range of the words of a random sentence, each a token; the mean is 30, as in sentences of Wikipedia."""


class Built(NamedTuple):
    """Training that is ready for its first step."""

    objective: Objective
    shapes: Shapes
    tokenizer: PreTrainedTokenizerBase
    look: Callable[[], object]
    """Function that encodes ``_LOOK`` sentences of the development set."""


class Timed(NamedTuple):
    """Times of the parts of a training, in seconds."""

    start: float
    """Time until its first step, without reading the corpus."""
    text: float
    """Time to tokenise one sentence of the corpus."""
    step: float
    look: float
    """Time to encode one sentence of the development set."""


class Measured(NamedTuple):
    """Times of the measured trainings, and notes on the others."""

    seconds: dict[str, float]
    """Seconds by the benchmark file of the training's job."""
    notes: list[str]


def measure(study: Study, jobs: Sequence[PlannedJob], imports: float) -> Measured:
    """Return the measured time of each distinct training among the remaining jobs.

    Args:
        study: The study.
        jobs: The remaining jobs.
        imports: Processor seconds of importing this module, which every training does.
    """
    alike: dict[str, list[PlannedJob]] = {}
    for job in (job for job in jobs if is_training(job.settings)):
        alike.setdefault(_distinct(study, job), []).append(job)
    measured, began = Measured({}, []), time.monotonic()
    load = os.getloadavg()[0]
    if busy := load > BUSY * len(os.sched_getaffinity(0)):
        measured.notes.append(
            f"other programs keep this machine busy (load {load:.1f}); times are those without them"
        )
    with progress(len(alike), "measure", "training") as bar:
        for group in alike.values():
            name = " ".join(group[0].wildcards.values())
            if time.monotonic() - began > SECONDS_IN_ALL:
                measured.notes.append(f"{name}: not reached within {SECONDS_IN_ALL / 60:.0f} min")
                continue
            try:
                with redirect_stderr(StringIO()):  # lines for a job's log
                    timed = _timed(study, group[0], busy=busy)
            except Exception as error:  # leaves only the time of this training unknown
                said = " ".join(str(error).split()) or type(error).__name__
                measured.notes.append(f"{name}: {said}")
            else:
                measured.seconds.update(
                    {job.benchmark: imports + _seconds(study, job, timed) for job in group}
                )
            bar.update()
    return measured


def _distinct(study: Study, job: PlannedJob) -> str:
    """Return a text that is equal for two trainings if their steps take the same time."""
    corpus, training = training_of(study, job.wildcards)
    parts = study.encoders[encoder_of(study, job.wildcards)].parts
    names = ("batch_size", "max_tokens", "precision", "chunk", "gpus", "cpu_threads")
    how = training.model_dump(mode="json", include={*names})
    return json.dumps(
        [parts, corpus, job.settings.get("method"), job.settings.get("adapt"), how], sort_keys=True
    )


def _seconds(study: Study, job: PlannedJob, timed: Timed) -> float:
    """Return the seconds of a training, given the times of its parts."""
    corpus, _ = training_of(study, job.wildcards)
    rows, steps = corpus_rows(study.settings, corpus), length(study, job.wildcards).steps
    tokenising = 0 if math.isnan(rows) else rows * timed.text
    looks = 0 if math.isnan(steps) else looks_of(study, job.wildcards, steps) * timed.look
    return timed.start + tokenising + steps * timed.step + looks


class Stopwatch:
    """Seconds of work, without other programs' share of a busy CPU."""

    def __init__(self, device: torch.device, threads: int, *, busy: bool) -> None:
        self._threads = threads if busy and device.type == "cpu" else 0
        self.begin()

    def begin(self) -> None:
        """Start from zero."""
        self._wall, self._cpu = time.monotonic(), time.process_time()

    def seconds(self) -> float:
        """Return the seconds since ``begin``."""
        wall, cpu = time.monotonic() - self._wall, time.process_time() - self._cpu
        return min(wall, cpu / self._threads) if self._threads else wall


def _timed(study: Study, job: PlannedJob, *, busy: bool) -> Timed:
    """Return the times of the parts of one training."""
    single = Stopwatch(torch.device("cpu"), 1, busy=busy)
    corpus, training = training_of(study, job.wildcards)
    training = training.model_copy(update={"batch_size": training.batch_size // training.gpus, "gpus": 1})
    device = prepare(training, seed=0)
    watch = Stopwatch(device, training.cpu_threads, busy=busy)
    texts = sentences_of(study, corpus, max(2 * training.batch_size, _TEXTS))
    built = (_adaptation if "adapt" in job.settings else _contrast)(study, job, training, texts, device)
    start = single.seconds()
    single.begin()
    tokenise(built.tokenizer, texts, training.max_tokens)
    text = single.seconds() / len(texts)
    planned = length(study, job.wildcards).steps
    step = _a_step(built, training, watch, _MOST_STEPS if math.isnan(planned) else int(planned))
    built.look()  # the first one may compile kernels
    watch.begin()
    built.look()
    return Timed(start, text, step, watch.seconds() / _LOOK)


def _a_step(built: Built, training: Training, watch: Stopwatch, steps: int) -> float:
    """Return the mean seconds of a step, over the second half of the steps."""
    update = TrainStep(built.objective, training, steps)
    run, device = step_runner(update, built.shapes, steps), update.device
    least, times, began = _LEAST_STEPS.get(device.type, 4), list[float](), time.monotonic()
    with closing(prefetch(partial(prepare_inputs, built.objective, 0), device, 0, _MOST_STEPS)) as inputs:
        watch.begin()
        for prepared in inputs:
            results, _ = run(prepared, training.lr(1, steps))
            results.tolist()  # waits for the device
            times.append(watch.seconds())
            if len(times) >= least and time.monotonic() - began > SECONDS_EACH:
                break
            watch.begin()
    later = times[len(times) // 2 :]
    return sum(later) / len(later)


def sentences_of(study: Study, corpus: str, number: int) -> list[str]:
    """Return the given number of sentences of a corpus, evenly spread, or random ones if it is not made yet."""
    file = Path(study.folder, "corpora", corpus, "train.parquet")
    if file.is_file():
        table = pq.read_table(file)
        column = table["sentence" if "sentence" in table.column_names else "anchor"]
        sentences: list[str] = column.take(np.linspace(0, len(column) - 1, number).astype(int)).to_pylist()
        return sentences
    draw = np.random.default_rng(0)
    counts = draw.integers(*_LENGTHS, size=number, endpoint=True)
    return [" ".join(draw.choice(_WORDS.split(), size=count)) for count in counts]


def _folders(study: Study, job: PlannedJob) -> list[Path]:
    """Return the folders of the fetched encoders that a training starts from.

    An adapted encoder stands for its base, which has the same size, and a trained one for its starting encoder.

    Raises:
        ConfigError: if one of them is not on this machine.
    """
    named = encoder_of(study, job.wildcards)
    return [_folder(study, part) for part in study.encoders[named].parts]


def _folder(study: Study, name: str) -> Path:
    block = study.encoders[name].block
    if isinstance(block, AdaptedEncoder):
        return _folder(study, block.adapt.base)
    in_study = Path(study.folder, "encoders", name)
    for folder in (in_study, *folders_of(study.settings.fetched(name), study.data_root)):
        if folder.is_dir() and (encoder_folder(folder) / "config.json").is_file():
            return folder
    raise ConfigError(f"encoders.{name}: not on this machine yet. Run make fetch, then measure.")


def _backbone(study: Study, name: str, **overrides: object) -> PreTrainedModel:
    block = study.encoders[name].block
    if isinstance(block, AdaptedEncoder) and block.adapt.from_scratch:
        return mlm.from_scratch(_folder(study, name), block.adapt.from_scratch)
    return load_backbone(_folder(study, name), **overrides)  # type: ignore[arg-type]


def _adaptation(
    study: Study, job: PlannedJob, training: Training, texts: Sequence[str], device: torch.device
) -> Built:
    """Build a training by masked language modelling, as ``jobs.continue_mlm`` does."""
    tokenizer = load_tokenizer(_folders(study, job)[0])
    settings = ContinueMlm.parse(study.encoders[job.wildcards["encoder"]].adapting(), "continue_mlm")
    text = tokenise(tokenizer, texts, training.max_tokens)
    model = mlm.MaskedLanguageModel(_backbone(study, job.wildcards["encoder"])).to(device)
    sampler, shapes = Sampler(len(text), training.batch_size, 0), shapes_for(device, model, None)
    objective = mlm.Objective(model, text, sampler, tokenizer, settings, shapes)
    return Built(objective, shapes, tokenizer, lambda: None)


def _contrast(
    study: Study, job: PlannedJob, training: Training, texts: Sequence[str], device: torch.device
) -> Built:
    """Build the training of a run, as ``jobs.train_encoder`` does; all columns of its corpus are the same texts."""
    run, config = study.runs[job.wildcards["run"]], read_method(job.settings["method"], "methods")
    method, tokenizer = load_method(config.module), load_tokenizer(_folders(study, job)[0])
    parts = study.encoders[run.encoder].parts
    backbones = (_backbone(study, part, **config.overrides) for part in parts)
    encoder = method.build(config, tokenizer, *backbones).to(device)
    columns = dict.fromkeys(("anchor", "positive", "negative", "exemplar", "word"), texts)
    vectors = np.random.default_rng(0).normal(size=(len(texts), encoder.width)).astype(np.float32)
    teacher = Teacher(vectors, 2) if run.teacher else None
    shapes, sampler = shapes_for(device, encoder, training.chunk), Sampler(len(texts), training.batch_size, 0)
    data = TrainingData(columns, tokenizer, training.max_tokens, sampler, teacher, training.chunk, shapes)
    objective = method.Objective(config, encoder, data)
    scored = objective.scored or encoder
    look = partial(encode_sentences, scored, texts[:_LOOK], run.development.max_tokens)
    return Built(objective, shapes, tokenizer, look)
