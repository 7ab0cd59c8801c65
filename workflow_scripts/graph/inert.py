"""Declarations of settings that have no effect given others: which, when and why.

The declarations are read without PyTorch, so that the job graph can train runs that differ in such settings alone
once, and can say which settings a run has in vain. A setting is declared only where a change of it leaves every loss,
gradient, test vector, random number and parameter as it was, to the bit; a test holds each to that. So ``reduction`` of
a selector with one branch is none: it is multiplied by 0, but counts as parameters.
"""

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

Block = Mapping[str, Any]
"""Settings of a method, or of a readout."""

NO_EFFECT = "no effect"
"""Takes the place of an inert setting where settings are compared."""


class Inert(NamedTuple):
    """Settings that change nothing where a condition holds."""

    settings: Sequence[str]
    """Keys below the block; a dot leads into a part of it."""
    where: Callable[[Block], bool]
    because: str


class Finding(NamedTuple):
    """A setting of one run that changes nothing."""

    setting: str
    """Dotted, as in overrides."""
    because: str


def _without_head(method: Block) -> bool:
    """Whether a contrastive method trains no MLP on its vector."""
    readout = method.get("base", method)["readout"]
    if readout["kind"] == "s2sent":
        return bool(readout["pooling"] == "avg")
    return bool(readout["kind"] == "pooling" and readout["pooler"] != "cls")


def _identity(readout: Block) -> bool:
    """Whether a selector has one branch, whose softmax is 1, and pools before it weighs."""
    one_branch = readout["form"] == "average" or readout["blocks"] == 1
    return bool(readout["gate"] == "softmax" and one_branch and readout["squeeze"] != "none")


def _attends(readout: Block) -> bool:
    return "attention" in readout["pooling"]


_HEAD = Inert(["head_at_test"], _without_head, "the readout has no head")
_THRESHOLD = [f"threshold.{part}" for part in ("surrogate", "start", "temperature", "travel")]

OF_METHODS: Mapping[str, Sequence[Inert]] = {
    **dict.fromkeys(("simcse", "simcse_pairs", "informin_cl", "sscl", "llm2vec"), (_HEAD,)),
    "promptbert": (
        _HEAD,
        Inert(["bias_positions"], lambda method: not method["denoise"], "no bias is subtracted"),
    ),
    "diffcse": (
        Inert(
            ["head_at_test"],
            lambda method: method["projector"] == "head" and _without_head(method),
            "the readout has no head",
        ),
    ),
    "supervised_simcse": (
        _HEAD,
        Inert(
            ["hard_negative_weight"],
            lambda method: not method["hard_negatives"],
            "no hard negatives are read",
        ),
    ),
    "jtcse": (
        Inert(["cross_mode"], lambda method: method["cross_every"] is None, "no layer attends across"),
        Inert(
            ["cross_every"],
            lambda method: method["cross_every"] is not None and method["cross_mode"] == "literal",
            "in the literal mode the last layer alone attends across",
        ),
        Inert(
            ["cross_every"],
            lambda method: "icnce" not in method["terms"] and method["cross_mode"] != "feedback",
            "icnce alone reads the cross streams",
        ),
        Inert(["direction"], lambda method: "icnce" not in method["terms"], "terms leave icnce out"),
        Inert(
            ["modulus_weight", "modulus_of"],
            lambda method: "ictm" not in method["terms"],
            "terms leave ictm out",
        ),
        Inert(["temperature"], lambda method: set(method["terms"]) == {"ictm"}, "ictm has no temperature"),
    ),
    "three_r": (
        Inert(["k"], lambda method: method["subtract"] != "exemplars", "no exemplars are subtracted"),
        Inert(["detach"], lambda method: method["subtract"] == "own", "there is no redundant vector"),
        Inert(["where"], _without_head, "the readout has no head"),
        Inert(_THRESHOLD, lambda method: method["identify"] == "all", "every dimension is redundant"),
        Inert(
            ["threshold.temperature"],
            lambda method: method["threshold"]["surrogate"] == "frozen",
            "a frozen threshold does not learn",
        ),
    ),
}
"""By module of ``methods``."""

OF_READOUTS: Mapping[str, Sequence[Inert]] = {
    "s2sent": (
        Inert(
            ["frequencies", "frequency_set", "dct"],
            lambda readout: readout["squeeze"] != "dct",
            "the squeeze takes no frequencies",
        ),
        Inert(
            ["squeeze", "frequencies", "frequency_set", "dct", "activation"],
            _identity,
            "the weight of a single branch is 1, whatever its gate",
        ),
        Inert(["form"], lambda readout: readout["blocks"] == 1, "there is one block"),
        Inert(
            ["frequency_set"],
            lambda readout: readout["frequencies"] < 8,
            "the sets differ from the sixth frequency on",
        ),
    ),
    "layer_attention": (
        Inert(
            ["weights", "projection", "embeddings", "divisor"],
            lambda readout: not _attends(readout),
            "this pooling does not attend",
        ),
        Inert(["divisor"], lambda readout: readout["weights"] != "softmax", "a ratio cancels it"),
        Inert(
            ["first_state"],
            lambda readout: "first_last" not in readout["pooling"],
            "this pooling averages no first state",
        ),
    ),
}
"""By kind of ``models.readouts``."""


def inert_settings(method: Block) -> list[Finding]:
    """Settings of a run's method, its base and its readout that change nothing, each once, in order."""
    found: dict[str, Finding] = {}
    for prefix, block, declared in _blocks(method, "method"):
        for entry in declared:
            if entry.where(block):
                for key in entry.settings:
                    found.setdefault(f"{prefix}.{key}", Finding(f"{prefix}.{key}", entry.because))
    return list(found.values())


def without_inert(method: Block) -> dict[str, Any]:
    """A run's method with ``NO_EFFECT`` in the place of every setting that changes nothing."""
    changed = copy.deepcopy(dict(method))
    for finding in inert_settings(method):
        *above, last = finding.setting.split(".")[1:]
        block: Any = changed
        for key in above:
            block = block[key]
        block[last] = NO_EFFECT
    return changed


def _blocks(method: Block, prefix: str) -> Iterator[tuple[str, Block, Sequence[Inert]]]:
    """Parts of a method that have declarations: itself, its readout, and those of its base."""
    yield prefix, method, OF_METHODS.get(method["module"], ())
    if "readout" in method:
        yield f"{prefix}.readout", method["readout"], OF_READOUTS.get(method["readout"]["kind"], ())
    if "base" in method:
        yield from _blocks(method["base"], f"{prefix}.base")
