"""How long trainings are: sentences of corpora by contracts, steps, and their time on the GPU that was measured.

Nothing here is measured on this machine; ``verbs.timing`` does that. An unknown number is NaN.
"""

import math
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from workflow_scripts.graph.study import Study
from workflow_scripts.settings.corpora import RoundTrip, RoundTripCorpus
from workflow_scripts.settings.encoders import AdaptedEncoder
from workflow_scripts.settings.study import Configuration
from workflow_scripts.settings.training import Training, batches

SIZES = ("base", "large", "huge")
"""Sizes of encoders as their blocks have them, in order."""
CARD = "H200 (docs/cluster.md)"
"""The GPU of the measured steps."""
STEP_MILLISECONDS = {"base": (18.5, 12.2), "large": (math.nan, math.nan), "huge": (math.nan, math.nan)}
"""A captured step of SimCSE by the size of the encoder, with layers as they are, and compiled.

It has 64 sentences of up to 32 tokens, in bfloat16. Measured with a prototype on one H200 with 16 slow host cores on 26
November 2026 (docs/cluster.md). Other methods take up to 3.4 times as long (docs/laboratory.md); evaluations on the
development set take a tenth more.
"""
COMPILED_FROM = 5_000
"""Steps of 64 sentences, read twice, from which a training compiles its layers (``training.step``)."""
SENTENCES = 64


def corpus_rows(settings: Configuration, corpus: str) -> float:
    """Return the number of sentences in a corpus, by contracts and limits."""
    block = settings.corpora[corpus]
    if isinstance(block, RoundTripCorpus):
        return translated(settings, block.round_trip) * (
            2 if block.round_trip.training_text == "expanded" else 1
        )
    rows = promised_rows(settings, block.dataset) - block.dev_sentences
    added = promised_rows(settings, block.add_sentences_of) if block.add_sentences_of else 0
    return min(rows, block.max_sentences or math.inf) + added


def translated(settings: Configuration, trip: RoundTrip) -> float:
    """Return the number of sentences that a round trip translates."""
    return min(corpus_rows(settings, trip.corpus), trip.max_sentences or math.inf)


def promised_rows(settings: Configuration, dataset: str) -> float:
    """Return the rows that the contract of a dataset promises: their number, or at least so many."""
    contract = settings.datasets[dataset].contract
    return contract.rows or (contract.min_rows if "min_rows" in contract.model_fields_set else math.nan)


class Length(NamedTuple):
    """How long a training is."""

    size: str
    """The size of its encoder, or of the largest of several."""
    steps: float
    as_64: float
    """Steps, if each had 64 sentences."""

    @property
    def card_seconds(self) -> float:
        """Seconds on the measured GPU, if each step is one of SimCSE."""
        plain, compiled = STEP_MILLISECONDS[self.size]
        return self.as_64 * (compiled if self.as_64 >= COMPILED_FROM else plain) / 1000


def is_training(settings: Mapping[str, Any]) -> bool:
    """Return whether the job of a slice trains an encoder."""
    return "training" in settings or "adapt" in settings


def training_of(study: Study, wildcards: Mapping[str, str]) -> tuple[str, Training]:
    """Return the corpus and the settings of a training by its job's wildcards: of a run, or of an adapted encoder."""
    if "run" in wildcards:
        run = study.runs[wildcards["run"]]
        return str(run.corpus), run.training
    encoder = study.encoders[wildcards["encoder"]]
    assert isinstance(encoder.block, AdaptedEncoder)
    return encoder.block.adapt.corpus, encoder.training


def encoder_of(study: Study, wildcards: Mapping[str, str]) -> str:
    """Return the encoder that a job makes, trains or computes with; empty if its wildcards name none."""
    run = study.runs.get(wildcards.get("run", ""))
    named: str = run.encoder if run else wildcards.get("encoder", wildcards.get("teacher", ""))
    return named


def length(study: Study, wildcards: Mapping[str, str]) -> Length:
    """Return how long a training is, by its job's wildcards."""
    corpus, training = training_of(study, wildcards)
    parts = study.encoders[encoder_of(study, wildcards)].parts
    size = max((study.settings.fetched(part).size for part in parts), key=SIZES.index)
    rows = math.nan if training.max_steps else corpus_rows(study.settings, corpus)
    known = math.isfinite(rows)
    per_epoch = batches(int(rows), training.batch_size, training.last_batch) if known else math.nan
    steps = training.max_steps or (training.epochs or 0) * per_epoch
    return Length(size, steps, steps * training.batch_size / SENTENCES)


def on_the_card(study: Study, trainings: Iterable[Mapping[str, str]]) -> str:
    """Return how long trainings take on the measured GPU, as the end of a sentence; empty without any.

    Args:
        study: The study.
        trainings: Wildcards of their jobs.
    """
    seconds = [length(study, wildcards).card_seconds for wildcards in trainings]
    known = [duration for duration in seconds if not math.isnan(duration)]
    if not known:
        return ""
    plural = "s" if len(known) > 1 else ""
    more = f", and {len(seconds) - len(known):,} more of unknown time" if len(known) < len(seconds) else ""
    return f"{in_words(sum(known))} on one {CARD} for {len(known):,} training{plural}, if a step is one of SimCSE{more}"


_UNITS = (("day", 86_400), ("h", 3600), ("min", 60), ("s", 1))


def in_words(seconds: float) -> str:
    """Return a time in its two largest units, such as ``2 h 10 min``; empty if it is unknown."""
    if math.isnan(seconds):
        return ""
    if seconds < 1:
        return "< 1 s"
    for _ in range(2):  # 59 min 59.8 s become 1 h
        position = next(number for number, (_, size) in enumerate(_UNITS) if seconds >= size)
        smallest = _UNITS[min(position + 1, len(_UNITS) - 1)][1]
        seconds = round(seconds / smallest) * smallest
    rest, words = seconds, []
    for name, size in _UNITS[position : position + 2]:
        number, rest = divmod(rest, size)
        if number:
            words.append(f"{number} {name}{'s' if name == 'day' and number > 1 else ''}")
    return " ".join(words)
