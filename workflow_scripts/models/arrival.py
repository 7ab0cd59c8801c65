"""Check that a fetched encoder's copy, and models saved from it, give the published token ids and vectors."""

import json
from pathlib import Path
from typing import Any

from transformers import AutoTokenizer

from workflow_scripts.data.published import (
    ALONE,
    MODULES,
    ONLY_AS_PUBLISHED,
    TOKENISER,
    applied_as_published,
    encoder_folder,
    published_modules,
)
from workflow_scripts.errors import DataError, SemblanceError
from workflow_scripts.models.backbone import load_tokenizer
from workflow_scripts.models.probe import (
    ADVICE,
    MOST_TOKENS,
    SENTENCES,
    check_alone,
    check_equal,
    compare,
    encoding,
    errors_as,
    in_two_ways,
    is_large,
    one_by_one,
)
from workflow_scripts.models.readouts.as_published import PublishedEncoder
from workflow_scripts.settings.readouts import AsPublished


def check_encoder(origin: Path, copy: Path, scratch: Path) -> list[str]:
    """Check a copied encoder, as published and without its further modules, and models saved from both; return labels.

    If only the published modules give the published vectors, the reason is written into the copy. It stops methods that
    read the encoder without these modules (``load_backbone``).

    Args:
        origin: The published folder.
        copy: The folder that jobs read.
        scratch: A folder that does not exist yet, for a saved model.

    Returns:
        Labels.

    Raises:
        DataError: if no method can read the encoder, or a vector is not the published one.
    """
    labels = check_tokens(origin, copy)
    if is_large(copy):
        return labels
    modules = published_modules(copy)
    if modules:
        _check_as_published(origin, copy, scratch / "published")
    if setting := next(applied_as_published(origin), None):
        if modules:
            return labels
        raise DataError(f"{setting}, applied by {ALONE}, for which {MODULES} is missing.{ADVICE}")
    try:
        check_alone(origin, copy, scratch / "alone")
    except SemblanceError as error:
        if not modules:
            raise
        reason = {"reason": str(error).removesuffix(ADVICE)}
        (copy / ONLY_AS_PUBLISHED).write_text(json.dumps(reason) + "\n", "utf-8")
    return labels


def _check_as_published(origin: Path, copy: Path, saved: Path | None) -> None:
    """Check the vectors of sentence-transformers from the copy, and from a run's model folder."""
    from sentence_transformers import SentenceTransformer  # slow to import

    options: Any = {"device": "cpu", "local_files_only": True}
    with errors_as(origin, copy, "its copy cannot be read as published"):
        encoder = PublishedEncoder(copy, AsPublished(kind="as_published", prompt=None)).eval()
        encoder.check_weights()
        longest = min(MOST_TOKENS, encoder.positions or MOST_TOKENS)
        vectors = in_two_ways(encoder.probed)
        if saved is not None:
            saved.mkdir(parents=True)
            encoder.save(saved)
    del encoder
    # Only after the copy has proved complete: otherwise sentence-transformers would read pickles of the folder.
    with errors_as(origin, copy, "sentence-transformers cannot read it"):
        arguments = {"dtype": "float32", "use_safetensors": True}
        model: Any = SentenceTransformer(str(origin), model_kwargs=arguments, **options)
        expected = one_by_one(encoding(model, longest))
    compare(origin, expected, vectors, "as published")
    if saved is not None:
        with errors_as(origin, copy, "it cannot be loaded when it is saved"):
            again = SentenceTransformer(str(saved), **options)
            check_equal(origin, expected, one_by_one(encoding(again, longest)), "saved and loaded")


def check_tokens(origin: Path, copy: Path) -> list[str]:
    """Check that the copied tokeniser gives the published token ids; return labels.

    Returns:
        A label if Transformers gives a sentence other token ids than tokenizer.json. Transformers 5 builds tokenisers
        of known classes from their vocabulary, and ignores the file's rules of normalisation and splitting; so does
        sentence-transformers.

    Raises:
        DataError: with the first sentence with other ids, or with any other result of the tokeniser.
    """
    from tokenizers import Tokenizer  # slow to import

    with errors_as(origin, copy, "its tokeniser cannot be read"):
        theirs: Any = AutoTokenizer.from_pretrained(encoder_folder(origin), local_files_only=True)
        ours: Any = load_tokenizer(copy)
        longest = min(MOST_TOKENS, ours.model_max_length)
        calls: list[dict[str, Any]] = [
            {"truncation": True, "max_length": longest},
            {"truncation": True, "max_length": 8},
            {"add_special_tokens": False},
        ]
        for sentence in SENTENCES[::-1]:
            for call in calls:
                if dict(theirs(sentence, **call)) != dict(ours(sentence, **call)):
                    problem = f"its copy gives other token ids, as for {sentence[:40]!r}"
                    raise DataError(f"{origin}: {problem}. Add its tokenizer.json to the folder.")
    file = encoder_folder(copy) / TOKENISER
    if not file.is_file():
        return []
    expected = Tokenizer.from_file(str(file))
    expected.no_truncation()
    expected.no_padding()
    differing = (text for text in SENTENCES[::-1] if expected.encode(text).ids != ours(text)["input_ids"])
    if (text := next(differing, None)) is None:
        return []
    problem = f"Transformers gives other token ids than the encoder's {TOKENISER}, as for"
    return [f"{problem} '{' '.join(text.split())[:40]}'"]
