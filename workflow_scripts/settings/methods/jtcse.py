"""Settings of JTCSE and TNCSE."""

from collections.abc import Iterator
from typing import ClassVar, Literal

from pydantic import Field

from workflow_scripts.settings.contrastive import Contrasting
from workflow_scripts.settings.readouts import AnyReadout
from workflow_scripts.settings.start import BUILT_AS_BERT, Start

CrossMode = Literal["parallel", "literal", "feedback"]
Term = Literal["nce", "icnce", "ictm"]


class Config(Contrasting):
    """Settings of JTCSE and TNCSE."""

    starts_from: ClassVar[Literal["encoder", "pair", "runs", "run"]] = "pair"

    module: Literal["jtcse"]
    readout: AnyReadout = Field(description="Of each sub-encoder, at test.")
    terms: tuple[Term, ...] = Field(min_length=1, description="Terms of Eq. 15 that are added up (Table X).")
    cross_every: int | None = Field(gt=0, description="k: every k-th layer attends across; null: none does.")
    cross_mode: CrossMode = Field(description="Where the cross-attention goes.")
    direction: Literal["random", "forward"] = Field(description="Of ICNCE: by a coin, or always I to II.")
    modulus_weight: float = Field(gt=0, description="Of the modulus term; 0.5 in the code, 1 in Eq. 13.")
    modulus_of: Literal["pooler", "cls"] = Field(description="What the modulus is taken of.")
    bypassed_layernorms: int = Field(ge=0, description="Last layers whose LayerNorms are left out (Fig. 8).")

    @property
    def reads_pooler(self) -> bool:
        """Whether a modulus is taken of the poolers' output."""
        return "ictm" in self.terms and self.modulus_of == "pooler"

    @property
    def reads_cross_streams(self) -> bool:
        """Whether cross-attention reaches the loss."""
        return "icnce" in self.terms or self.cross_mode == "feedback"

    def misfits(self, start: Start) -> Iterator[str]:
        """The two encoders can be joined, and have the layers that are named."""
        yield from super().misfits(start)
        for kind in dict.fromkeys(size.kind for size in start.sizes):
            if kind not in (None, *BUILT_AS_BERT):
                known = ", ".join(BUILT_AS_BERT)
                found = f"jtcse attends across encoders built as BERT ({known}); {start.encoder} has one of {kind}"
                yield f"encoder: {found}. Name others."
        if start.frozen:
            found = f"jtcse joins trained runs; {start.frozen[0]} trains nothing"
            yield f"encoder: {found}. Name another in `runs` of {start.encoder}."
        if len(sizes := dict.fromkeys((size.layers, size.width) for size in start.sizes)) > 1:
            found = ", ".join(f"{layers} layers of {width}" for layers, width in sizes)
            yield f"encoder: the runs of {start.encoder} have encoders of several sizes: {found}. Name others."
        for depth in start.depths[:1]:
            if self.cross_every is not None and depth % self.cross_every:
                found = f"{self.cross_every}; the {depth} layers of {start.encoder} are no multiple of it"
                divisors = ", ".join(str(number) for number in range(1, depth + 1) if depth % number == 0)
                yield f"method.cross_every: {found}. Use one of {divisors}, or null."
            if self.bypassed_layernorms > depth:
                found = f"{self.bypassed_layernorms}; {start.encoder} has {depth} layers"
                yield f"method.bypassed_layernorms: {found}. Lower it."
