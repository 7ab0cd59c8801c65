"""Suites of cost."""

from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import Field

from workflow_scripts.settings.suites import Cells, Suite, cells


class Config(Suite):
    """Lengths, batches and repeats."""

    on_gpu: ClassVar[bool] = False

    tokens: int = Field(gt=0, description="Tokens per sentence T, for counting and for timing; no padding.")
    batch_sizes: list[int] = Field(min_length=1, description="Batch sizes that are timed.")
    repeats: int = Field(gt=0, description="Timed passes of each encoder per batch size; the median counts.")
    warmup: int = Field(ge=0, description="Passes before the first timed one.")

    def written(self, _lists: Mapping[str, Mapping[str, Any]]) -> dict[str, Cells]:
        """One task, of the encoder and of the one that it starts from."""
        counts = cells(("", "base"), ("parameters", "gmac_linear", "gmac_total"))
        return {"cost": counts | {("", "added_parameters_percent")}}

    def timed(self) -> dict[str, Cells]:
        """Batches of each size."""
        own, base = ("latency_ms", "sentences_per_second"), ("base_latency_ms", "latency_ratio")
        sizes = (f"batch:{size}" for size in self.batch_sizes)
        return {"cost": cells(sizes, (*own, *base, "added_latency_percent"))}
