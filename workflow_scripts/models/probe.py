"""The check of an encoder that arrives: its copy, and whatever is saved of it, gives the published vectors.

The pipeline copies a published folder, computes some families with code of its own, and saves each run as a folder
again. Here a few sentences go through all of this, and through sentence-transformers or Transformers on the published
folder, one sentence at a time. Token ids must be equal, and vectors too but for rounding, whatever stands beside a
sentence or was read before it.
"""

import json
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors import safe_open
from transformers import AutoModel, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase

from workflow_scripts.data.published import (
    ALONE,
    MODULES,
    ONLY_AS_PUBLISHED,
    TOKENISER,
    applied_as_published,
    encoder_folder,
    input_settings,
    published_modules,
    reason_of,
)
from workflow_scripts.errors import DataError, SemblanceError
from workflow_scripts.models.encoder import (
    SentenceEncoder,
    attend_both_ways,
    hidden_states,
    load_backbone,
    load_tokenizer,
    longest_sentence,
    max_position_embeddings,
)
from workflow_scripts.models.encoding import encode
from workflow_scripts.models.folders import ENCODER_FILE, load_saved, save_encoder
from workflow_scripts.models.readouts.as_published import PublishedEncoder
from workflow_scripts.models.readouts.base import weighted_mean
from workflow_scripts.models.tokens import tokenise
from workflow_scripts.settings.readouts import AsPublished, Pooling

LARGEST = 2_500_000_000
"""Bytes of weights in float32 up to which the job that fetches an encoder loads it: XLM-R-large has 2.2 GB."""
TOLERANCE = 1e-4
"""Largest distance of two vectors, as a share of their length, that is taken for rounding."""
MOST_TOKENS = 1024
"""Longest sentence. BigBird attends to all tokens of shorter ones than 704, and Longformer than 512."""
SENTENCES = (
    " ".join(f"{number} old towns by the Rivers, in {1900 + number % 97}:" for number in range(200)),
    "no",
    "Paris is older than paris, isn't it?",
    "The King of the North met 40 people, and none of them had seen the sea before the winter.",
    "In 1999 they paid $2,024.50 (+3%) for 1½ of 10².",
    "Ärger über naïve façades; señor Łukasz çok güzel",
    " two  spaces,\ta tab,\na line and an end ",
    "北京 2008、東京 ニュース 한국어 Москва العربية हिन्दी",
    "e-mail ada_b@example.org #1 🙂 — “quoted” … ﬁne Ⅳ",
    f"a long word {'ab' * 60} and a longer one {'c' * 250}",
    "A [MASK] by the [SEP] river, a <mask> in <s> town </s>, [CLS] [PAD] [UNK] <pad> and <unk>.",
    "A dog.",
)
"""Long and short, the longest first, with capitals, accents, several scripts, marks and unknown characters."""
TOGETHER = 4
"""Number of sentences, from the first, that are read in one batch, padded to the longest."""
_MEAN = Pooling(kind="pooling", pooler="avg", layers=None)

Vectors = NDArray[np.float32]
Read = Callable[[Sequence[str]], Vectors]
"""A way to read sentences in one batch, as (N, D)."""


def is_large(folder: Path) -> bool:
    """Whether an encoder is too large to be loaded by the job that fetches it."""
    sizes = 0
    for file in encoder_folder(folder).glob("model*.safetensors"):
        with safe_open(file, "pt") as weights:
            sizes += sum(math.prod(weights.get_slice(name).get_shape()) for name in weights.offset_keys())
    return sizes * torch.float32.itemsize > LARGEST


def check_encoder(origin: Path, copy: Path, scratch: Path) -> list[str]:
    """Check a copied encoder, as published and without the modules behind it, and what is saved of both.

    If only the published modules give the published vectors, the reason is written into the copy, and stops methods
    that read the encoder without them (``load_backbone``).

    Args:
        origin: The published folder.
        copy: The folder that jobs read.
        scratch: A folder that does not exist yet, for a saved model.

    Returns:
        Labels.

    Raises:
        DataError: if no method can read the encoder, or some vector is not the published one.
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
        raise DataError(
            f"{setting}, applied by {ALONE}, for which {MODULES} is missing. Choose another encoder."
        )
    try:
        _check_alone(origin, copy, scratch / "alone")
    except SemblanceError as error:
        if not modules:
            raise
        (copy / ONLY_AS_PUBLISHED).write_text(json.dumps({"reason": str(error)}) + "\n", "utf-8")
    return labels


def check_large(folder: Path, *, as_published: bool = False) -> None:
    """Check an encoder that was too large for the job that fetched it; the others were checked there.

    Args:
        folder: The folder of a fetched encoder, which is also its reference; that of a run is not checked again.
        as_published: Whether it is read with the published modules.

    Raises:
        DataError: if some vector is not that of Transformers, or of sentence-transformers.
    """
    if not (folder / ENCODER_FILE).exists() and is_large(folder):
        check = _check_as_published if as_published else _check_alone
        check(folder, folder, None)


def _check_as_published(origin: Path, copy: Path, saved: Path | None) -> None:
    """Check the vectors of sentence-transformers from the copy, and from a run's model folder."""
    from sentence_transformers import SentenceTransformer  # slow to import

    options: Any = {"device": "cpu", "local_files_only": True}
    with _told(origin, copy, "its copy cannot be read as published"):
        encoder = PublishedEncoder(copy, AsPublished(kind="as_published", prompt=None)).eval()
        encoder.check_weights()
        _check_positions(origin, encoder)
        vectors = _in_two_ways(_encode(encoder.model))
        if saved is not None:
            saved.mkdir(parents=True)
            save_encoder(saved, encoder, encoder.tokenizer)
    del encoder
    # Only now, since what the copy has suffices: sentence-transformers would else read pickles of the folder.
    with _told(origin, copy, "sentence-transformers cannot read it"):
        arguments = {"dtype": "float32", "use_safetensors": True}
        model: Any = SentenceTransformer(str(origin), model_kwargs=arguments, **options)
        expected = _one_by_one(_encode(model))
    _compare(origin, expected, vectors, "as published")
    if saved is not None:
        with _told(origin, copy, "it cannot be loaded when it is saved"):
            again = SentenceTransformer(str(saved), **options)
            _check_equal(origin, expected, _one_by_one(_encode(again)), "saved and loaded")


def _check_positions(folder: Path, encoder: PublishedEncoder) -> None:
    """Check that an encoder has as many positions as its longest input has tokens.

    Raises:
        DataError: naming both numbers.
    """
    positions, longest = max_position_embeddings(encoder.backbone), encoder.model.max_seq_length
    if positions is not None and longest is not None and longest > positions:
        problem = f"max_seq_length: {longest}, but the encoder has {positions} positions"
        raise DataError(f"{input_settings(folder)[0]}: {problem}. Set it to {positions} or less.")


def _encode(model: Any, longest: int = MOST_TOKENS) -> Read:
    """Read sentences as a ``SentenceTransformer`` does, up to ``longest`` tokens."""
    model.max_seq_length = min(model.max_seq_length or longest, longest)
    return lambda sentences: model.encode([*sentences], show_progress_bar=False)


def _check_alone(origin: Path, copy: Path, saved: Path | None) -> None:
    """Check the mean of the encoder's last states, from the copy and from a run's model folder."""
    from sentence_transformers import SentenceTransformer  # slow to import

    with _told(origin, copy, "its copy cannot be read"):
        backbone, tokenizer = load_backbone(copy), load_tokenizer(copy)
        longest = min(MOST_TOKENS, longest_sentence(backbone, tokenizer))
        vectors = _in_two_ways(_means(backbone, tokenizer, longest))
        if (found := vectors[0].shape[1]) != (width := backbone.config.hidden_size):
            problem = f"its states have {found} entries, hidden_size of its configuration is {width}"
            raise DataError(f"{origin}: {problem}. Choose another encoder.")
    with _told(origin, copy, "Transformers cannot read it"):
        expected = _one_by_one(_transformers(origin, longest))
    _compare(origin, expected, vectors, "without its modules")
    if saved is None:
        return
    with _told(origin, copy, "it cannot be saved and loaded"):
        saved.mkdir(parents=True)
        save_encoder(saved, SentenceEncoder(backbone, _MEAN, head=False, head_at_test=False), tokenizer)
        del backbone
        encoder, tokenizer = load_saved(saved).eval(), load_tokenizer(saved)
        again = _one_by_one(lambda sentences: encode(encoder, tokenizer, sentences, longest))
        _check_equal(origin, expected, again, "saved and loaded")
        model = SentenceTransformer(str(saved), device="cpu", local_files_only=True)
        _check_equal(origin, expected, _one_by_one(_encode(model, longest)), "saved and loaded")


def _means(backbone: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, longest: int) -> Read:
    """Read means of an encoder's last states over tokens, as the pipeline computes them."""

    def read(sentences: Sequence[str]) -> Vectors:
        text = tokenise(tokenizer, sentences, longest)
        batch = text.batch(range(len(text)))
        with torch.inference_mode():
            (states_BTD,) = hidden_states(backbone, batch, "last")
            vectors: Vectors = weighted_mean(states_BTD, batch.mask_BT).numpy()
        return vectors

    return read


def _transformers(folder: Path, longest: int) -> Read:
    """Read the same of one sentence with Transformers, from whatever the tokeniser returns."""
    place, options = encoder_folder(folder), {"local_files_only": True, "trust_remote_code": False}
    tokenizer = AutoTokenizer.from_pretrained(place, **options)
    model: Any = AutoModel.from_pretrained(place, dtype="float32", use_safetensors=True, **options).eval()
    if not getattr(model.config, "is_causal", True):
        attend_both_ways(model)

    def read(sentences: Sequence[str]) -> Vectors:
        (sentence,) = sentences
        given = tokenizer(sentence, truncation=True, max_length=longest, return_tensors="pt")
        with torch.inference_mode():
            vectors: Vectors = model(**given).last_hidden_state.mean(dim=1).numpy()
        return vectors

    return read


def _one_by_one(read: Read, order: int = 1) -> Vectors:
    """Vectors of the sentences, each in a batch of its own, by default from the longest."""
    return np.concatenate([read([sentence]) for sentence in SENTENCES[::order]])[::order]


def _in_two_ways(read: Read) -> tuple[Vectors, Vectors]:
    """Vectors of the sentences, each read before longer ones; and of the first, in a batch with longer ones."""
    return _one_by_one(read, -1), read(SENTENCES[:TOGETHER])


def _compare(folder: Path, expected: Vectors, vectors: tuple[Vectors, Vectors], what: str) -> None:
    """Check that vectors are those expected, whichever sentences were read before or in the same batch.

    Raises:
        DataError: naming a sentence, and when its vector is another one.
    """
    before, beside = vectors
    _check_equal(folder, expected, before, f"{what}, read before longer ones")
    _check_equal(folder, expected[:TOGETHER], beside, f"{what}, in a batch with longer ones")


def _check_equal(folder: Path, expected: Vectors, vectors: Vectors, when: str) -> None:
    """Check that two sets of vectors are equal but for rounding.

    Raises:
        DataError: naming the sentence with the largest distance.
    """
    if vectors.shape != expected.shape:
        problem = f"{when}, its vectors have {vectors.shape[1]} entries, those published {expected.shape[1]}"
        raise DataError(f"{folder}: {problem}. Choose another encoder.")
    if not np.isfinite(expected).all():
        raise DataError(f"{folder}: its published vectors are not all finite. Choose another encoder.")
    away = np.linalg.norm(vectors - expected, axis=1) / np.linalg.norm(expected, axis=1)
    away[~np.isfinite(away)] = np.inf
    worst = int(away.argmax())
    if away[worst] > TOLERANCE:
        found = (
            f"{when}, {SENTENCES[worst][:40]!r} has a vector {away[worst]:.2%} away from the published one"
        )
        raise DataError(f"{folder}: {found}. Choose another encoder.")


@contextmanager
def _told(folder: Path, copy: Path, what: str) -> Iterator[None]:
    """Turn an error of the libraries, or of a part that an encoder does not have, into a line on its folder."""
    try:
        yield
    except SemblanceError as error:
        raise DataError(str(error).replace(str(copy), str(folder))) from error
    except Exception as error:  # each library, and each family of encoders, has its own errors
        problem = f"{what}: {type(error).__name__}: {reason_of(error)}"
        raise DataError(f"{folder}: {problem}. Choose another encoder.") from error


def check_tokens(origin: Path, copy: Path) -> list[str]:
    """Check that the copied tokeniser gives the published token ids.

    Returns:
        A label if Transformers gives a sentence other token ids than tokenizer.json. Transformers 5 builds tokenisers
        of the classes that it knows from their vocabulary, and ignores the file's rules of normalisation and splitting;
        so does sentence-transformers.

    Raises:
        DataError: naming the first sentence with other ids, or whatever else the tokeniser returns.
    """
    from tokenizers import Tokenizer  # slow to import

    with _told(origin, copy, "its tokeniser cannot be read"):
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
                    raise DataError(f"{origin}: {problem}. Give the encoder a tokenizer.json.")
    file = encoder_folder(copy) / TOKENISER
    if not file.is_file():
        return []
    expected = Tokenizer.from_file(str(file))
    expected.no_truncation()
    expected.no_padding()
    differing = (text for text in SENTENCES[::-1] if expected.encode(text).ids != ours(text)["input_ids"])
    if (text := next(differing, None)) is None:
        return []
    told = f"Transformers gives other token ids than the encoder's {TOKENISER} says, as for"
    return [f"{told} '{' '.join(text.split())[:40]}'"]
