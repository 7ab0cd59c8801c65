"""Tables of the study."""

from typing import Literal

from pydantic import Field

from workflow_scripts.config import Settings
from workflow_scripts.settings.experiment import Column, Experiment, RunBlock
from workflow_scripts.settings.extraction.cells import Names, Variants
from workflow_scripts.settings.names import Measured, ModelName


class ExtractionTable(Settings):
    """One table."""

    title: str
    source: str = Field(description="Paper and table.")
    columns: Literal["models", "measures"] = Field(
        description="What the columns are; rows are variants, or models where columns are measures."
    )
    models: list[ModelName] = Field(min_length=1)
    measures: list[Measured] = Field(min_length=1)
    variants: list[Variants] = Field(min_length=1)
    digits: int = Field(ge=0, le=6, description="Decimals printed.")

    def described(self, names: Names) -> Experiment:
        """What laying out a table reads: title, source, headings and their digits."""
        headings = self.models if self.columns == "models" else self.measures
        scales = {name: measure.scale for name, measure in names.measures.items()}
        of_rows = {scales[measure] for measure in self.measures}
        scale = of_rows.pop() if len(of_rows) == 1 else 1.0  # a column of models says nothing of several
        columns = [
            Column(
                heading=heading, suite="", task="", aggregation="", metric="",
                scale=scales.get(heading, scale), digits=self.digits,
            )
            for heading in headings
        ]  # fmt: skip
        return Experiment(
            title=self.title, source=self.source, seeds=[0], baseline=None, suites={},
            runs=[RunBlock(method="frozen", encoder="frozen")], columns=columns,
        )  # fmt: skip
