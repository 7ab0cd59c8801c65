"""Every method and every readout of the project, made small: what each setting does, and what is invariant.

Nothing here names a method. Blocks come from config/methods.yaml, modules from their folders, values to try from
the types of the settings. A block is made twice over a tiny encoder and trained for a step; a setting that changes
neither the losses nor the vectors afterwards is idle.
"""

import copy
import inspect
import itertools
import types
import typing
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, get_args

import torch
import yaml
from pydantic import TypeAdapter

from tests.support import toy_methods, toys
from tests.support.steps_by_hand import step_of, views_of
from tests.support.toys import Size
from workflow_scripts.errors import ConfigError
from workflow_scripts.losses.reduction import deviation
from workflow_scripts.methods import load_method
from workflow_scripts.models.backbone import load_backbone, load_tokenizer
from workflow_scripts.models.encoder import SentenceEncoder
from workflow_scripts.models.templates import tokenise_in
from workflow_scripts.models.tokens import NATURAL, Shapes
from workflow_scripts.provenance.closure import ROOT
from workflow_scripts.settings.base import Settings
from workflow_scripts.settings.methods import AnyMethod, MethodConfig, read_method
from workflow_scripts.settings.names import Template
from workflow_scripts.settings.readouts import AnyReadout, Pooling, ReadoutConfig
from workflow_scripts.training.sampler import Sampler


def by_tag(union: Any) -> dict[str, Any]:
    """The classes of a union that a key tells apart, by the values of that key."""
    kinds, tell = get_args(union)
    return {
        tag: kind
        for kind in get_args(kinds)
        for tag in get_args(kind.model_fields[tell.discriminator].annotation)
    }


METHODS: dict[str, type[MethodConfig]] = by_tag(AnyMethod)
READOUTS: dict[str, type[ReadoutConfig]] = by_tag(AnyReadout)
OF_A_FOLDER = {"as_published"}
"""Kinds of readouts that are not made of their settings alone; tests/numbers/models/test_published.py has the folders."""

Block = dict[str, Any]
Keys = tuple[str | int, ...]

CPU = torch.device("cpu")
SIZE = Size(layers=2, width=32, heads=4, feed_forward=64, vocabulary=400, batch=8, tokens=14, spread=0.15)
ROWS = 24
TEXTS = toys.numbered_sentences(ROWS, SIZE)
RATE = 0.01
FITTING = {"blocks": 2, "reduction": 4, "cross_every": 1}
"""What encoders of two layers and width 32 take where the papers' sizes do not fit."""

TOGETHER: dict[tuple[str, Any], Block] = {
    ("projector", "batch_norm"): {"head_at_test": False},
    ("identify", "words_at_start"): {"words": 20},
    ("identify", "words_each_step"): {"words": 20},
    ("subtract", "words"): {"words": 20, "pool": None},
    ("subtract", "word_rows"): {"words": 20, "pool": None},
    ("subtract", "own"): {"pool": None},
    ("surrogate", "frozen"): {"lr_budget": 0.0},
}
"""What else a block must say when a setting has such a value."""


class Effect(NamedTuple):
    """All that the settings of a method could change, and the parameters that did not learn."""

    losses: tuple[float, ...]
    vectors: bytes
    still: frozenset[str]


def blocks() -> dict[str, Block]:
    """The blocks of config/methods.yaml by name, made to fit a tiny encoder."""
    return {name: _fitted(block) for name, block in toy_methods.blocks().items()}


def _fitted(block: Any) -> Any:
    if isinstance(block, dict):
        return {
            key: _fitted(value) if value is None else FITTING.get(key, _fitted(value))
            for key, value in block.items()
        }
    if isinstance(block, list):
        return [_fitted(item) for item in block]
    return block


def readings() -> dict[str, Block]:
    """Every block that trains, and every change of its settings that a reading names, by block and reading; each once."""
    read = yaml.safe_load(Path(ROOT, "config/methods.yaml").read_text("utf-8"))["methods"]
    found, known = {}, []
    for name, block in blocks().items():
        if not toy_methods.is_trained(block):
            continue
        found[name] = block
        for reading, change in read[name].get("readings", {}).items():
            own = change.get("method")
            if own and own not in known:
                known.append(own)
                readout = _fitted(block.get("readout", {}) | own.get("readout", {}))
                found[f"{name}.{reading}"] = block | _fitted(own) | ({"readout": readout} if readout else {})
    return found


def without_a_block() -> list[str]:
    """Methods, and kinds of readouts, that no block names: nothing would walk them."""
    used = {block["module"] for block in blocks().values()}
    read = {readout["kind"] for readout in readouts().values()}
    return [name for name in METHODS if name not in used] + [
        kind for kind in READOUTS if kind not in read | OF_A_FOLDER
    ]


# Encoders


@cache
def bert(folder: Path) -> Path:
    """A tiny BERT with a masked-language-model head, as continue_mlm writes it; a tiny decoder lies beside it.

    Others that lie in their places, of another family or size, stay.
    """
    for kind in ("llama", "bert"):
        if not (folder / kind).exists():
            toys.write_random_encoder(folder, SIZE, kind)
    return folder / "bert"


# Effects


def made(
    folder: Path, block: Block, sampler: Sampler | None = None, shapes: Shapes = NATURAL
) -> toy_methods.Trained:
    """A method of the configuration over its tiny encoder."""
    return toy_methods.prepared(block, bert(folder).parent, SIZE, CPU, ROWS, sampler, shapes=shapes)


def effect(folder: Path, block: Block) -> Effect:
    """Losses before and after a step of plain gradient descent, and vectors of the encoder then."""
    if not toy_methods.is_trained(block):
        encoder = untrained(folder, block)
        vectors = encoder.encode(TEXTS[:6], SIZE.tokens)
        return Effect((), vectors.tobytes(), frozenset())
    encoder, objective, _ = made(folder, block)
    losses, learnt = [], set()
    objective.module.train()
    torch.manual_seed(2)
    for step in (1, 2):
        left = step_of(objective, step)
        objective.module.zero_grad()
        left.loss.backward()
        losses.append(left.loss.item())
        learnt |= _descend(objective)
    trained = {name for name, parameter in objective.module.named_parameters() if parameter.requires_grad}
    objective.finish()
    vectors = encoder.encode(TEXTS[:6], SIZE.tokens)
    measured = map(float, left.metrics.values())
    return Effect((*losses, *measured), vectors.tobytes(), frozenset(trained - learnt))


def _descend(objective: Any) -> set[str]:
    """Take a step down the gradient; returns the names of what has one."""
    learnt = {n for n, p in objective.module.named_parameters() if p.grad is not None and p.grad.any()}
    with torch.no_grad():
        for name, parameter in objective.module.named_parameters():
            if name in learnt:
                parameter -= RATE * objective.lr_budgets.get(name, 1) * parameter.grad
    return learnt


def untrained(folder: Path, block: Block) -> Any:
    """The encoder of a method that trains nothing."""
    method = load_method(block["module"])
    config = read_method(block, "methods")
    if "encoders" not in inspect.signature(method.build).parameters:
        return method.build(config, load_tokenizer(bert(folder)), load_backbone(bert(folder)))
    readout = Pooling(kind="pooling", pooler="avg", layers=None)
    runs = [
        SentenceEncoder(
            toys.varied_backbone(bert(folder), number),
            load_tokenizer(bert(folder)),
            readout,
            head=False,
            head_at_test=False,
        )
        for number in range(1 if config.starts_from == "run" else 2)
    ]
    return method.build(config, runs)


# Settings


def leaves(block: Any, path: Keys = ()) -> Iterator[tuple[Keys, Any]]:
    """Every setting of a block with its value; a block underneath is walked by itself."""
    if isinstance(block, dict):
        for key, below in block.items():
            if path or key != "base":
                yield from leaves(below, (*path, key))
    elif isinstance(block, list) and block and isinstance(block[0], dict):
        for index, below in enumerate(block):
            yield from leaves(below, (*path, index))
    elif path[-1] not in ("module", "kind"):
        yield path, block


def _annotation(settings: Any, path: Keys) -> Any:
    """The type of a setting."""
    for key in path[:-1]:
        settings = settings[key] if isinstance(key, int) else getattr(settings, key)
    assert isinstance(settings, Settings), path
    return type(settings).model_fields[str(path[-1])].annotation


def others(annotation: Any, value: Any) -> Iterator[Any]:
    """Values of a type other than ``value``, some of which a setting's bounds may refuse."""
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin in (typing.Union, types.UnionType):
        for one in arguments:
            yield from others(one, value)
    elif origin is typing.Annotated:
        yield from others(arguments[0], value)
    elif origin is typing.Literal:
        yield from (other for other in arguments if other != value)
    elif origin in (tuple, list):
        yield from _other_tuples(arguments[0], value)
    elif annotation is bool:
        yield not value
    elif annotation is int:
        yield from (value + 1, value * 2, value - 1) if value is not None else (1, 2)
    elif annotation is float:
        yield from (value / 2, value * 2, value + 0.3, 0.1) if value is not None else (0.3,)
    elif annotation is str:
        yield f"The {value}"
    elif annotation is not type(None):
        raise AssertionError(
            f"no other value of {annotation} is known; teach tests/support/small_methods.py one"
        )


def _other_tuples(item: Any, value: Any) -> Iterator[list[Any]]:
    # Two first: of the walked runs there are two, and the graph refuses another number of their weights.
    for length, first in itertools.product((2, 1), others(item, None if value is None else value[0])):
        yield [first] * length if value is None else [first, *value[1:]]
    for index in range(len(value or [])):
        yield [*value[:index], *value[index + 1 :]]


def changed(block: Block, path: Keys, value: Any) -> Block:
    """``block`` with one setting changed, and those that must change with it."""
    made = copy.deepcopy(block)
    place = made
    for key in path[:-1]:
        place = place[key]  # type: ignore[index]
    place[path[-1]] = value  # type: ignore[index]
    if isinstance(value, str):
        place |= TOGETHER.get((str(path[-1]), value), {})
    return made


def matters(folder: Path, block: Block, path: Keys, value: Any, before: Effect) -> bool:
    """Whether another value of a setting that the method accepts changes anything."""
    config = read_method(block, "methods")
    for other in others(_annotation(config, path), value):
        try:
            after = effect(folder, changed(block, path, other))
        except ConfigError:
            continue  # out of bounds, or refused together with the rest of the block
        if before != after:
            return True
    return False


def idle(folder: Path, block: Block) -> set[str]:
    """Settings of a block, dotted, no other value of which changes anything."""
    block = with_members(folder, block)
    before = effect(folder, block)
    found = leaves(block)
    return {
        ".".join(map(str, path)) for path, value in found if not matters(folder, block, path, value, before)
    }


def with_members(folder: Path, block: Block) -> Block:
    """A block of 3R with a threshold that half of its batch's deviations lie below, for nothing happens else."""
    if "threshold" not in block:
        return block
    base: Any = made(folder, block["base"]).objective
    base.module.train()
    torch.manual_seed(2)
    with torch.no_grad():
        middle = deviation(base.encoder.project(views_of(base, 1))[0]).median().item()
    return block | {"threshold": block["threshold"] | {"start": middle}}


# Invariances


def readouts() -> dict[str, Block]:
    """Every readout that a block or one of its readings names, by block and reading; each just once."""
    read = yaml.safe_load(Path(ROOT, "config/methods.yaml").read_text("utf-8"))["methods"]
    found: dict[str, Block] = {}
    for name, block in read.items():
        if "readout" in block:
            changes = {name: {}} | {
                f"{name}.{reading}": change.get("method", {}).get("readout", {})
                for reading, change in block.get("readings", {}).items()
            }
            for place, change in changes.items():
                readout = _fitted(block["readout"] | change)
                if readout not in found.values() and readout["kind"] not in OF_A_FOLDER:
                    found[place] = readout
    return found


PROMPT = Template(text="[X] is [MASK].", add_period=False)


def encoder_with(folder: Path, readout: Block) -> SentenceEncoder:
    """A tiny BERT with a readout, its sentences in a prompt that has a mask."""
    config = TypeAdapter(AnyReadout).validate_python(readout)
    torch.manual_seed(0)
    encoder = SentenceEncoder(
        load_backbone(bert(folder)),
        load_tokenizer(bert(folder)),
        config,
        head=False,
        head_at_test=False,
        template=PROMPT,
    )
    return encoder.eval()


def depends_on_batch(encoder: Any, tokenizer: Any) -> bool:
    """Whether a vector changes with the sentences that are encoded along with it, or with padding."""
    text = tokenise_in(encoder.template, tokenizer, TEXTS[:6], SIZE.tokens)
    ids_BT, mask_BT, _ = text.batch(range(6))
    longer_BT = (torch.nn.functional.pad(part, (0, 9)) for part in (ids_BT, mask_BT))
    with torch.inference_mode():
        together = encoder(ids_BT, mask_BT)
        alone = torch.cat([encoder(*text.batch([row])) for row in range(6)])
        padded = encoder(*longer_BT)
    scale = together.abs().max()
    assert scale > 0
    return bool(max((together - alone).abs().max(), (together - padded).abs().max()) > 1e-4 * scale)
