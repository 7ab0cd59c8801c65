"""Encoders from ordered sources, as ``sources`` does for datasets."""

import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from pydantic import Field, model_validator

from workflow_scripts.config import Slice
from workflow_scripts.data.hub import reaching
from workflow_scripts.errors import DataError, MissingError
from workflow_scripts.provenance import Input, sha256_of

WEIGHTS = "model.safetensors"
FILES = (
    WEIGHTS,
    "config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "vocab.txt",
    "vocab.json",
    "merges.txt",
)
"""What is taken from a source: weights without pickles, configuration, tokeniser; no code."""


class EncoderSource(Slice):
    """A folder of the data root, of an installed package, or of the Hub at one commit."""

    kind: Literal["local", "package", "hub"]
    package: str | None = Field(default=None, description="Import name; for kind package.")
    path: str | None = Field(
        default=None, pattern=r"^\w[\w.-]*(/\w[\w.-]*)*$", description="Folder; for local and package."
    )
    repository: str | None = Field(default=None, pattern=r"^[A-Za-z0-9][\w.-]*(/[A-Za-z0-9][\w.-]*)?$")
    revision: str | None = Field(default=None, pattern="^[0-9a-f]{40}$", description="Commit; for kind hub.")
    sha256: str | None = Field(default=None, pattern="^[0-9a-f]{64}$", description="Of model.safetensors.")

    @model_validator(mode="after")
    def _says_where(self) -> "EncoderSource":
        needed = {"local": ("path",), "package": ("package", "path"), "hub": ("repository", "revision")}[
            self.kind
        ]
        if missing := [name for name in needed if getattr(self, name) is None]:
            raise ValueError(f"a source of kind {self.kind} needs {' and '.join(missing)}")
        return self


class EncoderBlock(Slice):
    """One block of ``encoders`` that is fetched, not trained here."""

    sources: list[EncoderSource] = Field(min_length=1)
    licence: str
    label: str | None = Field(
        default=None, description="Substitution to print wherever this encoder stands in for another."
    )


def locate(name: str, block: EncoderBlock, data_root: Path | None) -> tuple[Path, dict[str, Input]]:
    """Find the encoder in the first source that is there and check its weights.

    Returns:
        Its folder, and where the weights came from.

    Raises:
        DataError: if no source is there, or the weights are not the pinned ones.
    """
    tried = []
    for source in block.sources:
        try:
            folder, label = _locate(source, data_root)
        except MissingError as error:
            tried.append(str(error))
            continue
        return folder, {"weights": Input(path=label, sha256=_checked(name, source, folder))}
    raise DataError(f"encoders.{name}: no source is there: {'; '.join(tried)}.")


def copy_files(origin: Path, folder: Path) -> None:
    """Copy weights, configuration and tokeniser, and nothing else."""
    for file in FILES:
        if (origin / file).exists():
            shutil.copyfile(origin / file, folder / file)


def _locate(source: EncoderSource, data_root: Path | None) -> tuple[Path, str]:
    if source.kind == "hub":
        return _download(source), f"hub:{source.repository}@{source.revision}/{WEIGHTS}"
    if source.kind == "package":
        spec = find_spec(str(source.package))
        if spec is None or spec.origin is None:
            raise MissingError(f"Python package {source.package} is not installed")
        root, label = Path(spec.origin).parent, f"package:{source.package}/"
    elif data_root is None:
        raise MissingError("no data root is set (setting data_root, or environment variable SEMBLANCE_DATA)")
    else:
        root, label = data_root, "local:"
    folder = root / str(source.path)
    if not folder.is_dir():
        raise MissingError(f"{folder} does not exist")
    return folder, f"{label}{source.path}/{WEIGHTS}"


def _download(source: EncoderSource) -> Path:
    from huggingface_hub import snapshot_download  # slow to import, and needed for this source alone

    with reaching(f"hub:{source.repository}@{source.revision}"):
        return Path(
            snapshot_download(str(source.repository), revision=source.revision, allow_patterns=list(FILES))
        )


def _checked(name: str, source: EncoderSource, folder: Path) -> str:
    weights = folder / WEIGHTS
    if not weights.exists():
        raise DataError(f"encoders.{name}: {folder} has no {WEIGHTS}. Convert the model to safetensors.")
    found = sha256_of(weights)
    if source.sha256 and found != source.sha256:
        raise DataError(f"{weights}: sha256 {found}; pinned {source.sha256}. Get the model again.")
    return found
