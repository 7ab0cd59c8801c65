"""Rules that join several settings of a run, or its settings and what it starts from.

Each takes a run as the graph knows it and yields findings that begin with the dotted setting. What one setting may
be is in the schemas. The classes beside the code check the same rules where they can, so that a script that is
started by hand is no less safe; a test holds both against each other.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from workflow_scripts.graph.sizes import BUILT_AS_BERT, Size

Settings = Mapping[str, Any]


class Needs(NamedTuple):
    """What a method module asks of a run."""

    columns: tuple[str, ...] = ()
    """Of the corpus; none for a method that trains nothing."""
    starts_from: str = "encoder"
    """``encoder``: one; ``pair``: two runs; ``runs``: any number; ``run``: one."""
    reducible: bool = False
    """Whether 3R can come between its halves."""
    has_template: bool = False
    """Whether the encoder it makes wraps sentences in a template, where [MASK] can be read."""


ANCHORS = ("anchor",)
NEEDS = {
    "simcse": Needs(ANCHORS, reducible=True),
    "informin_cl": Needs(ANCHORS, reducible=True),
    "sscl": Needs(ANCHORS, reducible=True),
    "llm2vec": Needs(ANCHORS, reducible=True),
    "promptbert": Needs(ANCHORS, reducible=True, has_template=True),
    "simcse_pairs": Needs(("anchor", "positive"), reducible=True),
    "supervised_simcse": Needs(("anchor", "positive", "negative"), reducible=True),
    "diffcse": Needs(ANCHORS),
    "distil": Needs(ANCHORS),
    "jtcse": Needs(ANCHORS, starts_from="pair"),
    "frozen": Needs(),
    "ensemble": Needs(starts_from="runs"),
    "repooled": Needs(starts_from="run"),
}
"""By module; 3R asks for what the method underneath asks for."""


class Start(NamedTuple):
    """What a run starts from, as far as the configuration says."""

    encoder: str
    members: Sequence[str] | None
    """Runs that the encoder consists of; None for one that is fetched or adapted."""
    sizes: Sequence[Size | None]
    """Of the encoder, or of each member's; None where it is not known yet."""
    corpus: str | None
    columns: Sequence[str]
    """Of the corpus."""
    teacher: str | None
    teacher_sizes: Sequence[Size | None]
    pool_sentences: int | None
    """Of the pool of exemplars that the method names, if it is defined."""
    alike: Sequence[str] = ()
    """Two members that are trained as one model, if there are such."""
    frozen: Sequence[str] = ()
    """Members that are not trained."""

    @property
    def depths(self) -> list[int]:
        """Distinct known depths."""
        return sorted({size.layers for size in self.sizes if size})

    @property
    def widths(self) -> list[int]:
        """Distinct known widths."""
        return sorted({size.width for size in self.sizes if size})


def training_rules(training: Settings, corpus: str = "", rows: int | None = None) -> Iterator[str]:
    """Settings of the training that exclude each other, or that its corpus is too small for.

    Args:
        training: After merging.
        corpus: What it trains on.
        rows: That the corpus has at most; None where nobody can say.
    """
    yield from _length(training, corpus, rows)
    if training["batch_size"] % training["gpus"]:
        found = f"{training['batch_size']} sentences for {training['gpus']} GPUs"
        yield f"training.batch_size: {found}. Make it a multiple."
    if training["together"] > 1 and training["gpus"] > 1:
        found = f"{training['together']} seeds side by side on one card, with {training['gpus']} GPUs each"
        yield f"training.together: {found}. Set it or training.gpus to 1."


def _length(training: Settings, corpus: str, rows: int | None) -> Iterator[str]:
    epochs, steps, batch = (training[key] for key in ("epochs", "max_steps", "batch_size"))
    if (epochs is None) == (steps is None):
        yield (
            f"training.epochs: {epochs} with training.max_steps {steps}, after merging. "
            "Give one of them, and null for the other."
        )
    elif rows is not None and batch > rows:
        yield f"training.batch_size: {batch}; {corpus} has {rows} rows at most. Lower it, or take more text."
    else:
        most = training.get("restart_every") or steps or (rows and epochs * (rows // batch))
        if most and training["warmup_steps"] > most:
            yield f"training.warmup_steps: {training['warmup_steps']} of {most} steps. Lower it."


def adapting_rules(adapt: Settings, training: Settings, rows: int | None = None) -> Iterator[str]:
    """Settings of an adapted encoder, and of its training after merging, that exclude each other.

    Args:
        adapt: The encoder's block.
        training: After merging.
        rows: That its corpus has at most; None where nobody can say.
    """
    yield from _length(training, adapt["corpus"], rows)
    if training["gpus"] != 1:
        yield f"training.gpus: {training['gpus']}; processes choose different numbers of tokens. Set it to 1."
    sizes = adapt.get("afresh")
    if sizes and sizes["width"] % sizes["heads"]:
        found = f"{sizes['width']} is no multiple of the {sizes['heads']} heads"
        yield f"afresh.width: {found}. Make it one."


def run_rules(method: Settings, start: Start) -> Iterator[str]:
    """Everything that a method and what it starts from must agree on."""
    inner = method.get("base", method)
    needs = NEEDS.get(inner["module"])
    if needs is None:  # a method that no list here knows yet; its own classes check it
        return
    yield from _origin(method, inner, needs, start)
    if method["module"] == "three_r":
        yield from _three_r(method, needs, start)
    place = "method.base" if inner is not method else "method"
    for finding in _inner(inner, needs, start):
        yield finding.replace("method.", f"{place}.", 1) if finding.startswith("method.") else finding


def _inner(method: Settings, needs: Needs, start: Start) -> Iterator[str]:
    """Rules of one module, whether another one is around it or not."""
    yield from OF_METHOD.get(method["module"], _nothing)(method, start)
    if needs.columns and method["module"] not in ("jtcse", "distil"):
        yield from _dropout(method, start)
    if readout := method.get("readout"):
        prompted = needs.has_template or bool(method.get("template"))
        yield from _readout(readout, needs._replace(has_template=prompted), start)


def _origin(method: Settings, inner: Settings, needs: Needs, start: Start) -> Iterator[str]:
    """Encoder, corpus and teacher against what the method starts from."""
    module = method["module"]
    members = start.members
    count = "no runs" if members is None else f"{len(members)} run{'s' if len(members) != 1 else ''}"
    if needs.starts_from == "pair" and (members is None or len(members) != 2):
        yield (
            f"encoder: {module} joins two different runs; {start.encoder} consists of {count}. "
            "Name two in its `runs`."
        )
    elif needs.starts_from == "pair" and start.alike:
        found = f"{' and '.join(start.alike)} differ in nothing that decides a model"
        yield f"encoder: {module} joins two different runs; {found}. Change one in `runs` of {start.encoder}."
    if needs.starts_from == "runs" and members is None:
        yield f"encoder: {module} adds up runs; {start.encoder} consists of none. Name an encoder with `runs`."
    if needs.starts_from == "run" and (members is None or len(members) != 1):
        yield (
            f"encoder: {module} reads one run anew; {start.encoder} consists of {count}. "
            "Name an encoder with one in `runs`."
        )
    if needs.starts_from == "encoder" and members is not None and (len(members) != 1 or not needs.columns):
        yield f"encoder: {module} starts from one encoder; {start.encoder} consists of {count}. Name another."
    yield from _corpus(module, inner, needs, start)
    if module == "distil" and not start.teacher:
        yield "teacher: distil learns the vectors of a teacher, and none is named. Name an encoder with one run."
    if module != "distil" and start.teacher:
        yield f"teacher: {module} learns from no teacher; {start.teacher} is named. Leave it out, or name distil."


def _corpus(module: str, inner: Settings, needs: Needs, start: Start) -> Iterator[str]:
    if needs.columns and start.corpus is None:
        yield f"corpus: {module} trains, and no corpus is named. Name one."
    if not needs.columns and start.corpus is not None:
        yield f"corpus: {module} trains nothing; {start.corpus} is named. Leave it out, or name another method."
    wanted = needs.columns[:2] if inner.get("hard_negatives") is False else needs.columns
    missing = [column for column in wanted if column not in start.columns]
    if start.corpus is not None and missing:
        found = f"{module} reads the column {missing[0]}; {start.corpus} has {', '.join(start.columns)}"
        yield f"corpus: {found}. Name another corpus, or another method."


def _three_r(method: Settings, needs: Needs, start: Start) -> Iterator[str]:
    if not needs.reducible:
        others = [name for name, other in NEEDS.items() if other.reducible and not other.has_template]
        reducible = ", ".join(sorted(others))
        found = f"{method['base']['module']} compares no pairs of vectors that could be reduced"
        yield f"method.base: {found}. Name a block of {reducible}."
    if needs.has_template:
        found = f"exemplars and words have no template, and {method['base']['module']} reads its [MASK]"
        yield f"method.base: {found}. Name a block without one."
    yield from three_r_rules(method)
    yield from threshold_rules(method["threshold"])
    if start.pool_sentences is not None and method["k"] > start.pool_sentences:
        found = f"{method['k']} exemplars a step; pool {method['pool']} has {start.pool_sentences}"
        yield f"method.k: {found}. Lower it."


def three_r_rules(method: Settings) -> Iterator[str]:
    """A pool and words are named where they are read, and nowhere else."""
    if (method["pool"] is not None) != (method["subtract"] == "exemplars"):
        found = f"{method['pool']} with method.subtract {method['subtract']}"
        yield f"method.pool: {found}. Give a pool where exemplars are subtracted, and null elsewhere."
    reads_words = method["identify"].startswith("words") or method["subtract"].startswith("word")
    if (method["words"] is not None) != reads_words:
        found = f"{method['words']} with identify {method['identify']} and subtract {method['subtract']}"
        yield f"method.words: {found}. Give a number where words are embedded, and null elsewhere."


def threshold_rules(threshold: Settings) -> Iterator[str]:
    """A frozen threshold does not learn."""
    if (threshold["surrogate"] == "frozen") != (threshold["travel"] == 0):
        found = f"{threshold['travel']:g} with surrogate {threshold['surrogate']}"
        yield f"method.threshold.travel: {found}. A frozen threshold has 0, and no other has."


def _dropout(method: Settings, start: Start) -> Iterator[str]:
    """Two views of a sentence that would be one; what a run's model drops is what it was trained with."""
    if (
        method["dropout"] is None
        and start.members is None
        and any(size and size.drops is False for size in start.sizes)
    ):
        yield f"method.dropout: null; {start.encoder} drops nothing of its own. Give a number."


def _jtcse(method: Settings, start: Start) -> Iterator[str]:
    for kind in dict.fromkeys(
        size.kind for size in start.sizes if size and size.kind not in (None, *BUILT_AS_BERT)
    ):
        found = f"jtcse attends across encoders built as BERT or RoBERTa; {start.encoder} has one of {kind}"
        yield f"encoder: {found}. Name others."
    if start.frozen:
        found = f"jtcse joins trained runs; {start.frozen[0]} trains nothing"
        yield f"encoder: {found}. Name another in `runs` of {start.encoder}."
    if len({size[:2] for size in start.sizes if size}) > 1:
        found = ", ".join(f"{size.layers} layers of {size.width}" for size in start.sizes if size)
        yield f"encoder: the runs of {start.encoder} have encoders of several sizes: {found}. Name others."
    every, last = method["cross_every"], method["bypassed_layernorms"]
    for depth in start.depths[:1]:
        if every is not None and depth % every:
            found = f"{every}; the {depth} layers of {start.encoder} are no multiple of it"
            divisors = ", ".join(str(number) for number in range(1, depth + 1) if depth % number == 0)
            yield f"method.cross_every: {found}. Use one of {divisors}, or null."
        if last > depth:
            yield f"method.bypassed_layernorms: {last}; {start.encoder} has {depth} layers. Lower it."


def _ensemble(method: Settings, start: Start) -> Iterator[str]:
    weights, members = method["weights"], start.members or ()
    if weights is not None and start.members is not None and len(weights) != len(members):
        found = f"{len(weights)} weights; {start.encoder} consists of {len(members)} runs"
        yield f"method.weights: {found}. Give one each, or null."
    if len(start.widths) > 1:
        yield f"encoder: the runs of {start.encoder} have widths {start.widths}, which cannot be added up."


def _sscl(method: Settings, start: Start) -> Iterator[str]:
    readout = method["readout"]
    if readout["kind"] != "pooling" or len(pooled_layers(readout)) != 1:
        yield "method.readout: sscl pools one layer as it pools others. Give a pooling readout of one layer."
    yield from _layers(method["negative_layers"], "method.negative_layers", start)


def _diffcse(method: Settings, _start: Start) -> Iterator[str]:
    if method["projector"] == "batch_norm" and method["head_at_test"]:
        yield "method.projector: batch_norm is no part of an embedding. Set head_at_test: false."


def _distil(_method: Settings, start: Start) -> Iterator[str]:
    widths = sorted({size.width for size in start.teacher_sizes if size})
    if start.teacher and start.widths and widths and widths != start.widths:
        found = f"the vectors of {start.teacher} have {widths[0]} entries, the student's {start.widths[0]}"
        yield f"teacher: {found}. Name another."


def _nothing(_method: Settings, _start: Start) -> Iterator[str]:
    return iter(())


OF_METHOD = {"jtcse": _jtcse, "ensemble": _ensemble, "sscl": _sscl, "diffcse": _diffcse, "distil": _distil}


def _readout(readout: Settings, needs: Needs, start: Start) -> Iterator[str]:
    place = "method.readout"
    reads_mask = readout["kind"] == "mask_token" or readout.get("pooling") == "mask"
    if reads_mask and not needs.has_template:
        setting = "kind" if readout["kind"] == "mask_token" else "pooling"
        found = f"{readout[setting]} reads [MASK], and the method puts no template around sentences"
        yield f"{place}.{setting}: {found}. Use promptbert, a frozen run's template, or other tokens."
    if readout["kind"] == "pooling":
        yield from _layers(pooled_layers(readout), f"{place}.layers", start)
    if readout["kind"] == "s2sent":
        yield from _s2sent(readout, place, start)


POOLED = {"avg_top2": (-2, -1), "avg_first_last": (1, -1)}
"""Hidden states that a pooler averages where ``layers`` is null; of the others the last alone."""


def pooled_layers(readout: Settings) -> Sequence[int]:
    """Hidden states that a pooling readout averages."""
    layers: Sequence[int] | None = readout["layers"]
    return POOLED.get(readout["pooler"], (-1,)) if layers is None else layers


def _layers(layers: Sequence[int], place: str, start: Start) -> Iterator[str]:
    for depth in start.depths[:1]:
        if outside := [layer for layer in layers if not -depth - 1 <= layer <= depth]:
            yield f"{place}: {outside[0]}; {start.encoder} has hidden states 0 to {depth}. Name one of them."


def _s2sent(readout: Settings, place: str, start: Start) -> Iterator[str]:
    for depth in start.depths[:1]:
        if readout["blocks"] > depth:
            yield f"{place}.blocks: {readout['blocks']}; {start.encoder} has {depth} layers. Lower it."
    for width in start.widths[:1]:
        if readout["squeeze"] == "dct" and width % readout["frequencies"]:
            found = f"{readout['frequencies']} is no divisor of {start.encoder}'s width {width}"
            yield f"{place}.frequencies: {found}. Choose another."
        if readout["reduction"] > width:
            yield f"{place}.reduction: {readout['reduction']}; {start.encoder} is {width} wide. Lower it."
    if readout["squeeze"] == "none" and readout["batch_norm"]:
        yield f"{place}.batch_norm: true with squeeze none, where it is not defined. Set it to false."
