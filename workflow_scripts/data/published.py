"""What sentence-transformers would make of an encoder's folder: its modules, its prompts, and what is not done here.

``modules.json`` names modules in order, each with a folder of its own; ``config_sentence_transformers.json`` holds
prompts by name. A folder is somebody else's: no name in it leads out of it, no code of it is run, no pickle read.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, ConfigDict, Field, RootModel, ValidationError

from workflow_scripts.errors import DataError
from workflow_scripts.settings.readouts import ReadoutConfig
from workflow_scripts.settings.start import Published

MODULES, PROMPTS, LENGTH = "modules.json", "config_sentence_transformers.json", "sentence_bert_config.json"
WEIGHTS, SHARDS = "model.safetensors", "model.safetensors.index.json"
ON_HUB = (SHARDS, "model-*.safetensors", MODULES, PROMPTS, f"*_*/{WEIGHTS}", "*_*/config.json")
"""Patterns of what ``more_files`` may name."""
HONOURED = ("Pooling", "Dense", "LayerNorm", "Normalize")
"""Modules that may follow the encoder."""
ALONE = "readout as_published alone"
"""What applies modules and prompts that were published with an encoder."""
_FLAGS = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}
"""Pooling's modes by the flags that older releases wrote."""
_WEIGHTED = ("Dense", "LayerNorm")
_NAME = re.compile(r"\w[\w.-]*")
FileT = TypeVar("FileT", bound=BaseModel)


class _File(BaseModel):
    """Base of the files: the keys that are read."""

    model_config = ConfigDict(strict=True)


class Module(_File):
    """An entry of ``modules.json``."""

    type: str
    path: str

    @property
    def kind(self) -> str:
        """The name of its class."""
        return self.type.rpartition(".")[2]


class _Prompts(_File):
    prompts: dict[str, str] | None = None
    default_prompt_name: str | None = None
    model_type: str = "SentenceTransformer"


class _Input(_File):
    """Settings of the encoder's input; all but the first change the text."""

    max_seq_length: int | None = None
    do_lower_case: bool | None = None
    query_length: int | None = None
    document_length: int | None = None


class _Architecture(_File):
    model_type: str | None = None
    auto_map: dict[str, Any] | None = None


class _Shards(_File):
    weight_map: dict[str, str]


class _Following(_File):
    """Settings of a module behind the encoder."""

    embedding_dimension: int | None = None
    word_embedding_dimension: int | None = None
    pooling_mode: str | list[str] | None = None
    pooling_mode_cls_token: bool = False
    pooling_mode_max_tokens: bool = False
    pooling_mode_mean_tokens: bool = False
    pooling_mode_mean_sqrt_len_tokens: bool = False
    pooling_mode_weightedmean_tokens: bool = False
    pooling_mode_lasttoken: bool = False
    include_prompt: bool = True
    in_features: int | None = None
    out_features: int | None = None
    activation_function: str | None = None

    @property
    def modes(self) -> list[str]:
        """What a Pooling puts side by side."""
        if self.pooling_mode is not None:
            return [self.pooling_mode] if isinstance(self.pooling_mode, str) else self.pooling_mode
        return [mode for flag, mode in _FLAGS.items() if getattr(self, flag)]

    def width(self, before: int | None) -> int | None:
        """Of its vectors; a Pooling puts one for each mode side by side, a Dense says its own."""
        single = self.embedding_dimension or self.word_embedding_dimension
        return self.out_features or (single * len(self.modes) if single else before)


class _Modules(RootModel[Annotated[list[Module], Field(min_length=1)]]):
    """All of ``modules.json``."""


def _read(file: Path, kind: type[FileT], **missing: Any) -> FileT:
    """What a file holds; ``missing`` stands for one that is not there.

    Raises:
        DataError: if it holds something else.
    """
    try:
        return kind.model_validate_json(file.read_bytes()) if file.exists() else kind(**missing)
    except ValidationError as error:
        first = error.errors()[0]
        place = "".join(f"{part}: " for part in first["loc"])
        raise DataError(f"{file}: {place}{first['msg']}. Get the model again.") from error


def modules_of(folder: Path) -> list[Module]:
    """The modules of a folder; none where it is not of sentence-transformers.

    Raises:
        DataError: if the file holds no list of modules, or one lies elsewhere.
    """
    if not (folder / MODULES).exists():
        return []
    modules = _read(folder / MODULES, _Modules).root
    for number, module in enumerate(modules):
        in_root = number == 0 and not module.path  # where the encoder may lie
        if not in_root and not _NAME.fullmatch(module.path):
            found = f"{number}: path: '{module.path}' is no folder's name"
            raise DataError(f"{folder / MODULES}: {found}. Get the model again.")
    return modules


def _shards(folder: Path) -> list[str]:
    """The files that the index of the weights names; none without an index."""
    return sorted({*_read(folder / SHARDS, _Shards, weight_map={}).weight_map.values()})


def more_files(folder: Path) -> list[str]:
    """Files beside the usual ones: shards of the weights, and the modules that follow the encoder.

    Raises:
        DataError: if a name leads out of the folder.
    """
    shards = _shards(folder)
    if outside := next((name for name in shards if not _NAME.fullmatch(name)), None):
        raise DataError(f"{folder / SHARDS}: {outside} is no file's name. Get the model again.")
    parts = [
        f"{module.path}/{file}" for module in modules_of(folder)[1:] for file in ("config.json", WEIGHTS)
    ]
    return [SHARDS, *shards, MODULES, PROMPTS, *parts]


def refusals(folder: Path) -> Iterator[str]:
    """Why nothing can be made of a folder, a line each: damage, code of its own, or no encoder of Transformers."""
    try:
        more_files(folder)
        read_published(folder)
        modules, config = modules_of(folder), _read(folder / "config.json", _Architecture)
    except DataError as error:
        yield str(error)
        return
    if (folder / "config.json").exists() and config.model_type is None and not config.auto_map:
        yield f"{folder / 'config.json'}: no model_type. Get the model again."
    missing = [file for file in _shards(folder) if not (folder / file).is_file()]
    if missing and not (folder / WEIGHTS).is_file():  # which Transformers reads before any shards
        yield f"{folder / SHARDS}: it names {missing[0]}, which is not there. Get the model again."
    for number, module in enumerate(modules):
        if module.type.partition(".")[0] != "sentence_transformers":
            found = f"{module.type} is code of the folder, which is never run. Take an encoder without."
            yield f"{folder / MODULES}: {found}"
        elif number == 0 and module.kind != "Transformer":
            found = f"{module.kind} comes first, which is not supported. Take an encoder of Transformers."
            yield f"{folder / MODULES}: {found}"
    if config.auto_map:
        from transformers import CONFIG_MAPPING  # slow to import

        if (name := config.model_type or "an unnamed model") not in CONFIG_MAPPING:
            found = f"{name} is code of the folder (trust_remote_code), which is never run"
            yield f"{folder / 'config.json'}: {found}, and Transformers has none of that name. Take another encoder."


def read_published(folder: Path) -> Published:
    """What a folder adds to its encoder.

    Raises:
        DataError: if a name leads out of the folder, or a file holds something else than it should.
    """
    texts, modules = _read(folder / PROMPTS, _Prompts), modules_of(folder)
    following = [_following(folder, module) for module in modules[1:]]
    poolings = [
        settings.modes
        for module, settings in zip(modules[1:], following, strict=True)
        if module.kind == "Pooling"
    ]
    return Published(
        prompts=tuple((texts.prompts or {}).items()),
        default=texts.default_prompt_name,
        unmet=tuple(_unmet(folder, texts, modules, following)),
        first_token=poolings == [["cls"]],
    )


def other_pooling(folder: Path, readout: ReadoutConfig) -> Iterator[str]:
    """A label where a readout pools other tokens than the folder's authors do."""
    for module in [] if readout.needs_frozen else modules_of(folder)[1:]:
        modes = _following(folder, module).modes
        if module.kind == "Pooling" and modes != [getattr(readout, "mode", None)]:
            yield f"the encoder was published with {' and '.join(modes)} pooling, applied by {ALONE}"


def _following(folder: Path, module: Module) -> _Following:
    """Settings of a module; defaults for one that is not supported, which may mean other things by these names."""
    known = module.kind in HONOURED
    return _read(folder / module.path / "config.json", _Following) if known else _Following()


def _unmet(
    folder: Path, texts: _Prompts, modules: Sequence[Module], following: Sequence[_Following]
) -> Iterator[str]:
    """What sentence-transformers would do, and this pipeline does not."""
    if not modules:
        yield f"{folder} has no {MODULES} (of a pinned source, only files that it pins are taken)"
        return
    if texts.model_type != "SentenceTransformer":
        yield f"{folder / PROMPTS}: {texts.model_type} makes no vector of a sentence"
    width: int | None = None
    for module, settings in zip(modules[1:], following, strict=True):
        if module.kind not in HONOURED:
            yield f"{folder / MODULES}: {module.kind} ({module.path}) is not done here"
            continue
        yield from _unmet_by(folder / module.path, module.kind, settings, width)
        width = settings.width(width)
        if not settings.include_prompt and any((texts.prompts or {}).values()):
            yield f"{folder / module.path}: tokens of the prompt are left out of the pooling"
    if not any(module.kind == "Pooling" for module in modules):
        yield f"{folder / MODULES}: no Pooling, and so no vector of a sentence"
    read = _read(folder / LENGTH, _Input).model_dump(exclude={"max_seq_length"})
    if changed := [key for key, value in read.items() if value]:
        yield f"{folder / LENGTH}: {changed[0]} changes what is read"


def _unmet_by(place: Path, kind: str, settings: _Following, width: int | None) -> Iterator[str]:
    """The same of one module, which is given vectors of ``width``; None if that is unknown."""
    if kind in _WEIGHTED and not place.is_dir():
        yield f"{place} is not there"
    elif kind in _WEIGHTED and not (place / WEIGHTS).exists():
        yield f"{place} has no {WEIGHTS}, and pickles are not read"
    elif kind == "Dense" and None in (settings.in_features, settings.out_features):
        yield f"{place / 'config.json'}: it lacks in_features or out_features"
    elif width and settings.in_features not in (None, width):
        yield f"{place}: in_features {settings.in_features}, and what comes before it has {width}"
    if kind == "Pooling" and not (settings.width(None) and {*settings.modes} <= {*_FLAGS.values()}):
        yield f"{place / 'config.json'}: no pooling and width that are known"
    if settings.activation_function and not settings.activation_function.startswith("torch."):
        yield f"{place}: {settings.activation_function} is code of its own"
