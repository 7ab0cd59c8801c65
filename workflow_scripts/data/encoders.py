"""Published encoders: the search for the first available source, and checks that they can be used."""

import math
from pathlib import Path

from workflow_scripts.data.published import (
    ADAPTER,
    CONFIG,
    MODULES,
    ON_HUB,
    SHARDS,
    WEIGHTS,
    check_inside,
    encoder_folder,
    files_of,
    input_settings,
    published_modules,
    unreadable,
)
from workflow_scripts.data.sources import as_pinned, first_available, source_folder
from workflow_scripts.errors import DataError, MissingError
from workflow_scripts.provenance.record import Input
from workflow_scripts.settings.sources import EncoderSource, Fetch, HubEncoder


def locate(name: str, block: Fetch, data_root: Path | None) -> tuple[Path, dict[str, Input]]:
    """Return the folder of an encoder in the first available source, with checked files.

    Returns:
        The folder, and the origin of each file to copy, by its name.

    Raises:
        DataError: if no source is available, or a file differs from the pinned one.
    """

    def find(source: EncoderSource) -> tuple[Path, dict[str, Input]]:
        label, folder = source.prefix, source_folder(source, data_root, "model", ON_HUB)
        if not isinstance(source, HubEncoder):
            label, folder = f"{label}{source.path}/", folder / source.path
        if not folder.is_dir():
            raise MissingError(f"{folder} does not exist")
        pins = source.sha256 or dict.fromkeys(files_of(folder))  # only the pinned files of a pinned source
        check_inside(folder, pins)
        weights = {encoder_folder(folder) / name for name in (WEIGHTS, SHARDS)}
        if not any(file.is_file() for file in weights & {*map(folder.joinpath, pins)}):
            raise DataError(f"{folder}: no {WEIGHTS}. Convert the model to safetensors.")
        advice = "Obtain the model again, or pin these files."
        return folder, {
            file: as_pinned(folder / file, f"{label}{file}", pin, advice) for file, pin in pins.items()
        }

    return first_available(f"encoders.{name}", block.sources, find, "Provide one of these sources.")


def check_usable(folder: Path) -> None:
    """Raise DataError unless an encoder can be used, by its configuration and its tokeniser.

    Raises:
        DataError: if the folder needs its own code, has another first module, refers to a tokeniser outside, or has
            quantised weights, an adapter, or a token without a row in the embedding matrix.
    """
    from transformers import AutoConfig, AutoTokenizer  # slow to import

    root, options = encoder_folder(folder), {"local_files_only": True, "trust_remote_code": False}
    modules = published_modules(folder)
    for module in modules:  # sentence-transformers would run code of a local folder
        if module.type.partition(".")[0] != "sentence_transformers":
            problem = f"'{module.type}' is code of the folder, which is never run"
            raise DataError(f"{folder / MODULES}: {problem}. Choose an encoder without it.")
    if modules and modules[0].kind != "Transformer":
        problem = f"'{modules[0].kind}' is the first module, which is not supported"
        raise DataError(f"{folder / MODULES}: {problem}. Choose an encoder of Transformers.")
    file, settings = input_settings(folder)
    if elsewhere := settings.get("tokenizer_name_or_path"):
        problem = f"tokenizer_name_or_path: '{elsewhere}', which is outside the folder"
        raise DataError(f"{file}: {problem}. Put the tokeniser's files into the folder.")
    if (root / ADAPTER).exists():
        advice = "Merge it into the weights (merge_and_unload of peft) and remove its files."
        raise DataError(f"{root / ADAPTER}: an adapter, which is not applied. {advice}")
    try:
        config = AutoConfig.from_pretrained(root, **options)
        tokeniser = AutoTokenizer.from_pretrained(root, **options)
    except Exception as error:  # the libraries that read these files raise many types
        raise unreadable(folder, "configuration or tokeniser", error) from error
    if config.to_dict().get("quantization_config"):
        problem = "the weights are quantised"
        raise DataError(f"{root / CONFIG}: {problem}. Choose the encoder in float32 or half precision.")
    last, rows = max(tokeniser.get_vocab().values()), getattr(config, "vocab_size", math.inf)
    if last >= rows:
        problem = f"the tokeniser has ids up to {last}, but the embedding matrix has only {rows} rows"
        raise DataError(
            f"{root}: {problem}. Enlarge the matrix (resize_token_embeddings), or remove the tokens."
        )
