"""Post-processings of vectors."""

from typing import Annotated, Literal

from pydantic import Field

from workflow_scripts.config import Settings

FitOn = Literal["task", "wikitext"]


class Plain(Settings):
    """No post-processing, or length 1: neither is fitted."""

    kind: Literal["none", "normalise"]
    label: str = Field(description="Name in tables; empty for none.")
    fit: Literal["task"]


class Learnt(Settings):
    """Mean and spread, or mean and principal directions."""

    kind: Literal["zscore", "whiten"]
    label: str
    fit: FitOn


class Abtt(Settings):
    """All but the top principal directions."""

    kind: Literal["abtt"]
    label: str
    fit: FitOn
    directions: int = Field(ge=0, description="Principal directions to remove; the paper tried up to 100.")


class Quantile(Settings):
    """Quantiles of every feature."""

    kind: Literal["quantile_uniform"]
    label: str
    fit: FitOn
    quantiles: int = Field(
        ge=2, description="Points of each feature's distribution; fewer where N is smaller."
    )
    subsample: int = Field(
        gt=0, description="Most vectors to fit on; scikit-learn's default was 100,000 until 1.5, then 10,000."
    )
    seed: int = Field(ge=0, description="Seed of the subsample.")


Postprocessing = Annotated[Plain | Learnt | Abtt | Quantile, Field(discriminator="kind")]
