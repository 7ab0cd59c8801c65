"""Methods: every field is a key of a block in config/methods.yaml, a class a module."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from workflow_scripts.errors import Finding, shown
from workflow_scripts.settings.base import Settings, parse
from workflow_scripts.settings.names import FirstN, MaxTokens, Name, Refers, SoftmaxTemperature, Template
from workflow_scripts.settings.overrides import DevelopmentOverrides, Override, TrainingOverrides
from workflow_scripts.settings.readouts import (
    BUILT_AS_BERT,
    AnyReadout,
    Origin,
    Pooling,
    Start,
    layers_outside,
)

StartsFrom = Literal["encoder", "pair", "runs", "run"]
"""One encoder, two runs, any number of runs, or one run."""


class MethodConfig(Settings):
    """Settings of a method: every field is a key of its block in config/methods.yaml.

    ``readout`` (``settings.readouts.AnyReadout``) says how token states become a vector, ``base`` holds the settings
    of a method underneath, ``pool`` and ``words`` ask for the columns ``exemplar`` and ``word``. ``training``,
    ``development`` and ``readings`` of a block belong to its runs: the graph reads them, and no job is passed them.
    """

    columns: ClassVar[tuple[str, ...]] = ()
    """Columns that it reads of the corpus; none for a method that trains nothing."""
    starts_from: ClassVar[StartsFrom] = "encoder"
    has_teacher: ClassVar[bool] = False
    """Whether it learns the vectors of a teacher."""
    reducible: ClassVar[bool] = False
    """Whether 3R can come between the halves of its objective (``methods.contrastive.Objective``)."""

    module: str
    training: TrainingOverrides = Field(
        default={}, exclude=True, description="Overrides of the shared training settings."
    )
    development: DevelopmentOverrides = Field(
        default={}, exclude=True, description="Overrides of how checkpoints are chosen."
    )
    readings: dict[Name, Override] = Field(
        default={}, exclude=True, description="Named changes to this block."
    )

    @property
    def labels(self) -> Sequence[str]:
        """Substitutions and warnings, printed with every number that these settings lead to."""
        return ()

    @property
    def read_columns(self) -> Sequence[str]:
        """Columns of a corpus that these settings read."""
        return self.columns

    @property
    def fitted_on(self) -> str | None:
        """Return the corpus that something is fitted on without training, if anything is."""
        return None

    @property
    def exemplar_pool(self) -> str | None:
        """Return the pool of exemplars that these settings read, if they read any."""
        return None

    @property
    def reads_words(self) -> bool:
        """Return whether the frequent words of the corpus are read."""
        return False

    @property
    def is_prompted(self) -> bool:
        """Whether sentences are put into a prompt, where [MASK] can be read."""
        return False

    @property
    def overrides(self) -> Mapping[str, Any]:
        """Keyword arguments of ``models.encoder.load_backbone``: dropout, entries of the model's configuration."""
        return {}

    @property
    def form(self) -> str:
        """Return the form of the block, for those who refer to it."""
        return "methods without a base"

    def origin_findings(self, origin: Origin) -> Iterator[Finding]:
        """Yield what is wrong with encoder, corpus and teacher of a run of this method."""
        yield from self.encoder_findings(origin)
        if self.read_columns and origin.corpus is None:
            yield Finding("corpus", f"{self.module} trains, and no corpus is named", "Name one.")
        elif origin.corpus is not None and not self.read_columns:
            found = f"{self.module} trains nothing; {origin.corpus} is named"
            yield Finding("corpus", found, "Leave it out, or name another method.")
        elif missing := [column for column in self.read_columns if column not in origin.columns]:
            has = ", ".join(origin.columns)
            found = f"{self.module} reads the column {missing[0]}; {origin.corpus} has {has}"
            yield Finding("corpus", found, "Name another corpus, or another method.")
        if self.has_teacher and not origin.teacher:
            found = f"{self.module} learns the vectors of a teacher, and none is named"
            yield Finding("teacher", found, "Name an encoder with one run.")
        if origin.teacher and not self.has_teacher:
            found = f"{self.module} learns from no teacher; {origin.teacher} is named"
            yield Finding("teacher", found, "Leave it out, or name distil.")

    def encoder_findings(self, origin: Origin) -> Iterator[Finding]:
        """Yield what is wrong with the encoder: most methods start from a single one, which training may continue."""
        if len(origin.members) > 1 or (origin.members and not self.columns):
            found = f"{self.module} starts from one encoder; {origin.encoder} consists of {origin.in_words}"
            yield Finding("encoder", found, "Name another.")

    def misfits(self, start: Start) -> Iterator[Finding]:
        """Yield requirements of these settings that the sizes of the encoder do not meet.

        Paths begin with ``method`` or are ``encoder``.
        """
        return iter(())

    def unchunkable(self) -> Iterator[Finding]:
        """Why ``training.chunk`` would change what these settings make of a batch, a line each."""
        return iter(())


class ReadingMethod(MethodConfig):
    """Settings of a method whose encoder has one readout."""

    readout: AnyReadout

    @property
    def labels(self) -> Sequence[str]:
        """Labels of the readout."""
        return self.readout.labels

    def conflicts(self) -> Iterator[Finding]:
        """Reading [MASK] requires a template; ``as_published`` works only with ``frozen``."""
        setting = self.readout.mask_setting
        if setting and not self.is_prompted:
            yield Finding(
                f"readout.{setting}",
                f"{getattr(self.readout, setting)} reads [MASK], and the method puts no template around "
                "sentences",
                "Use promptbert, a frozen run's template, or other tokens.",
            )
        if self.readout.kind == "as_published" and (self.module != "frozen" or self.is_prompted):
            yield Finding(
                "readout.kind",
                "as_published, which is an encoder as it is, with a prompt of its own",
                "Use it in frozen without a template, or take pooling.",
            )

    def misfits(self, start: Start) -> Iterator[Finding]:
        """Misfits of the readout."""
        return (finding.under("method") for finding in self.readout.misfits(start))


class TrainingMethod(ReadingMethod):
    """Settings of a method that trains an encoder on sentences."""

    columns: ClassVar[tuple[str, ...]] = ("anchor",)

    dropout: float | None = Field(
        ge=0, lt=1, description="Dropout of hidden states and attention; null keeps the model's."
    )

    @property
    def overrides(self) -> Mapping[str, Any]:
        """The encoder's dropout, if it is set."""
        return {"dropout": self.dropout}

    def unchunkable(self) -> Iterator[Finding]:
        """A readout that mixes the sentences of a batch cannot be chunked."""
        if not self.readout.is_independent:
            yield Finding(
                "training.chunk",
                f"the readout {self.readout.kind}, as it is set, sums over a whole batch",
                "Set it to null for this method, or change the readout.",
            )


class Contrastive(TrainingMethod):
    """Settings of a contrastive method of one encoder."""

    reducible: ClassVar[bool] = True

    temperature: SoftmaxTemperature
    head_at_test: bool = Field(description="Whether the MLP head is part of the embedding at test.")


class Whitening(Settings):
    """A linear map, fitted on a text, after which its vectors have mean 0 and covariance 1."""

    text: Annotated[Name, Refers("corpora")] = Field(
        description="Corpus; of triples, all their sentences are read."
    )
    max_sentences: FirstN
    max_tokens: MaxTokens


class Frozen(ReadingMethod):
    """Settings of a frozen run."""

    module: Literal["frozen"]
    template: Template | None = Field(
        default=None, description="Prompt that sentences are put into; left out for none."
    )
    whitening: Whitening | None = Field(default=None, description="Map of its vectors; left out for none.")

    @property
    def is_prompted(self) -> bool:
        """Whether there is a template."""
        return self.template is not None

    @property
    def fitted_on(self) -> str | None:
        """Return the text of the whitening."""
        return self.whitening.text if self.whitening else None

    def conflicts(self) -> Iterator[Finding]:
        """Vectors that a head or a published model gives are not whitened."""
        yield from super().conflicts()
        if self.whitening and (self.readout.kind == "as_published" or self.readout.has_head):
            yield Finding(
                "whitening",
                "it needs a readout without a head",
                "Take pooling, with a pooler other than cls.",
            )


class Repooled(ReadingMethod):
    """Settings of another readout of one run."""

    starts_from: ClassVar[StartsFrom] = "run"

    module: Literal["repooled"]
    keeps_prompt: bool = Field(
        default=True, description="False reads sentences as they are, where the run puts them into a prompt."
    )

    def encoder_findings(self, origin: Origin) -> Iterator[Finding]:
        """Yield a finding unless there is exactly one run."""
        if len(origin.members) != 1:
            found = f"{self.module} pools exactly one run again; {origin.encoder} has {origin.in_words}"
            yield Finding("encoder", found, "Name an encoder with one in `runs`.")


class Ensemble(MethodConfig):
    """Settings of an ensemble."""

    starts_from: ClassVar[StartsFrom] = "runs"

    module: Literal["ensemble"]
    weights: tuple[float, ...] | None = Field(description="Of the runs, in their order; null: 1 each.")

    def encoder_findings(self, origin: Origin) -> Iterator[Finding]:
        """Yield a finding if there are no runs to add up."""
        if not origin.members:
            found = f"{self.module} adds up runs; {origin.encoder} consists of none"
            yield Finding("encoder", found, "Name an encoder with `runs`.")

    def misfits(self, start: Start) -> Iterator[Finding]:
        """There is a weight for each run."""
        if self.weights is not None and start.members is not None and len(self.weights) != start.members:
            yield Finding(
                "method.weights",
                f"{len(self.weights)} weights; {start.encoder} consists of {start.members} runs",
                "Give one each, or null.",
            )


class Distil(TrainingMethod):
    """Settings of distillation."""

    has_teacher: ClassVar[bool] = True

    module: Literal["distil"]
    target: Literal["sum", "mean"] = Field(
        description="The teacher's vector, or that over its encoders' number."
    )


class SimCSE(Contrastive):
    """Settings of unsupervised SimCSE."""

    module: Literal["simcse"]


class SupervisedSimCSE(Contrastive):
    """Settings of supervised SimCSE, and of SimCSE on pairs."""

    columns: ClassVar[tuple[str, ...]] = ("anchor", "positive", "negative")

    module: Literal["supervised_simcse"]
    hard_negatives: bool = Field(description="Whether the corpus's column of negatives is read.")
    hard_negative_weight: float = Field(
        description="Added to the logit of a row's own hard negative: 0 in SimCSE, 1 in LayerAttPooler's code."
    )

    @property
    def read_columns(self) -> Sequence[str]:
        """Negatives are left out where none are hard."""
        return self.columns if self.hard_negatives else self.columns[:2]


class PromptBERT(Contrastive):
    """Settings of PromptBERT, which trains on prompted sentences."""

    is_prompted: ClassVar[bool] = True

    module: Literal["promptbert"]
    templates: tuple[Template, Template] = Field(description="One for each view while training.")
    test_template: Template = Field(
        description="At test; the code ends sentences in a full stop there alone."
    )
    cut: Literal["sentence", "with_specials"] = Field(
        description="What training.max_tokens counts: the sentence's own tokens, or [CLS] and [SEP] too."
    )
    bias_positions: Literal["own", "zero"] = Field(
        description="First position of a bare template: the encoder's own first, or 0."
    )
    chosen_by: Literal["denoised", "test"] = Field(
        description="How checkpoints are scored: as while training, or as at test."
    )

    def conflicts(self) -> Iterator[Finding]:
        """Require as many masks on each side of the sentence in all templates, since they are told by their places."""
        yield from super().conflicts()
        before, after = self.test_template.mask_counts
        for number, template in enumerate(self.templates):
            if template.mask_counts != (before, after):
                found = "{} masks before the sentence and {} after it".format(*template.mask_counts)
                yield Finding(
                    f"templates.{number}",
                    f"{found}; test_template has {before} and {after}",
                    "Write the same in both.",
                )


class DiffCSE(Contrastive):
    """Settings of DiffCSE."""

    reducible: ClassVar[bool] = False

    module: Literal["diffcse"]
    mlm_probability: float = Field(gt=0, lt=1, description="Of the tokens, masked for the generator.")
    masking: Literal["bert", "mask"] = Field(
        description="What chosen tokens become: 80% [MASK], 10% random and 10% unchanged, or all [MASK]."
    )
    filled: Literal["all", "chosen"] = Field(
        description="Tokens that the generator rewrites: all but [CLS], as in the code, or the chosen ones."
    )
    generator_dropout: bool = Field(description="Whether the generator drops out as while training.")
    weight: float = Field(gt=0, description="lambda, of the loss of replaced tokens.")
    projector: Literal["head", "batch_norm"] = Field(
        description="On top of the vector while training: SimCSE's MLP, or two layers with BatchNorm."
    )

    @property
    def labels(self) -> Sequence[str]:
        """The generator's, and the readout's."""
        return [*self.readout.labels, "the base encoder itself stands in for DiffCSE's generator, DistilBERT"]

    def conflicts(self) -> Iterator[Finding]:
        """An embedding has no BatchNorm."""
        yield from super().conflicts()
        if self.projector == "batch_norm" and self.head_at_test:
            yield Finding("projector", "batch_norm is not part of an embedding", "Set head_at_test: false.")

    def unchunkable(self) -> Iterator[Finding]:
        """Its discriminator reads every token again."""
        yield Finding("training.chunk", "diffcse's discriminator reads the batch again", "Leave it out.")


class InforMinCL(Contrastive):
    """Settings of InforMin-CL."""

    module: Literal["informin_cl"]
    reconstruction_weight: float = Field(ge=0, description="w; 0 is SimCSE.")


class Sscl(Contrastive):
    """Settings of SSCL."""

    module: Literal["sscl"]
    negative_layers: tuple[int, ...] = Field(min_length=1, description="Hidden states that are negatives.")

    def conflicts(self) -> Iterator[Finding]:
        """One layer is pooled."""
        yield from super().conflicts()
        if not isinstance(self.readout, Pooling) or len(self.readout.indices) != 1:
            yield Finding(
                "readout", "sscl pools one layer as it pools others", "Give a pooling readout of one layer."
            )

    def misfits(self, start: Start) -> Iterator[Finding]:
        """The encoder has the layers that are negatives."""
        yield from super().misfits(start)
        yield from layers_outside(self.negative_layers, "method.negative_layers", start)


class LLM2Vec(Contrastive):
    """Settings of LLM2Vec."""

    module: Literal["llm2vec"]
    lora_rank: int = Field(gt=0, description="Rank r of the adapters.")
    lora_alpha: int = Field(gt=0, description="Their scale is alpha / r.")
    lora_dropout: float = Field(ge=0, lt=1, description="Of the adapters' inputs.")
    weights: Literal["float32", "bfloat16"] = Field(
        description="Precision of the frozen weights, and of the model that is saved."
    )

    @property
    def overrides(self) -> Mapping[str, Any]:
        """The dropout, and the precision of the frozen weights."""
        return {**super().overrides, "dtype": self.weights}


CrossMode = Literal["parallel", "literal", "feedback"]
Term = Literal["nce", "icnce", "ictm"]


class Jtcse(TrainingMethod):
    """Settings of JTCSE and TNCSE."""

    starts_from: ClassVar[StartsFrom] = "pair"

    module: Literal["jtcse"]
    readout: AnyReadout = Field(description="Of each sub-encoder, at test.")
    temperature: SoftmaxTemperature
    terms: tuple[Term, ...] = Field(min_length=1, description="Terms of Eq. 15 that are added up (Table X).")
    cross_every: int | None = Field(gt=0, description="k: every k-th layer attends across; null: none does.")
    cross_mode: CrossMode = Field(description="Where the cross-attention goes.")
    direction: Literal["random", "forward"] = Field(description="Of ICNCE: by a coin, or always I to II.")
    modulus_weight: float = Field(gt=0, description="Of the modulus term; 0.5 in the code, 1 in Eq. 13.")
    modulus_of: Literal["pooler", "cls"] = Field(description="What the modulus is taken of.")
    bypassed_layernorms: int = Field(ge=0, description="Last layers whose LayerNorms are left out (Fig. 8).")

    def encoder_findings(self, origin: Origin) -> Iterator[Finding]:
        """Yield a finding unless there are two runs that differ."""
        joins = f"{self.module} joins two different runs"
        if len(origin.members) != 2:
            found = f"{joins}; {origin.encoder} consists of {origin.in_words}"
            yield Finding("encoder", found, "Name two in its `runs`.")
        elif origin.alike:
            found = f"{joins}; {' and '.join(origin.members)} differ in nothing that decides a model"
            yield Finding("encoder", found, f"Change one in `runs` of {origin.encoder}.")

    @property
    def reads_pooler(self) -> bool:
        """Whether a modulus is taken of the poolers' output."""
        return "ictm" in self.terms and self.modulus_of == "pooler"

    @property
    def reads_cross_streams(self) -> bool:
        """Whether cross-attention reaches the loss."""
        return "icnce" in self.terms or self.cross_mode == "feedback"

    def misfits(self, start: Start) -> Iterator[Finding]:
        """The two encoders can be joined, and have the layers that are named."""
        yield from super().misfits(start)
        for kind in dict.fromkeys(size.kind for size in start.sizes):
            if kind not in (None, *BUILT_AS_BERT):
                known = ", ".join(BUILT_AS_BERT)
                yield Finding(
                    "encoder",
                    f"jtcse attends across encoders built as BERT ({known}); {start.encoder} has one of {kind}",
                    "Name others.",
                )
        if start.frozen:
            yield Finding(
                "encoder",
                f"jtcse joins trained runs; {start.frozen[0]} trains nothing",
                f"Name another in `runs` of {start.encoder}.",
            )
        if len(sizes := dict.fromkeys((size.layers, size.width) for size in start.sizes)) > 1:
            found = ", ".join(f"{layers} layers of {width}" for layers, width in sizes)
            yield Finding(
                "encoder",
                f"the runs of {start.encoder} have encoders of several sizes: {found}",
                "Name others.",
            )
        for depth in start.depths[:1]:
            if self.cross_every is not None and depth % self.cross_every:
                yield Finding(
                    "method.cross_every",
                    f"{self.cross_every}; the {depth} layers of {start.encoder} are no multiple of it",
                    "Use a divisor, or null.",
                )
            if self.bypassed_layernorms > depth:
                yield Finding(
                    "method.bypassed_layernorms",
                    f"{self.bypassed_layernorms}; {start.encoder} has {depth} layers",
                    f"Set it to {depth} or less.",
                )


class ThresholdConfig(Settings):
    """The threshold c."""

    surrogate: Literal["straight_through", "soft", "frozen"] = Field(description="How c gets a gradient.")
    start: float | None = Field(
        ge=0, description="First value; null draws it from U(0, 1) with the run's seed."
    )
    temperature: float = Field(gt=0, description="T of the surrogate, on the scale of the deviations.")
    travel: float = Field(
        ge=0,
        description="How far c can move in one schedule: the sum of its learning rates; 0 if frozen.",
    )

    def conflicts(self) -> Iterator[Finding]:
        """A frozen threshold does not learn."""
        if (self.surrogate == "frozen") != (self.travel == 0):
            yield Finding(
                "travel",
                f"{self.travel:g} with surrogate {self.surrogate}",
                "A frozen threshold has 0, and no other has.",
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
"""Settings of a method that has no other underneath."""


class Reduction(MethodConfig):
    """Settings of 3R itself, without the method underneath."""

    columns: ClassVar[tuple[str, ...]] = ("anchor", "exemplar", "word")

    module: Literal["three_r"]
    pool: Annotated[str, Refers("exemplars")] | None = Field(
        description="Pool of exemplars; null where none are subtracted."
    )
    k: int = Field(gt=0, description="Exemplars a step; at most as many as the pool has.")
    words: int | None = Field(
        gt=1, description="Most frequent words of the corpus; null where none are read."
    )
    identify: Literal["batch", "both_views", "words_at_start", "words_each_step", "all"]
    subtract: Literal["exemplars", "words", "word_rows", "own"]
    where: Literal["after_head", "before_head"]
    detach: bool = Field(description="Whether the redundant vector is held fixed.")
    threshold: ThresholdConfig

    @property
    def exemplar_pool(self) -> str | None:
        """Return the pool."""
        return self.pool

    @property
    def reads_words(self) -> bool:
        """Whether frequent words are embedded."""
        return self.identify.startswith("words") or self.subtract.startswith("word")

    def conflicts(self) -> Iterator[Finding]:
        """A pool and words are named where they are read."""
        if (self.pool is not None) != (self.subtract == "exemplars"):
            yield Finding(
                "pool",
                f"{self.pool or 'null'} with subtract {self.subtract}",
                "Give a pool where exemplars are subtracted, and null elsewhere.",
            )
        if (self.words is not None) != self.reads_words:
            yield Finding(
                "words",
                f"{shown(self.words)} with identify {self.identify} and subtract {self.subtract}",
                "Give a number where words are embedded, and null elsewhere.",
            )


class ReductionBlock(Reduction):
    """Settings of 3R, as its block has them."""

    base: Annotated[Name, Refers("methods", ("methods without a base",))] = Field(
        description="Block of the method underneath."
    )

    @property
    def form(self) -> str:
        """Return the form of the block."""
        return "methods with a base"


class ThreeR(Reduction):
    """Settings of 3R on a method."""

    base: AnyPlainMethod = Field(
        description="The method underneath; in the configuration, the name of its block."
    )

    @property
    def labels(self) -> Sequence[str]:
        """Labels of the method underneath."""
        return self.base.labels

    @property
    def overrides(self) -> Mapping[str, Any]:
        """Overrides of the method underneath."""
        return self.base.overrides

    @property
    def read_columns(self) -> Sequence[str]:
        """Columns that the method underneath reads."""
        return self.base.read_columns

    def conflicts(self) -> Iterator[Finding]:
        """The method underneath has vectors to reduce."""
        if not self.base.reducible:
            yield Finding(
                "base",
                f"{self.base.module} compares no pairs of vectors that could be reduced",
                "Name a block of a contrastive method, such as simcse.",
            )
        if self.base.is_prompted:
            yield Finding(
                "base",
                f"exemplars and words have no template, and {self.base.module} reads its [MASK]",
                "Name a block without one.",
            )
        yield from super().conflicts()

    def encoder_findings(self, origin: Origin) -> Iterator[Finding]:
        """Yield what the method underneath finds wrong."""
        return self.base.encoder_findings(origin)

    def misfits(self, start: Start) -> Iterator[Finding]:
        """Misfits of the method underneath, and of a pool with fewer exemplars than a step takes."""
        yield from map(_of_base, self.base.misfits(start))
        if start.pool_sentences is not None and self.k > start.pool_sentences:
            yield Finding(
                "method.k",
                f"{self.k} exemplars a step; pool {self.pool} has {start.pool_sentences}",
                f"Set it to {start.pool_sentences} or less.",
            )

    def unchunkable(self) -> Iterator[Finding]:
        """Reason of the method underneath."""
        return map(_of_base, self.base.unchunkable())


def _of_base(finding: Finding) -> Finding:
    """Return a finding about a method as one about the method underneath another."""
    return finding._replace(path=finding.path.replace("method.", "method.base.", 1))


AnyMethod = Annotated[PlainMethod | ThreeR, Field(discriminator="module")]
"""Settings of any method."""
MethodBlock = Annotated[PlainMethod | ReductionBlock, Field(discriminator="module")]
"""A block of config/methods.yaml."""


def read_method(section: Mapping[str, Any], place: str) -> AnyMethod:
    """Settings of a method, those of the one underneath among them, found at ``place``.

    Raises:
        ConfigError: naming the first key that is wrong and what is wrong with it.
    """
    read: AnyMethod = parse(AnyMethod, section, place)
    return read
