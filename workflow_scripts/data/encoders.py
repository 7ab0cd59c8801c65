"""Published encoders: read from the first available source, checked, and compared with their tokeniser file."""

import math
from pathlib import Path
from typing import Any

from workflow_scripts.data.published import (
    ADAPTER,
    CONFIG,
    MODULES,
    ON_HUB,
    SHARDS,
    TOKENISER,
    WEIGHTS,
    copy_files,
    encoder_folder,
    files_of,
    input_settings,
    published_labels,
    published_modules,
    unreadable,
)
from workflow_scripts.data.sources import as_pinned, check_planned, data_root, first_available, source_folder
from workflow_scripts.errors import DataError, MissingError
from workflow_scripts.provenance.artefacts import writing_model_folder
from workflow_scripts.provenance.job import Job
from workflow_scripts.provenance.record import Input
from workflow_scripts.settings.sources import EncoderSource, Fetch, HubEncoder

_SENTENCES = (
    "Paris is older than paris, isn't it?",
    "In 1999 they paid $2,024.50 (+3%) for 1½ of 10².",
    "Ärger über naïve façades; señor Łukasz çok güzel",
    " two  spaces,\ta tab,\na line and an end ",
    "北京 2008、東京 ニュース 한국어 Москва العربية हिन्दी",
    "e-mail ada_b@example.org #1 🙂 — “quoted” … ﬁne Ⅳ",
    f"a long word {'ab' * 60} and a longer one {'c' * 250}",
)


def locate(name: str, block: Fetch, data_root: Path | None) -> tuple[Path, dict[str, Input]]:
    """Find the encoder in the first available source and check its files.

    Returns:
        Its folder, and the origin of each file to copy, by its name.

    Raises:
        DataError: if no source is available, or a file differs from the pinned one.
    """

    def find(source: EncoderSource) -> tuple[Path, dict[str, Input]]:
        label, folder = source.prefix, source_folder(source, data_root, "model", ON_HUB)
        if not isinstance(source, HubEncoder):
            label, folder = f"{label}{source.path}/", folder / source.path
        if not folder.is_dir():
            raise MissingError(f"{folder} does not exist")
        pins = source.sha256 or dict.fromkeys(files_of(folder))  # a pinned source has only the pinned files
        weights = {encoder_folder(folder) / name for name in (WEIGHTS, SHARDS)}
        if not any(file.is_file() for file in weights & {*map(folder.joinpath, pins)}):
            raise DataError(f"{folder}: no {WEIGHTS}. Convert the model to safetensors.")
        advice = "Get the model again, or pin this one."
        return folder, {
            file: as_pinned(folder / file, f"{label}{file}", pin, advice) for file, pin in pins.items()
        }

    return first_available(f"encoders.{name}", block.sources, find, "Provide one of them.")


def usable_tokeniser(folder: Path) -> Any:
    """The tokeniser of an encoder as Transformers loads it, if the encoder can be used.

    Raises:
        DataError: if the folder cannot be loaded without its own code, begins with another module, names a tokeniser
            outside, or has quantised weights, an adapter, or a token without a row in the embedding matrix.
    """
    from transformers import AutoConfig, AutoTokenizer  # slow to import

    place, options = encoder_folder(folder), {"local_files_only": True, "trust_remote_code": False}
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
    if (place / ADAPTER).exists():
        advice = "Merge it into the weights (merge_and_unload of peft) and remove its files."
        raise DataError(f"{place / ADAPTER}: an adapter, which is not applied. {advice}")
    try:
        config = AutoConfig.from_pretrained(place, **options)
        tokeniser = AutoTokenizer.from_pretrained(place, **options)
    except Exception as error:  # each library that reads one of the files has its own errors
        raise unreadable(folder, "configuration or tokeniser", error) from error
    if getattr(config, "quantization_config", None):
        problem = "the weights are quantised"
        raise DataError(f"{place / CONFIG}: {problem}. Choose the encoder in float32 or half precision.")
    last, rows = max(tokeniser.get_vocab().values()), getattr(config, "vocab_size", math.inf)
    if last >= rows:
        problem = f"the tokeniser has ids up to {last}, and the embedding matrix has {rows} rows"
        raise DataError(f"{place}: {problem}. Enlarge it (resize_token_embeddings), or remove the tokens.")
    return tokeniser


def other_ids(folder: Path, loaded: Any) -> list[str]:
    """A label if the loaded tokeniser gives a sentence other token ids than tokenizer.json.

    Transformers 5 builds tokenisers of the classes that it knows from their vocabulary, and ignores the file's rules of
    normalisation and splitting; sentence-transformers uses these tokenisers too. Compared are sentences in several
    scripts.
    """
    from tokenizers import Tokenizer  # slow to import

    file = encoder_folder(folder) / TOKENISER
    if not file.is_file():
        return []
    expected = Tokenizer.from_file(str(file))
    expected.no_truncation()
    expected.no_padding()
    told = f"Transformers gives other token ids than the encoder's {TOKENISER} says, as for"
    differing = (text for text in _SENTENCES if expected.encode(text).ids != loaded(text)["input_ids"])
    return [f"{told} '{' '.join(text.split())[:40]}'" for text in differing][:1]


def fetch_encoder(job: Job) -> None:
    """Copy one published encoder from the first of its sources that is available (rule fetch_encoder)."""
    name = job.wildcards["encoder"]
    block = Fetch.parse(job.settings["encoder"], f"encoders.{name}")
    origin, source = locate(name, block, data_root())
    found = {given.path: given.sha256 for given in source.values()}
    check_planned(f"encoders.{name}", job.settings["source"], found)
    labels = [*published_labels(origin), *other_ids(origin, usable_tokeniser(origin))]
    record = job.record(foreign=source, labels=[block.label, *labels])
    with writing_model_folder(job.outputs["record"].parent, record) as folder:
        copy_files(origin, folder, source)
