"""Settings of figure word_frequencies."""

from pydantic import Field

from workflow_scripts.config import Settings
from workflow_scripts.settings.figures import Needs

NEEDS = Needs(
    inputs={
        "words": "<results>/corpora/{corpus}/words.parquet",
        "printed": "resources/published/three_r_table5.csv",
    },
    config="grids.{experiment}.word_frequencies",
)


class Config(Settings):
    """The most frequent words of the corpus that the grid's runs train on."""

    words: int = Field(gt=1, description="Number of words that are drawn.")
