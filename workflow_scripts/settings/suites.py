"""Suites of evaluations, a class a kind, and what their files of scores hold."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import product
from typing import Annotated, ClassVar, Literal, Self, get_args

from pydantic import AfterValidator, Field
from pydantic.fields import FieldInfo
from pydantic_core import PydanticCustomError

from workflow_scripts.errors import Finding, unknown
from workflow_scripts.settings.base import Settings
from workflow_scripts.settings.names import Labelled, MaxTokens, Name, Pairs, Refers, Substitution, Texts
from workflow_scripts.settings.readouts import Pooling, Start, too_long

Cells = frozenset[tuple[str, str]]
"""Aggregations, which may end in ``*``, with the metrics that each has."""


def cells(aggregations: Iterable[str], metrics: Iterable[str]) -> Cells:
    """Every metric under every aggregation."""
    return frozenset(product(aggregations, metrics))


LOWER_IS_BETTER = frozenset(
    {
        "alignment", "uniformity", "parameters", "gmac_linear", "gmac_total", "added_parameters_percent",
        "latency_ms", "latency_ratio", "added_latency_percent", "retrieval_ms", "index_bytes",
    }
)  # fmt: skip
"""Metrics of which lower values are better."""
NOT_RANKED = frozenset({"mean_modulus", "mean_cosine", "cls_energy", "base_latency_ms"})
"""Metrics that describe an encoder, or another one: neither end is better."""
_NO_SCORES = ("training", "statistics")
"""Values of the column ``suite`` in tables for paths of a training, and for statistics of datasets."""


def direction_of(suite: str, aggregation: str, metric: str) -> int:
    """Return 1 if higher values are better, -1 if lower ones are, and 0 if neither is.

    Args:
        suite: As in ``columns.TABLE``.
        aggregation: A standard deviation is not ranked.
        metric: One, or several with " and " between them, which are ranked if all agree.
    """
    if suite in _NO_SCORES or "sd" in aggregation.split(" and "):
        return 0
    ends = {0 if one in NOT_RANKED else -1 if one in LOWER_IS_BETTER else 1 for one in metric.split(" and ")}
    return ends.pop() if len(ends) == 1 else 0


def aggregation_findings(
    aggregation: str, patterns: Collection[str], path: str, who: str, metric: str
) -> Iterator[Finding]:
    """Yield a finding if a metric is not written under an aggregation; none where nothing is known of the metric."""
    if patterns and not any(fnmatchcase(aggregation, pattern) for pattern in patterns):
        known = ", ".join(f'"{pattern}"' for pattern in sorted(patterns))
        yield Finding(path, f'{who} has no "{aggregation}" of {metric}', f"Known: {known}.")


class Suite(Settings):
    """Settings of a suite: every field is a key of its block below ``suites.<kind>``."""

    form: ClassVar[str | None] = None
    """Form of its ``datasets``, if it has any."""
    threads: ClassVar[int] = 1
    """CPU threads that an evaluation of this kind uses beside the encoder."""
    gpu: ClassVar[Literal["never", "here", "always"]] = "always"
    """Where its jobs ask for a GPU by default: nowhere, on a machine without a queue, or in a queue too."""
    scores: ClassVar[Cells] = cells(["*"], ["*"])
    """What files of scores hold of each of its ``datasets``; everything for a kind that does not say."""

    @property
    def tasks(self) -> Mapping[str, str]:
        """Its tasks, each with the dataset that it reads; none for a kind that reads no datasets."""
        return {}

    @property
    def mteb_lists(self) -> Sequence[str]:
        """Return the lists of mteb's tasks that it asks for."""
        return ()

    def written(self, _lists: Mapping[str, Mapping[str, str]]) -> dict[str, Cells]:
        """Tasks, and what files of scores hold of each.

        Args:
            _lists: Lists of mteb's tasks, by name.
        """
        return dict.fromkeys(self.tasks, self.scores)

    def timed(self) -> dict[str, Cells]:
        """Tasks whose time is measured, and what files of times hold of each."""
        return {}

    def misfits(self, start: Start) -> Iterator[Finding]:
        """Yield what an encoder lacks for this suite, such as positions for its longest texts."""
        yield from too_long(self, start)


class SuiteConfig(Suite):
    """Settings of a suite whose tasks are scored from vectors of their texts (``evaluation.base``)."""

    form: ClassVar[str] = "labelled"

    datasets: list[Labelled] = Field(min_length=1, description="Datasets, one task each.")
    max_tokens: MaxTokens
    label: Substitution = None
    readout: Pooling | None = Field(
        default=None,
        description="Readout to use with every run's backbone, without its own readout and head; null for its own.",
    )

    @property
    def tasks(self) -> Mapping[str, str]:
        """Its tasks, each with the dataset that it reads."""
        return {name: name for name in self.datasets}

    def labels(self, scored: Collection[str], _pieces: Callable[[str], object]) -> Sequence[str]:
        """Substitutions to print with the scores; none if no task has a score.

        Args:
            scored: Tasks that have a score.
            _pieces: Cuts a text into an encoder's tokens.
        """
        return [self.label] if self.label and scored else []

    def for_task(self, task: str) -> Self:
        """Settings that decide the scores of one task, without those of other tasks."""
        return self.model_copy(update={"datasets": [task]})


SIGNS = {"above": ">", "at_least": ">="}
SENTEVAL = ("sts12", "sts13", "sts14", "sts15", "sts16", "stsb", "sick")
"""How the names of its sets begin."""
RELEASED = (
    "STS sentences as released, not lower-cased and tokenised as SentEval's, of which published numbers are; "
    "this tokeniser is cased"
)


class Positives(Settings):
    """One measurement of alignment and uniformity."""

    dataset: Pairs = Field(description="Dataset of the form pairs.")
    comparison: Literal["above", "at_least"] = Field(
        description="How the score of positive pairs compares with the threshold."
    )
    threshold: float = Field(description="Threshold on the dataset's own scale.")
    normalise: bool = Field(description="Whether vectors are scaled to length 1 first.")

    def describe(self) -> str:
        """A description of the measurement for tables."""
        form = "normalised" if self.normalise else "not normalised"
        return f"{self.dataset}, score {SIGNS[self.comparison]} {self.threshold:g}, {form}"


class Sample(Settings):
    """A sample of sentences, on which isotropy, modulus and mean cosine are measured."""

    dataset: Texts = Field(description="Dataset of sentences or pairs; each distinct sentence counts once.")
    min_characters: int = Field(ge=0, description="Shorter sentences are left out.")
    max_sentences: int = Field(gt=1, description="Use the first N sentences.")


Measure = Positives | Sample


class Sts(SuiteConfig):
    """A suite of scored pairs: its tasks are its datasets, and what is measured of geometry, by its name."""

    gpu: ClassVar[Literal["never", "here", "always"]] = "here"  # a queue's wait would be longer than the job
    form: ClassVar[str] = "pairs"
    scores: ClassVar[Cells] = cells(("all", "wmean", "mean", "subset:*"), ("spearman", "pearson"))

    datasets: list[Pairs] = Field(default=[], description="Datasets of the form pairs, one task each.")
    text: Literal["release", "senteval"] = Field(
        default="release",
        description="Sentences as released, or tokenised and lower-cased as SentEval has them.",
    )
    positives: dict[str, Positives] = Field(
        default={}, description="Measurements of alignment and uniformity."
    )
    samples: dict[str, Sample] = Field(
        default={}, description="Sentences whose isotropy and moduli are measured."
    )

    def conflicts(self) -> Iterator[Finding]:
        """There is a task, and a name stands for one."""
        if not self.tasks:
            yield Finding("datasets", "none, and no positives or samples either", "Name one.")
        for task in sorted(self.positives.keys() & {*self.datasets, *self.samples}):
            yield Finding(f"positives.{task}", "another task of the suite has that name", "Rename one.")
        for task in sorted(self.samples.keys() & {*self.datasets}):
            yield Finding(f"samples.{task}", "another task of the suite has that name", "Rename one.")

    @property
    def measures(self) -> Mapping[str, Measure]:
        """Measures of geometry, by name."""
        return {**self.positives, **self.samples}

    @property
    def tasks(self) -> Mapping[str, str]:
        """Its datasets, and the datasets of what is measured."""
        return {**super().tasks, **{name: one.dataset for name, one in self.measures.items()}}

    def labels(self, scored: Collection[str], pieces: Callable[[str], object]) -> Sequence[str]:
        """Also that a tokeniser sees other words of SentEval's sets than their published numbers are computed on."""
        cased = pieces("Town") != pieces("town")
        of_senteval = any(name in scored and name.startswith(SENTEVAL) for name in self.datasets)
        released = [RELEASED] if cased and of_senteval and self.text == "release" else []
        return [*super().labels(scored, pieces), *released]

    def for_task(self, task: str) -> Self:
        """Settings that decide the scores of one dataset or measure."""
        alone = {
            "datasets": [name for name in self.datasets if name == task],
            "positives": {name: one for name, one in self.positives.items() if name == task},
            "samples": {name: one for name, one in self.samples.items() if name == task},
        }
        return self.model_copy(update=alone)

    def written(self, _lists: Mapping[str, Mapping[str, str]]) -> dict[str, Cells]:
        """Correlations of each dataset, and what is measured of geometry."""
        positives = cells([""], ("alignment", "uniformity"))
        sample = cells([""], ("isoscore", "mean_modulus", "mean_cosine"))
        measured = dict.fromkeys(self.positives, positives) | dict.fromkeys(self.samples, sample)
        return dict.fromkeys(self.datasets, self.scores) | measured


class Clustering(SuiteConfig):
    """A suite of clustering tasks."""

    scores: ClassVar[Cells] = cells(("mean", "sd"), ("accuracy", "nmi", "v_measure"))

    seeds: int = Field(ge=2, description="Runs of k-means, with seeds 0, 1, ...")
    n_init: int = Field(ge=1, description="Starts of each run, of which the best is used.")
    max_texts: int | None = Field(
        default=None,
        gt=0,
        description="Number of texts drawn from a larger set, the same for all runs; omit for all texts.",
    )


class Transfer(SuiteConfig):
    """A suite of transfer tasks."""

    scores: ClassVar[Cells] = cells([""], ("accuracy", "dev_accuracy"))
    threads: ClassVar[int] = 8  # classifiers are fitted side by side
    of_positive: ClassVar[Cells] = cells([""], ["f1"])
    of_grades: ClassVar[Cells] = cells([""], ("spearman", "pearson", "dev_pearson"))

    graded: list[str] = Field(description="Those datasets whose labels are scores.")
    grades: dict[str, tuple[float, float]] = Field(
        default={},
        description="Scores of a graded dataset that the first and the last of its five soft classes stand for; left "
        "out, the lowest and highest of its training part. SentEval has 1 and 5 for SICK and STS-B.",
    )
    positive: dict[str, str] = Field(
        default={}, description="Class of a dataset whose F1 on the test part is measured too; 1 for MRPC."
    )
    classifier: Literal["exact", "senteval"]
    folds: int = Field(ge=2, description="Folds of every cross-validation; SentEval 10.")
    seed: int = Field(ge=0, description="Seed of folds, batches and initial weights; SentEval 1111.")

    def conflicts(self) -> Iterator[Finding]:
        """Graded tasks are among the tasks, grades are of graded tasks, and positive classes of others."""
        yield from unknown(self.graded, self.datasets, "graded")
        yield from unknown(self.grades, self.graded, "grades")
        yield from unknown(
            self.positive, [name for name in self.datasets if name not in self.graded], "positive"
        )
        for name, (low, high) in self.grades.items():
            if low >= high:
                yield Finding(f"grades.{name}", f"{low:g} to {high:g}", "Write the lowest score first.")

    def for_task(self, task: str) -> Self:
        """Settings that decide the scores of one task: with whether it is graded, its grades and positive class."""
        alone = {
            "graded": [name for name in self.graded if name == task],
            "grades": {name: grades for name, grades in self.grades.items() if name == task},
            "positive": {name: label for name, label in self.positive.items() if name == task},
        }
        return super().for_task(task).model_copy(update=alone)

    def written(self, _lists: Mapping[str, Mapping[str, str]]) -> dict[str, Cells]:
        """Correlations of graded tasks; accuracies of others, and the F1 of a positive class."""
        classes = {
            task: self.scores | self.of_positive if task in self.positive else self.scores
            for task in self.datasets
        }
        return {task: self.of_grades if task in self.graded else classes[task] for task in self.datasets}


class InvertedIndex(Settings):
    """An inverted index of FAISS, which searches some of its lists and may miss the nearest texts."""

    nlist: int = Field(
        ge=1, description="Lists that the texts are divided into, by k-means with a fixed seed."
    )
    nprobe: int = Field(ge=1, description="Lists that a query is compared with.")

    def conflicts(self) -> Iterator[Finding]:
        """More lists are probed than there are."""
        if self.nprobe > self.nlist:
            yield Finding(
                "nprobe", f"{self.nprobe} of {self.nlist} lists", f"Set nprobe to {self.nlist} or less."
            )


class Search(SuiteConfig):
    """A suite of search tasks; label 1 of a dataset is a duplicate."""

    scores: ClassVar[Cells] = cells([""], ("mrr@10", "recall@1", "recall@10"))

    max_pairs: int | None = Field(ge=1, description="Read the first N pairs; null: all.")
    index: InvertedIndex | None = Field(
        default=None, description="Inverted index to search; null compares a query with every text."
    )

    def conflicts(self) -> Iterator[Finding]:
        """The pairs that are read cannot have as many texts as the index has lists."""
        if self.index and self.max_pairs and self.max_pairs < self.index.nlist:
            yield Finding(
                "index.nlist",
                f"{self.index.nlist} lists for at most {self.max_pairs} texts",
                f"Set nlist to {self.max_pairs} or less, or raise max_pairs.",
            )

    def written(self, _lists: Mapping[str, Mapping[str, str]]) -> dict[str, Cells]:
        """The quality of each task's hits, and the size of an inverted index."""
        size = cells([""], ["index_bytes"] if self.index else [])
        return dict.fromkeys(self.datasets, self.scores | size)

    def timed(self) -> dict[str, Cells]:
        """The time of a query."""
        return dict.fromkeys(self.datasets, cells([""], ["retrieval_ms"]))


class MtebLists(Settings):
    """Content of config/mteb.yaml."""

    lists: dict[str, dict[str, str]] = Field(
        description="Lists by name; each maps names of tasks in a paper to their names in mteb."
    )
    not_in_this_mteb: dict[str, str] = Field(description="Tasks of papers that the lists lack, and why.")


class Mteb(Suite):
    """One evaluation through mteb."""

    lists: list[Annotated[str, Refers("mteb.lists")]] = Field(
        min_length=1, description="Lists of config/mteb.yaml."
    )
    max_tokens: MaxTokens
    batch_size: int = Field(gt=0, description="Texts per forward pass.")
    metrics: list[str] = Field(
        description="Metrics to keep in addition to main_score, if a task has them, such as map_at_10."
    )
    label: Substitution = None

    @property
    def mteb_lists(self) -> Sequence[str]:
        """Return its lists."""
        return self.lists

    def written(self, lists: Mapping[str, Mapping[str, str]]) -> dict[str, Cells]:
        """Splits and subsets of each task, and means over each list."""
        parts = cells(["*:*"], ("main_score", *self.metrics)) | {("mean", "main_score")}
        tasks = [task for name in self.lists for task in lists[name].values()]
        return dict.fromkeys(tasks, parts) | dict.fromkeys(self.lists, cells(["mean"], self.metrics))


class Cost(Suite):
    """Lengths, batches and repeats."""

    gpu: ClassVar[Literal["never", "here", "always"]] = "never"

    tokens: int = Field(gt=0, description="Tokens per sentence T, for counting and for timing; no padding.")
    batch_sizes: list[int] = Field(min_length=1, description="Batch sizes that are timed.")
    repeats: int = Field(gt=0, description="Timed passes of each encoder per batch size; the median counts.")
    warmup: int = Field(ge=0, description="Passes before the first timed one.")

    def written(self, _lists: Mapping[str, Mapping[str, str]]) -> dict[str, Cells]:
        """One task, of the encoder and of the one that it starts from."""
        counts = cells(("", "base"), ("parameters", "gmac_linear", "gmac_total"))
        return {"cost": counts | {("", "added_parameters_percent")}}

    def timed(self) -> dict[str, Cells]:
        """Batches of each size."""
        own, base = ("latency_ms", "sentences_per_second"), ("base_latency_ms", "latency_ratio")
        sizes = (f"batch:{size}" for size in self.batch_sizes)
        return {"cost": cells(sizes, (*own, *base, "added_latency_percent"))}


class Energy(Settings):
    """The sentences over which E_CLS is averaged."""

    dataset: Texts = Field(description="Dataset of the form sentences or pairs.")
    max_sentences: int = Field(gt=0, description="Use the first N sentences.")
    max_tokens: MaxTokens
    batch_size: int = Field(gt=0, description="Sentences per forward pass; does not change the result.")


class Maps(Settings):
    """The sentences and layers whose attention is drawn."""

    sentences: list[str] = Field(min_length=1, description="Drawn one by one, so nothing is padded.")
    layers: list[int] = Field(min_length=1, description="Counted from 1.")
    max_tokens: MaxTokens


class Attention(Suite):
    """Attention maps and energies of one encoder."""

    gpu: ClassVar[Literal["never", "here", "always"]] = "never"

    energy: Energy
    maps: Maps

    def misfits(self, start: Start) -> Iterator[Finding]:
        """Yield layers that an encoder lacks, too."""
        yield from super().misfits(start)
        for depth in start.depths:
            if outside := [layer for layer in self.maps.layers if not 1 <= layer <= depth]:
                found = f"{outside[0]}; {start.encoder} has layers 1 to {depth}"
                yield Finding("maps.layers", found, f"Name layers up to {depth}.")

    @property
    def tasks(self) -> Mapping[str, str]:
        """One task, whose sentences the energy is averaged over."""
        return {self.energy.dataset: self.energy.dataset}

    def written(self, _lists: Mapping[str, Mapping[str, str]]) -> dict[str, Cells]:
        """The energy of [CLS] in each layer."""
        return {self.energy.dataset: cells(("mean", "layer:*"), ["cls_energy"])}


class Suites(Settings):
    """Suites by kind: a kind is registered here, and nowhere else."""

    attention: dict[Name, Attention] = Field(default={})
    clustering: dict[Name, Clustering] = Field(default={})
    cost: dict[Name, Cost] = Field(default={})
    mteb: dict[Name, Mteb] = Field(default={})
    search: dict[Name, Search] = Field(default={})
    sts: dict[Name, Sts] = Field(default={})
    transfer: dict[Name, Transfer] = Field(default={})

    @property
    def by_kind(self) -> dict[str, dict[str, Suite]]:
        """Kind of suites to the suites by name."""
        return self.parts()

    def repeated(self) -> Iterator[Finding]:
        """Yield names that suites of two kinds have."""
        kinds: dict[str, str] = {}
        for kind, suites in self.by_kind.items():
            for name in suites:
                if name in kinds:
                    found = f"suites.{kinds[name]} has that name too"
                    remedy = "Rename one: tables tell suites apart by name."
                    yield Finding(f"suites.{kind}.{name}", found, remedy)
                kinds[name] = kind


def _class_of(section: FieldInfo) -> type[Suite]:
    """Return the class of the suites in a section: the values of its mapping."""
    suite: type[Suite]
    _, suite = get_args(section.annotation)
    return suite


SUITES = {kind: _class_of(section) for kind, section in Suites.model_fields.items()}
"""Kinds of suites, with their classes."""
EVALUATORS = [kind for kind, suite in SUITES.items() if issubclass(suite, SuiteConfig)]
"""Kinds of suites that score vectors (``evaluation.base``)."""


ON_GPU = (*(kind for kind, suite in SUITES.items() if suite.gpu != "never"), "extraction")
"""Kinds of suites whose jobs may ask for a GPU, and the extraction study."""


def _may_ask_for_gpu(kind: str) -> str:
    if kind not in ON_GPU:
        *others, last = map(repr, ON_GPU)
        raise PydanticCustomError("no_gpu", f"must be {', '.join(others)} or {last}")
    return kind


GpuKind = Annotated[str, AfterValidator(_may_ask_for_gpu), Field(json_schema_extra={"enum": [*ON_GPU]})]


def _known_kind(kind: str) -> str:
    if kind not in SUITES:
        raise PydanticCustomError("unknown_kind", f"Known: {', '.join(SUITES)}.")
    return kind


SuiteKind = Annotated[str, AfterValidator(_known_kind)]
EvaluatedSuites = Annotated[
    dict[SuiteKind, list[Annotated[str, Refers("suites.{}")]]],
    AfterValidator(lambda suites: dict(sorted(suites.items()))),
    Field(description="Suites to evaluate on, by kind."),
]
"""Names of suites by their kind, in the order of kinds."""
