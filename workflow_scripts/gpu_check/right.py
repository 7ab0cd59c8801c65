"""Whether a card computes what the CPU computes: losses, gradients, vectors, and masks of dropout.

On a CPU the same lines compare float32 with float64: what is seen there is how far rounding alone goes.
"""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np
import torch
from sentence_transformers import SentenceTransformer
from torch import Tensor

from workflow_scripts.gpu_check.lines import Line, judged, left_open
from workflow_scripts.gpu_check.material import (
    DECODERS,
    SMALL,
    Block,
    Trained,
    blocks,
    built,
    is_trained,
    prepared,
    sentences,
)
from workflow_scripts.models.devices import mixed_precision
from workflow_scripts.models.dropout import Masks, keyed
from workflow_scripts.models.encoding import encode
from workflow_scripts.models.folders import save_encoder
from workflow_scripts.models.tokens import Packing
from workflow_scripts.settings.precision import Precision
from workflow_scripts.training import ranks

PART = "right"
CLOSE = 1e-4
"""Of float32, relative: sums are taken in another order."""
ROUNDED = 0.1
"""Of bfloat16, relative to the whole gradient: a product keeps eight bits, and there are twelve layers of them."""
_FLOOR = 1e-3  # of the whole gradient: what is 0 but for rounding has no relative error


class Found(NamedTuple):
    """A loss and the gradient of every parameter, on the host."""

    loss: float
    gradients: dict[str, Tensor]


def check(folder: Path, device: torch.device) -> Iterator[Line]:
    """A line for each method, one for bfloat16, for vectors and for masks."""
    other = "in float64" if device.type == "cpu" else f"on {device}"
    for name, block in blocks().items():
        if not is_trained(block):
            continue
        host = found(prepared(block, folder, SMALL, torch.device("cpu")))
        card = prepared(block, folder, SMALL, device)
        if device.type == "cpu":
            card.objective.module.double()
        what = f"{name}, read by {readout_of(block)}: loss and gradients {other}"
        yield judged(PART, what, distance(host, found(card)), CLOSE)
    yield bfloat16(folder, device)
    yield from vectors(folder, device)
    yield masks(device)


def found(trained: Trained, precision: Precision = "float32") -> Found:
    """Loss and gradients of the first step; of the joint batch where several processes share it."""
    module = trained.objective.module.train()
    device = next(module.parameters()).device
    with keyed(1, 1, rank=ranks.rank(), ranks=ranks.world()), mixed_precision(precision, device):
        loss = trained.objective.loss(1)
    loss.backward()  # type: ignore[no-untyped-call]
    ranks.average_gradients(module.parameters())
    gradients = {name: p.grad.float().cpu() for name, p in module.named_parameters() if p.grad is not None}
    return Found(loss.item(), gradients)


def distance(one: Found, other: Found) -> float:
    """The largest relative distance of the losses and of any parameter's gradient."""
    if one.gradients.keys() != other.gradients.keys():
        return float("inf")
    whole = torch.stack([gradient.norm() for gradient in one.gradients.values()]).norm()
    apart = [
        (gradient - other.gradients[name]).norm() / (gradient.norm() + _FLOOR * whole)
        for name, gradient in one.gradients.items()
    ]
    return max(abs(one.loss - other.loss) / abs(one.loss), float(torch.stack(apart).max()))


def bfloat16(folder: Path, device: torch.device) -> Line:
    """SimCSE's step in bfloat16 lies near the one in float32, and is another: else nothing was rounded."""
    block = blocks()["simcse"]
    exact = found(prepared(block, folder, SMALL, device))
    rounded = found(prepared(block, folder, SMALL, device), "bfloat16")
    whole = torch.cat([gradient.flatten() for gradient in exact.gradients.values()])
    away = torch.cat([gradient.flatten() for gradient in rounded.gradients.values()]) - whole
    line = judged(PART, "bfloat16: gradient against float32", float(away.norm() / whole.norm()), ROUNDED)
    return line if away.any() else line._replace(found="the same", wanted="rounded", verdict="fails")


def readout_of(block: Block) -> str:
    """The name of what a method reads vectors by; empty for one that reads by what other runs were trained with."""
    readout = (block.get("base") or block).get("readout", {})
    return " ".join(filter(None, (readout.get("kind"), readout.get("pooler"))))


def vectors(folder: Path, device: torch.device) -> Iterator[Line]:
    """Vectors of 200 sentences by every readout, ours and those of the saved model: an entry's largest distance."""
    texts = sentences(200, SMALL, seed=4)
    of_bert = [block for block in blocks().values() if block.get("base", block)["module"] not in DECODERS]
    reading = [block for block in of_bert if is_trained(block) or block["module"] == "frozen"]
    for name, block in {readout_of(block): block for block in reversed(reading)}.items():
        encoder, tokenizer = built(block, folder, torch.device("cpu"))
        host = encode(encoder, tokenizer, texts, SMALL.tokens)
        with TemporaryDirectory() as place:
            save_encoder(Path(place), encoder, tokenizer)
            loaded = SentenceTransformer(place, device=str(device), trust_remote_code=True)
        loaded.max_seq_length = SMALL.tokens
        ways = {
            "vectors of encode": encode(encoder.to(device), tokenizer, texts, SMALL.tokens),
            "vectors of SentenceTransformer": loaded.encode(texts),
        }
        for what, card in ways.items():
            yield judged(PART, f"{what}, read by {name}", float(np.abs(host - card).max()), CLOSE)


def masks(device: torch.device) -> Line:
    """Masks of hidden states and of attention, bit for bit: a training is the same on every card."""
    if device.type == "cpu":
        return left_open(PART, "masks of dropout", "a card to draw them on")
    packing = Packing.of(torch.tensor([[1, 1, 1, 0], [1, 1, 1, 1]]))
    drawn = []
    for place in (torch.device("cpu"), device):
        with keyed(1, 1):
            of = Masks(packing.to(place))
        drawn.append(
            torch.cat([of.hidden(0, 0.1, 64).flatten().cpu(), of.attention(1, 0.1, 4).flatten().cpu()])
        )
    differing = int((drawn[0] != drawn[1]).sum())
    return judged(PART, "masks of dropout: entries that differ", differing, 0)
