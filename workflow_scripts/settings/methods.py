"""Settings of methods, a class for each module; every field is a key of a block in config/methods.yaml."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from workflow_scripts.errors import ErrorDetails, shown
from workflow_scripts.settings.base import Settings, parse
from workflow_scripts.settings.names import FirstN, MaxTokens, Name, Refers, SoftmaxTemperature, Template
from workflow_scripts.settings.overrides import DevelopmentOverrides, Override, TrainingOverrides
from workflow_scripts.settings.readouts import (
    BUILT_AS_BERT,
    AnyReadout,
    Pooling,
    RunOrigin,
    StartingPoint,
    layers_outside,
)

StartsFrom = Literal["encoder", "pair", "runs", "run"]
"""One encoder, two runs, any number of runs, or one run."""


class MethodConfig(Settings):
    """Settings of a method: every field is a key of its block in config/methods.yaml.

    ``readout`` (``settings.readouts.AnyReadout``) turns token states into a vector, ``base`` contains the settings of a
    wrapped method, ``pool`` and ``words`` request the columns ``exemplar`` and ``word``. ``training``, ``development``
    and ``readings`` of a block belong to its runs: only the graph reads them, and no job receives them.
    """

    columns: ClassVar[tuple[str, ...]] = ()
    """Columns of the corpus that the method reads; empty for a method without training."""
    starts_from: ClassVar[StartsFrom] = "encoder"
    has_teacher: ClassVar[bool] = False
    """Whether the method learns to predict a teacher's vectors."""
    reducible: ClassVar[bool] = False
    """Whether 3R can be applied between the two halves of its objective (``methods.contrastive.Objective``)."""

    module: str
    training: TrainingOverrides = Field(
        default={}, exclude=True, description="Overrides of the shared training settings."
    )
    development: DevelopmentOverrides = Field(
        default={}, exclude=True, description="Overrides of the shared settings of checkpoint selection."
    )
    readings: dict[Name, Override] = Field(
        default={}, exclude=True, description="Named overrides of this block, such as paper and code."
    )

    @property
    def labels(self) -> Sequence[str]:
        """Return substitutions and caveats, which are printed with every number of these settings."""
        return ()

    @property
    def read_columns(self) -> Sequence[str]:
        """Return the columns of a corpus that these settings read."""
        return self.columns

    @property
    def fitted_on(self) -> str | None:
        """Return the corpus on which something is fitted without training; None if nothing is."""
        return None

    @property
    def exemplar_pool(self) -> str | None:
        """Return the pool of exemplars that these settings read; None if they read none."""
        return None

    @property
    def reads_words(self) -> bool:
        """Return whether the frequent words of the corpus are read."""
        return False

    @property
    def is_prompted(self) -> bool:
        """Return whether sentences are put into a prompt, whose [MASK] can be read."""
        return False

    @property
    def overrides(self) -> Mapping[str, Any]:
        """Return keyword arguments of ``models.encoder.load_backbone``: dropout, entries of the model's config.json."""
        return {}

    @property
    def form(self) -> str:
        """Return the form of the block, for those who refer to it."""
        return "methods without a base"

    def origin_errors(self, origin: RunOrigin) -> Iterator[ErrorDetails]:
        """Yield an error unless encoder, corpus and teacher of a run are those that this method needs."""
        yield from self.encoder_errors(origin)
        if self.read_columns and origin.corpus is None:
            yield ErrorDetails("corpus", f"missing, but {self.module} trains on a corpus", "Add `corpus`.")
        elif origin.corpus is not None and not self.read_columns:
            problem = f"{origin.corpus}, but {self.module} trains nothing"
            yield ErrorDetails("corpus", problem, "Remove `corpus`, or choose another method.")
        elif missing := [column for column in self.read_columns if column not in origin.columns]:
            has = ", ".join(origin.columns)
            problem = f"{self.module} reads the column {missing[0]}, but {origin.corpus} has only {has}"
            yield ErrorDetails(
                "corpus", problem, f"Choose a corpus with the column {missing[0]}, or another method."
            )
        if self.has_teacher and not origin.teacher:
            problem = f"missing, but {self.module} learns the vectors of a teacher"
            yield ErrorDetails("teacher", problem, "Set it to an encoder with one run in `runs`.")
        if origin.teacher and not self.has_teacher:
            problem = f"{origin.teacher}, but {self.module} has no teacher"
            yield ErrorDetails("teacher", problem, "Remove `teacher`, or set method to distil.")

    def encoder_errors(self, origin: RunOrigin) -> Iterator[ErrorDetails]:
        """Yield an error unless the encoder suits: most methods need a single one, or one run to train further."""
        if len(origin.members) > 1 or (origin.members and not self.columns):
            problem = f"{self.module} starts from one encoder; {origin.encoder} consists of {origin.in_words}"
            yield ErrorDetails("encoder", problem, "Choose an encoder without `runs`.")

    def size_errors(self, start: StartingPoint) -> Iterator[ErrorDetails]:
        """Yield an error for each setting that does not fit the sizes of the encoder.

        Paths begin with ``method``, or are ``encoder``.
        """
        return iter(())

    def chunk_errors(self) -> Iterator[ErrorDetails]:
        """Yield an error for each reason why ``training.chunk`` would change this method's result."""
        return iter(())


class ReadingMethod(MethodConfig):
    """Settings of a method whose encoder has one readout."""

    readout: AnyReadout

    @property
    def labels(self) -> Sequence[str]:
        """Return the labels of the readout."""
        return self.readout.labels

    def value_errors(self) -> Iterator[ErrorDetails]:
        """Require a template to read [MASK], and ``frozen`` without one for ``as_published``."""
        setting = self.readout.mask_setting
        if setting and not self.is_prompted:
            yield ErrorDetails(
                f"readout.{setting}",
                f"{getattr(self.readout, setting)} reads [MASK], but the method puts sentences into no "
                "template",
                "Use promptbert, add a template to a frozen run, or choose other tokens.",
            )
        if self.readout.kind == "as_published" and (self.module != "frozen" or self.is_prompted):
            yield ErrorDetails(
                "readout.kind",
                "as_published, which is a whole published encoder with its own prompt",
                "Use it with frozen and without a template, or set it to pooling.",
            )

    def size_errors(self, start: StartingPoint) -> Iterator[ErrorDetails]:
        """Return the errors of the readout."""
        return (error.under("method") for error in self.readout.size_errors(start))


class TrainingMethod(ReadingMethod):
    """Settings of a method that trains an encoder on sentences."""

    columns: ClassVar[tuple[str, ...]] = ("anchor",)

    dropout: float | None = Field(
        ge=0, lt=1, description="Dropout of hidden states and attention; null keeps the model's."
    )

    @property
    def overrides(self) -> Mapping[str, Any]:
        """Return the encoder's dropout; None keeps the model's."""
        return {"dropout": self.dropout}

    def chunk_errors(self) -> Iterator[ErrorDetails]:
        """Yield an error if the readout mixes the sentences of a batch."""
        if not self.readout.is_independent:
            yield ErrorDetails(
                "training.chunk",
                f"the readout {self.readout.kind} sums over a whole batch with these settings",
                "Set it to null for this method, or change the readout.",
            )


class Contrastive(TrainingMethod):
    """Settings of a contrastive method of one encoder."""

    reducible: ClassVar[bool] = True

    temperature: SoftmaxTemperature
    head_at_test: bool = Field(description="Whether the MLP head is kept at test time.")


class Whitening(Settings):
    """A linear map, fitted on a text, that gives its vectors mean 0 and identity covariance."""

    corpus: Annotated[Name, Refers("corpora")] = Field(
        description="Corpus on which the map is fitted; all sentences of triples are read."
    )
    max_sentences: FirstN
    max_tokens: MaxTokens


class Frozen(ReadingMethod):
    """Settings of a frozen run."""

    module: Literal["frozen"]
    template: Template | None = Field(
        default=None, description="Prompt into which sentences are put; omit for none."
    )
    whitening: Whitening | None = Field(default=None, description="Whitening of the vectors; omit for none.")

    @property
    def is_prompted(self) -> bool:
        """Return whether there is a template."""
        return self.template is not None

    @property
    def fitted_on(self) -> str | None:
        """Return the corpus on which the whitening is fitted; None without whitening."""
        return self.whitening.corpus if self.whitening else None

    def value_errors(self) -> Iterator[ErrorDetails]:
        """Yield an error if vectors of a head or of a published model are to be whitened."""
        yield from super().value_errors()
        if self.whitening and (self.readout.kind == "as_published" or self.readout.has_head):
            yield ErrorDetails(
                "whitening",
                "it needs a readout without a head",
                "Set readout.kind to pooling, with a pooler other than cls.",
            )


class Repooled(ReadingMethod):
    """Settings of a trained run with another readout."""

    starts_from: ClassVar[StartsFrom] = "run"

    module: Literal["repooled"]
    keep_prompt: bool = Field(
        default=True, description="Whether sentences are put into the run's prompt, if it has one."
    )

    def encoder_errors(self, origin: RunOrigin) -> Iterator[ErrorDetails]:
        """Yield an error unless the encoder consists of exactly one run."""
        if len(origin.members) != 1:
            problem = f"{self.module} needs exactly one run; {origin.encoder} has {origin.in_words}"
            yield ErrorDetails("encoder", problem, "Choose an encoder with one run in `runs`.")


class Ensemble(MethodConfig):
    """Settings of an ensemble, which adds up the vectors of runs."""

    starts_from: ClassVar[StartsFrom] = "runs"

    module: Literal["ensemble"]
    weights: tuple[float, ...] | None = Field(
        description="Weights of the member runs, in their order; null: 1 each."
    )

    def encoder_errors(self, origin: RunOrigin) -> Iterator[ErrorDetails]:
        """Yield an error if the encoder consists of no runs."""
        if not origin.members:
            problem = f"{self.module} adds up runs, but {origin.encoder} has none"
            yield ErrorDetails("encoder", problem, "Choose an encoder with `runs`.")

    def size_errors(self, start: StartingPoint) -> Iterator[ErrorDetails]:
        """Yield an error unless there is one weight for each run."""
        if self.weights is not None and start.members is not None and len(self.weights) != start.members:
            yield ErrorDetails(
                "method.weights",
                f"{len(self.weights)} weights; {start.encoder} consists of {start.members} runs",
                f"Write {start.members} weights, or null for 1 each.",
            )


class Distil(TrainingMethod):
    """Settings of distillation from a teacher."""

    has_teacher: ClassVar[bool] = True

    module: Literal["distil"]
    target: Literal["sum", "mean"] = Field(
        description="Vector to predict: sum is the teacher's vector; mean divides it by the number of its "
        "encoders."
    )


class SimCSE(Contrastive):
    """Settings of unsupervised SimCSE."""

    module: Literal["simcse"]


class SupervisedSimCSE(Contrastive):
    """Settings of supervised SimCSE, and of SimCSE on pairs."""

    columns: ClassVar[tuple[str, ...]] = ("anchor", "positive", "negative")

    module: Literal["supervised_simcse"]
    hard_negatives: bool = Field(description="Whether the corpus's column `negative` is read.")
    hard_negative_weight: float = Field(
        description="Constant added to the logit of a row's own hard negative: 0 in SimCSE, 1 in "
        "LayerAttPooler's code."
    )

    @property
    def read_columns(self) -> Sequence[str]:
        """Return the columns, without ``negative`` if no hard negatives are read."""
        return self.columns if self.hard_negatives else self.columns[:2]


class PromptBERT(Contrastive):
    """Settings of PromptBERT, which trains on prompted sentences."""

    is_prompted: ClassVar[bool] = True

    module: Literal["promptbert"]
    templates: tuple[Template, Template] = Field(description="Templates of the two views in training.")
    test_template: Template = Field(
        description="Template at test time; only there, the code adds a full stop to sentences."
    )
    truncate: Literal["sentence", "with_specials"] = Field(
        description="Tokens that training.max_tokens counts: the sentence's own, or [CLS] and [SEP] too."
    )
    bias_positions: Literal["own", "zero"] = Field(
        description="First position of a template without its sentence: the encoder's first position, or 0."
    )
    select_checkpoint_with: Literal["denoised", "test"] = Field(
        description="Vectors by which checkpoints are scored: denoised as in training, or as at test time."
    )

    def value_errors(self) -> Iterator[ErrorDetails]:
        """Require the same numbers of masks before and after the sentence in all templates: places identify masks."""
        yield from super().value_errors()
        before, after = self.test_template.mask_counts
        for number, template in enumerate(self.templates):
            if template.mask_counts != (before, after):
                masks = "{} masks before the sentence and {} after it".format(*template.mask_counts)
                yield ErrorDetails(
                    f"templates.{number}",
                    f"{masks}; test_template has {before} and {after}",
                    f"Write {before} before and {after} after it.",
                )


class DiffCSE(Contrastive):
    """Settings of DiffCSE."""

    reducible: ClassVar[bool] = False

    module: Literal["diffcse"]
    mlm_probability: float = Field(
        gt=0, lt=1, description="Fraction of the tokens that is masked for the generator."
    )
    masking: Literal["bert", "mask"] = Field(
        description="Replacement of chosen tokens: bert: 80% [MASK], 10% random, 10% unchanged; mask: all [MASK]."
    )
    filled: Literal["all", "chosen"] = Field(
        description="Tokens that the generator replaces: all but [CLS], as in the code, or only the chosen ones."
    )
    generator_dropout: bool = Field(description="Whether dropout is active in the generator.")
    weight: float = Field(gt=0, description="Weight lambda of the replaced-token loss.")
    projector: Literal["head", "batch_norm"] = Field(
        description="Projector on top of the vector in training: SimCSE's MLP, or two layers with BatchNorm."
    )

    @property
    def labels(self) -> Sequence[str]:
        """Return the labels of the readout and of the generator."""
        return [*self.readout.labels, "the base encoder itself stands in for DiffCSE's generator, DistilBERT"]

    def value_errors(self) -> Iterator[ErrorDetails]:
        """Yield an error if the BatchNorm projector is to be kept at test time."""
        yield from super().value_errors()
        if self.projector == "batch_norm" and self.head_at_test:
            yield ErrorDetails(
                "projector",
                "batch_norm, which cannot be part of an embedding",
                "Set head_at_test to false, or this to head.",
            )

    def chunk_errors(self) -> Iterator[ErrorDetails]:
        """Yield an error: the discriminator reads every token of the batch again."""
        yield ErrorDetails(
            "training.chunk",
            "diffcse's discriminator reads the batch again",
            "Set it to null for this method.",
        )


class InforMinCL(Contrastive):
    """Settings of InforMin-CL."""

    module: Literal["informin_cl"]
    reconstruction_weight: float = Field(
        ge=0, description="Weight w of the reconstruction loss; 0 is SimCSE."
    )


class Sscl(Contrastive):
    """Settings of SSCL."""

    module: Literal["sscl"]
    negative_layers: tuple[int, ...] = Field(
        min_length=1, description="Hidden states (0 is the embedding output) whose vectors are negatives."
    )

    def value_errors(self) -> Iterator[ErrorDetails]:
        """Require a pooling readout of a single layer."""
        yield from super().value_errors()
        if not isinstance(self.readout, Pooling) or len(self.readout.indices) != 1:
            yield ErrorDetails(
                "readout",
                "sscl needs a pooling readout of a single layer",
                "Set kind to pooling, with one layer in `layers`.",
            )

    def size_errors(self, start: StartingPoint) -> Iterator[ErrorDetails]:
        """Yield an error if the encoder lacks a negative layer, too."""
        yield from super().size_errors(start)
        yield from layers_outside(self.negative_layers, "method.negative_layers", start)


class LLM2Vec(Contrastive):
    """Settings of LLM2Vec."""

    module: Literal["llm2vec"]
    lora_rank: int = Field(gt=0, description="Rank r of the adapters.")
    lora_alpha: int = Field(gt=0, description="Scale alpha; the adapters' output is multiplied by alpha / r.")
    lora_dropout: float = Field(ge=0, lt=1, description="Dropout of the adapters' inputs.")
    weights: Literal["float32", "bfloat16"] = Field(
        description="Precision of the frozen weights and of the saved model."
    )

    @property
    def overrides(self) -> Mapping[str, Any]:
        """Return the dropout and the precision of the frozen weights."""
        return {**super().overrides, "dtype": self.weights}


CrossMode = Literal["parallel", "literal", "feedback"]
Term = Literal["nce", "icnce", "ictm"]


class Jtcse(TrainingMethod):
    """Settings of JTCSE and TNCSE."""

    starts_from: ClassVar[StartsFrom] = "pair"

    module: Literal["jtcse"]
    readout: AnyReadout = Field(description="Readout of each sub-encoder at test time.")
    temperature: SoftmaxTemperature
    terms: tuple[Term, ...] = Field(min_length=1, description="Terms of Eq. 15 that are added up (Table X).")
    cross_every: int | None = Field(
        gt=0, description="Every k-th layer attends across, for this k; null: none does."
    )
    cross_mode: CrossMode = Field(description="Use of the cross-attention's output (methods/jtcse.py).")
    direction: Literal["random", "forward"] = Field(
        description="Direction of ICNCE: drawn for each step, or always I to II."
    )
    modulus_weight: float = Field(
        gt=0, description="Weight of the modulus term; 0.5 in the code, 1 in Eq. 13."
    )
    modulus_of: Literal["pooler", "cls"] = Field(description="Vectors whose modulus is taken.")
    bypassed_layernorms: int = Field(
        ge=0, description="Number of last layers whose LayerNorms are bypassed (Fig. 8)."
    )

    def encoder_errors(self, origin: RunOrigin) -> Iterator[ErrorDetails]:
        """Yield an error unless the encoder consists of two different runs."""
        joins = f"{self.module} joins two different runs"
        if len(origin.members) != 2:
            problem = f"{joins}; {origin.encoder} consists of {origin.in_words}"
            yield ErrorDetails("encoder", problem, "Choose an encoder with two runs in `runs`.")
        elif origin.alike:
            problem = f"{joins}; {' and '.join(origin.members)} have the same settings"
            yield ErrorDetails("encoder", problem, f"Change one in `runs` of {origin.encoder}.")

    @property
    def reads_pooler(self) -> bool:
        """Return whether the modulus is taken of the poolers' output."""
        return "ictm" in self.terms and self.modulus_of == "pooler"

    @property
    def reads_cross_streams(self) -> bool:
        """Return whether cross-attention reaches the loss."""
        return "icnce" in self.terms or self.cross_mode == "feedback"

    def size_errors(self, start: StartingPoint) -> Iterator[ErrorDetails]:
        """Yield an error unless the two encoders can be joined and have the configured layers."""
        yield from super().size_errors(start)
        for kind in dict.fromkeys(size.kind for size in start.sizes):
            if kind not in (None, *BUILT_AS_BERT):
                known = ", ".join(BUILT_AS_BERT)
                yield ErrorDetails(
                    "encoder",
                    f"jtcse attends across encoders built as BERT ({known}); {start.encoder} has one of "
                    f"type {kind}",
                    "Choose runs on such encoders.",
                )
        if start.frozen:
            yield ErrorDetails(
                "encoder",
                f"jtcse joins trained runs; {start.frozen[0]} trains nothing",
                f"Replace it in `runs` of {start.encoder}.",
            )
        if len(sizes := dict.fromkeys((size.layers, size.width) for size in start.sizes)) > 1:
            shapes = ", ".join(f"{layers} layers of {width}" for layers, width in sizes)
            yield ErrorDetails(
                "encoder",
                f"the runs of {start.encoder} have encoders of several sizes: {shapes}",
                "Choose runs on encoders of one size.",
            )
        if start.depths:
            depth = start.depths[0]
            if self.cross_every is not None and depth % self.cross_every:
                yield ErrorDetails(
                    "method.cross_every",
                    f"{self.cross_every}; the number of layers of {start.encoder}, {depth}, is no "
                    "multiple of it",
                    f"Set it to a divisor of {depth}, or null.",
                )
            if self.bypassed_layernorms > depth:
                yield ErrorDetails(
                    "method.bypassed_layernorms",
                    f"{self.bypassed_layernorms}; {start.encoder} has {depth} layers",
                    f"Set it to {depth} or less.",
                )


class ThresholdConfig(Settings):
    """Settings of 3R's threshold c."""

    surrogate: Literal["straight_through", "soft", "frozen"] = Field(
        description="Surrogate through which c gets a gradient; frozen: c is not trained."
    )
    start: float | None = Field(
        ge=0, description="Initial value of c; null draws it from U(0, 1) with the run's seed."
    )
    temperature: float = Field(gt=0, description="T of the surrogate, on the scale of the deviations.")
    lr_budget: float = Field(
        ge=0,
        description="Maximum change of c in one schedule, the sum of its learning rates; 0 if frozen.",
    )

    def value_errors(self) -> Iterator[ErrorDetails]:
        """Require a positive ``lr_budget`` unless the threshold is frozen, and 0 if it is."""
        if (self.surrogate == "frozen") != (self.lr_budget == 0):
            yield ErrorDetails(
                "lr_budget",
                f"{self.lr_budget:g} with surrogate {self.surrogate}",
                "Set it to 0." if self.surrogate == "frozen" else "Set it above 0.",
            )


PlainMethod = (
    Frozen
    | Repooled
    | Ensemble
    | Distil
    | SimCSE
    | SupervisedSimCSE
    | PromptBERT
    | DiffCSE
    | InforMinCL
    | Sscl
    | LLM2Vec
    | Jtcse
)
AnyPlainMethod = Annotated[PlainMethod, Field(discriminator="module")]
"""Settings of a method that wraps no other."""


class Reduction(MethodConfig):
    """Settings of 3R itself, without the wrapped method."""

    columns: ClassVar[tuple[str, ...]] = ("anchor", "exemplar", "word")

    module: Literal["three_r"]
    pool: Annotated[str, Refers("exemplars")] | None = Field(
        description="Pool of exemplars; null if none are subtracted."
    )
    k: int = Field(gt=0, description="Number of exemplars per step; at most the number in the pool.")
    words: int | None = Field(
        gt=1, description="Number of most frequent words of the corpus to read; null if none are read."
    )
    identify: Literal["batch", "both_views", "words_at_start", "words_each_step", "all"]
    subtract: Literal["exemplars", "words", "word_rows", "own"]
    position: Literal["after_head", "before_head"]
    detach: bool = Field(description="Whether no gradient flows through the redundant vector.")
    threshold: ThresholdConfig

    @property
    def exemplar_pool(self) -> str | None:
        """Return the pool of exemplars; None if none are subtracted."""
        return self.pool

    @property
    def reads_words(self) -> bool:
        """Return whether frequent words are embedded."""
        return self.identify.startswith("words") or self.subtract.startswith("word")

    def value_errors(self) -> Iterator[ErrorDetails]:
        """Require ``pool`` and ``words`` if they are read, and null if they are not."""
        if (self.pool is not None) != (self.subtract == "exemplars"):
            yield ErrorDetails(
                "pool",
                f"{self.pool or 'null'} with subtract {self.subtract}",
                "Set it to null." if self.pool else "Set it to a block of `exemplars`.",
            )
        if (self.words is not None) != self.reads_words:
            yield ErrorDetails(
                "words",
                f"{shown(self.words)} with identify {self.identify} and subtract {self.subtract}",
                "Set it to null." if self.words else "Set it to a number of words, such as 1000.",
            )


class ReductionBlock(Reduction):
    """Settings of 3R in a block of the configuration."""

    base: Annotated[Name, Refers("methods", ("methods without a base",))] = Field(
        description="Block of the wrapped method."
    )

    @property
    def form(self) -> str:
        """Return the form of the block, for references to it."""
        return "methods with a base"


class ThreeR(Reduction):
    """Settings of 3R and of the method that it wraps."""

    base: AnyPlainMethod = Field(
        description="The wrapped method; in the configuration, the name of its block."
    )

    @property
    def labels(self) -> Sequence[str]:
        """Return the labels of the wrapped method."""
        return self.base.labels

    @property
    def overrides(self) -> Mapping[str, Any]:
        """Return the overrides of the wrapped method."""
        return self.base.overrides

    @property
    def read_columns(self) -> Sequence[str]:
        """Return the columns that the wrapped method reads."""
        return self.base.read_columns

    def value_errors(self) -> Iterator[ErrorDetails]:
        """Require a contrastive method without a template as the wrapped one."""
        if not self.base.reducible:
            yield ErrorDetails(
                "base",
                f"{self.base.module} compares no pairs of vectors that could be reduced",
                "Set it to a contrastive method, such as simcse.",
            )
        if self.base.is_prompted:
            yield ErrorDetails(
                "base",
                f"exemplars and words have no template, whose [MASK] {self.base.module} reads",
                "Set it to a method without a template, such as simcse.",
            )
        yield from super().value_errors()

    def encoder_errors(self, origin: RunOrigin) -> Iterator[ErrorDetails]:
        """Return the errors of the wrapped method on its encoder."""
        return self.base.encoder_errors(origin)

    def size_errors(self, start: StartingPoint) -> Iterator[ErrorDetails]:
        """Yield the errors of the wrapped method, and one if the pool has fewer exemplars than a step needs."""
        yield from map(_of_base, self.base.size_errors(start))
        if start.pool_sentences is not None and self.k > start.pool_sentences:
            yield ErrorDetails(
                "method.k",
                f"{self.k} exemplars a step; pool {self.pool} has {start.pool_sentences}",
                f"Set it to {start.pool_sentences} or less.",
            )

    def chunk_errors(self) -> Iterator[ErrorDetails]:
        """Return the wrapped method's reasons against chunks."""
        return map(_of_base, self.base.chunk_errors())


def _of_base(error: ErrorDetails) -> ErrorDetails:
    """Return an error about a method as one about a wrapped method."""
    return error._replace(path=error.path.replace("method.", "method.base.", 1))


AnyMethod = Annotated[PlainMethod | ThreeR, Field(discriminator="module")]
"""Settings of any method."""
MethodBlock = Annotated[PlainMethod | ReductionBlock, Field(discriminator="module")]
"""A block of config/methods.yaml."""


def read_method(section: Mapping[str, Any], path: str) -> AnyMethod:
    """Return the settings of a method, and of the one that it wraps, read from ``section``, found at ``path``.

    Raises:
        ConfigError: with the first wrong key and its error.
    """
    read: AnyMethod = parse(AnyMethod, section, path)
    return read
