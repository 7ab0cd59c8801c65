"""Static vectors of whole words, and where they are read."""

from typing import Annotated, Literal

from pydantic import Field

from workflow_scripts.config import Settings

_Path = Annotated[str, Field(pattern=r"^\w[\w.-]*(/\w[\w.-]*)*$")]
_Sha256 = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


class LocalWords(Settings):
    """A text file of word2vec's format below the data root."""

    kind: Literal["local"]
    path: _Path
    sha256: _Sha256 | None = Field(description="null where the file was not at hand when this was written.")


class PackagedFile(Settings):
    """A file of an installed package."""

    path: _Path = Field(description="Below the package.")
    sha256: _Sha256


class PackagedWords(Settings):
    """An array of vectors and the table of its words, in an installed Python package."""

    kind: Literal["package"]
    package: str = Field(pattern=r"^\w+$", description="Import name.")
    vectors: PackagedFile = Field(description="NumPy's .npy: a row of float32 for each word.")
    words: PackagedFile = Field(description="Parquet: one column of text, in the order of the rows.")


class WordRepresentation(Settings):
    """Static vectors of whole words, the most frequent first."""

    kind: Literal["words"]
    source: Annotated[LocalWords | PackagedWords, Field(discriminator="kind")]
    drop_frequent: int = Field(ge=0, description="Number of words to skip at the head.")
    licence: str
    label: str | None = Field(
        default=None, description="Substitution to print, where these are used in place of others."
    )
