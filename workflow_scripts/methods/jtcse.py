"""JTCSE and TNCSE: two fine-tuned encoders trained together, and added up at test.

    L = sum_i L_NCE(h_i^L, h_i^L+) + L_ICNCE + L_ICTM                            (JTCSE, Eq. 15)
    L_ICNCE = L_NCE(h_I^L, h_II^L) + L_NCE(c_I^O, c_II^O), or with I and II swapped, by a coin    (Eq. 12)
    L_ICTM = L_TMC(h_I, h_II+) + L_TMC(h_II, h_I+)                               (Eq. 14)

Joint Tensor-Modulus Constraints and Cross-Attention (Zong et al.); TNCSE is the same without cross-attention,
always in the direction I to II, and with a dropout of its own. h are [CLS] states of the last layer, c
those of the cross streams (``models.cross_attention``), the moduli those of each tower's own pretrained
pooler. Both views of a batch go through both towers at once: two calls, four passes. The towers start from
two runs of unsupervised SimCSE on round-trip translations (``encoders.<name>.runs``).

At test each tower is a stock encoder, read by ``readout``, and the two are added up (official code; the
paper says that neither pooler nor cross-attention is needed).

``halved``: the official code halves the modulus term, Eq. 13 does not (reading ``paper``).
``modulus_of`` and ``bypassed_layernorms`` are for Fig. 8, which takes the modulus of [CLS] itself after
leaving LayerNorms of the last layers out.

Expected: on BERT-base 79.70 over seven STS tasks (the paper, seeds 1 to 5 close to it); TNCSE 79.58.
"""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from pydantic import Field
from torch import Tensor
from transformers import PreTrainedModel

from workflow_scripts.config import Slice
from workflow_scripts.errors import ConfigError
from workflow_scripts.losses.modulus import contrast_views, modulus_constraint
from workflow_scripts.models.cross_attention import Reading, check_towers, cross_layers, run_twin
from workflow_scripts.models.encoder import SentenceEncoder, has_dropout
from workflow_scripts.models.ensemble import Ensemble
from workflow_scripts.models.readouts import AnyReadout
from workflow_scripts.training.material import Material
from workflow_scripts.training.ranks import gathered

Term = Literal["nce", "icnce", "ictm"]


class Config(Slice):
    """Settings of JTCSE and TNCSE."""

    module: Literal["jtcse"]
    readout: AnyReadout = Field(description="How each tower is read at test.")
    temperature: float = Field(gt=0, le=1, description="Softmax temperature; 0.05 in the paper.")
    dropout: float | None = Field(
        ge=0, lt=1, description="Of hidden states and attention; null keeps the encoders'."
    )
    terms: tuple[Term, ...] = Field(min_length=1, description="Terms of Eq. 15 that are added up (Table X).")
    cross_every: int | None = Field(gt=0, description="k: every k-th layer attends across; null: none does.")
    cross_reading: Reading = Field(description="Where the cross-attention goes.")
    direction: Literal["random", "forward"] = Field(description="Of ICNCE: by a coin, or always I to II.")
    halved: bool = Field(description="Whether the modulus term is halved.")
    modulus_of: Literal["pooler", "cls"] = Field(description="What the modulus is taken of.")
    bypassed_layernorms: int = Field(ge=0, description="Last layers whose LayerNorms are left out (Fig. 8).")


def overrides(config: Config) -> dict[str, Any]:
    """What this method asks of ``load_backbone``: attention whose weights can be read."""
    return {"dropout": config.dropout, "attn_implementation": "eager"}


def build(config: Config, *towers: PreTrainedModel) -> Ensemble:
    """The two towers, to be trained, evaluated and saved.

    Raises:
        ConfigError: if there are not two, they cannot be joined, or a setting asks for what they lack.
    """
    if len(towers) != 2:
        raise ConfigError(f"encoders: JTCSE joins two runs; there are {len(towers)}. Name two in `runs`.")
    check_towers(towers)
    if config.cross_every is not None:
        cross_layers(towers[0].config.num_hidden_layers, config.cross_every)
    if config.dropout is None and not has_dropout(towers[0]):
        raise ConfigError(
            "methods: dropout is null, but the encoders drop nothing of their own. Give a number."
        )
    if any(getattr(tower, "pooler", None) is None for tower in towers):
        raise ConfigError("encoders: a tower has no pooler, whose output the modulus is taken of.")
    encoders = [SentenceEncoder(tower, config.readout, head=False, head_at_test=False) for tower in towers]
    return Ensemble(encoders, (1.0, 1.0), config.bypassed_layernorms)


class Views(NamedTuple):
    """What the loss reads of one tower, both views of each sentence: first views, then second views, (R, D)."""

    last_RD: Tensor
    cross_RD: Tensor | None
    modulus_RD: Tensor


class Objective:
    """Loss of one step on a corpus of sentences."""

    quantities: Sequence[str] = ("nce", "icnce", "ictm", "forward")

    def __init__(self, config: Config, encoder: Ensemble, material: Material) -> None:
        self.module = encoder
        self._config = config
        self._text = material.tokenised("anchor")
        self._sampler = material.sampler
        first, second = encoder.members
        assert isinstance(first, SentenceEncoder) and isinstance(second, SentenceEncoder)
        self._towers: tuple[Any, Any] = (first.backbone, second.backbone)
        self._last: dict[str, float] = {}

    def loss(self, step: int) -> Tensor:
        """Contrast within and across towers, and constrain the moduli."""
        batch = self._text.batch(self._sampler.rows_of(step)).repeated().to(self.module.device)
        states = run_twin(self._towers, batch, self._config.cross_every, self._config.cross_reading)
        views = [self._views(states, number) for number in (0, 1)]
        forward = self.goes_forward(step)
        terms = self.terms(views[0], views[1], forward)
        self._last = {name: term.item() for name, term in terms.items()} | {"forward": float(forward)}
        return torch.stack(list(terms.values())).sum()

    def watched(self) -> Sequence[float]:
        """Terms of the last step; nan for those that are not asked for."""
        return [self._last.get(name, float("nan")) for name in self.quantities]

    def goes_forward(self, step: int) -> bool:
        """Whether R is 1, a function of seed and step."""
        if self._config.direction == "forward":
            return True
        return bool(np.random.default_rng([self._sampler.seed, step, 5]).integers(2))

    def _views(self, states: Any, number: int) -> Views:
        primitive_RTD = states.primitive[number]
        last_RD = _of_all(primitive_RTD[:, 0])
        cross_RD = _of_all(states.cross[number][:, 0]) if states.cross else None
        if self._config.modulus_of == "cls":
            return Views(last_RD, cross_RD, last_RD)
        return Views(last_RD, cross_RD, _of_all(self._towers[number].pooler(primitive_RTD)))

    def terms(self, first: Views, second: Views, forward: bool) -> dict[str, Tensor]:
        """The terms of Eq. 15 that are asked for, each with weight 1."""
        asked, temperature = self._config.terms, self._config.temperature
        terms: dict[str, Tensor] = {}
        if "nce" in asked:
            terms["nce"] = sum(
                (contrast_views(tower.last_RD, tower.last_RD, temperature) for tower in (first, second)),
                torch.zeros((), device=first.last_RD.device),
            )
        if "icnce" in asked:
            rows, candidates = (first, second) if forward else (second, first)
            terms["icnce"] = contrast_views(rows.last_RD, candidates.last_RD, temperature)
            if rows.cross_RD is not None and candidates.cross_RD is not None:
                across = contrast_views(rows.cross_RD, candidates.cross_RD, temperature)
                terms["icnce"] = terms["icnce"] + across
        if "ictm" in asked:
            terms["ictm"] = self._constraint(first, second) + self._constraint(second, first)
        return terms

    def _constraint(self, one: Views, other: Views) -> Tensor:
        """First views of one tower beside second views of the other (Eq. 13)."""
        return modulus_constraint(
            one.last_RD.chunk(2)[0],
            other.last_RD.chunk(2)[1],
            one.modulus_RD.chunk(2)[0],
            other.modulus_RD.chunk(2)[1],
            halved=self._config.halved,
        )


def _of_all(rows_RD: Tensor) -> Tensor:
    """Rows of all processes: all first views, then all second views."""
    return torch.cat([gathered(view_BD) for view_BD in rows_RD.chunk(2)])
