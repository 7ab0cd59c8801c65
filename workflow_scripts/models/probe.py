"""Test sentences that an encoder reads in several ways, which must all give the same vectors.

The pipeline computes some families with its own code, in padded batches, and saves each run as a new folder. An encoder
is compared with Transformers once, after it is fetched (``models.arrival``). If it is large, the jobs that start from
it compare it.
"""

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

from workflow_scripts.data.published import encoder_folder, reason_of
from workflow_scripts.errors import DataError, SemblanceError
from workflow_scripts.models.backbone import (
    attend_both_ways,
    hidden_states,
    load_backbone,
    load_tokenizer,
    longest_sentence,
)
from workflow_scripts.models.packed import entry_of
from workflow_scripts.models.readouts.base import weighted_mean
from workflow_scripts.models.tokens import tokenise

LARGEST = 2_500_000_000
"""Maximum bytes of float32 weights that the job that fetches an encoder loads: XLM-R-large has 2.2 GB."""
TOLERANCE = 1e-4
"""Maximum distance of two vectors, as a share of their length, that counts as rounding."""
MOST_TOKENS = 1024
"""Maximum length of a sentence. BigBird attends to all tokens of sentences below 704, Longformer below 512."""
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
"""Long and short sentences, the longest first, with capitals, accents, several scripts, marks, unknown characters."""
TOGETHER = 4
"""Number of first sentences that are read in one batch, padded to the longest."""
ADVICE = " Choose another encoder."

Vectors = NDArray[np.float32]
Read = Callable[[Sequence[str]], Vectors]
"""A function that embeds sentences in one batch, (N, D)."""


def is_large(folder: Path) -> bool:
    """Return whether an encoder is too large to be loaded by the job that fetches it."""
    sizes = 0
    for file in encoder_folder(folder).glob("model*.safetensors"):
        with safe_open(file, "pt") as weights:
            sizes += sum(math.prod(weights.get_slice(name).get_shape()) for name in weights.offset_keys())
    return sizes * torch.float32.itemsize > LARGEST


def check_large(folder: Path) -> None:
    """Compare the vectors of an encoder that is too large for the fetching job with those of Transformers.

    Raises:
        DataError: with a sentence whose vectors differ.
    """
    if is_large(folder):
        check_alone(folder, folder, None)


def check_alone(origin: Path, copy: Path, saved: Path | None) -> None:
    """Compare the mean of an encoder's last states, without further modules, with that of Transformers.

    Args:
        origin: The published folder, which Transformers reads.
        copy: The folder that jobs read.
        saved: A folder that does not exist yet, for the encoder as a run saves it; None to leave this out.

    Raises:
        DataError: with a sentence whose vectors differ, or with the step that failed.
    """
    from sentence_transformers import SentenceTransformer  # slow to import
    from sentence_transformers.base.modules import Transformer
    from sentence_transformers.sentence_transformer.modules import Pooling

    with errors_as(origin, copy, "its copy cannot be read"):
        backbone, tokenizer = load_backbone(copy), load_tokenizer(copy)
        longest = min(MOST_TOKENS, longest_sentence(backbone, tokenizer))
        vectors = in_two_ways(_means(backbone, tokenizer, longest))
        if (entries := vectors[0].shape[1]) != (width := backbone.config.hidden_size):
            problem = f"its states have {entries} entries, but hidden_size of its configuration is {width}"
            raise DataError(f"{origin}: {problem}.{ADVICE}")
    with errors_as(origin, copy, "Transformers cannot read it"):
        expected = one_by_one(_transformers(origin, longest))
    compare(origin, expected, vectors, "without its modules")
    if saved is None:
        return
    with errors_as(origin, copy, "it cannot be saved and loaded"):
        saved.mkdir(parents=True)
        backbone.save_pretrained(saved)
        tokenizer.save_pretrained(saved)
        width = backbone.config.hidden_size
        del backbone
        again = one_by_one(_means(load_backbone(saved), load_tokenizer(saved), longest))
        check_equal(origin, expected, again, "saved and loaded")
        modules = [Transformer(str(saved), max_seq_length=longest), Pooling(width, "mean")]
        theirs = one_by_one(encoding(SentenceTransformer(modules=modules, device="cpu")))
        check_equal(origin, expected, theirs, "saved and loaded by sentence-transformers")


def _means(backbone: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, longest: int) -> Read:
    """Return a function that reads the means of an encoder's last states, as computed by the pipeline."""

    def read(sentences: Sequence[str]) -> Vectors:
        text = tokenise(tokenizer, sentences, longest)
        batch = text.batch(range(len(text)))
        with torch.inference_mode():
            (states_BTD,) = hidden_states(backbone, batch, "last")
            vectors: Vectors = weighted_mean(states_BTD, batch.mask_BT).numpy()
        return vectors

    return read


def _transformers(folder: Path, longest: int) -> Read:
    """Return a function that reads the same means with Transformers, from all outputs of the tokeniser."""
    model_folder, options = encoder_folder(folder), {"local_files_only": True, "trust_remote_code": False}
    tokenizer = AutoTokenizer.from_pretrained(model_folder, **options)
    model: Any = AutoModel.from_pretrained(
        model_folder, dtype="float32", use_safetensors=True, **options
    ).eval()
    if entry_of(model.config, "is_causal") is False:
        attend_both_ways(model)

    def read(sentences: Sequence[str]) -> Vectors:
        (sentence,) = sentences
        given = tokenizer(sentence, truncation=True, max_length=longest, return_tensors="pt")
        with torch.inference_mode():
            vectors: Vectors = model(**given).last_hidden_state.mean(dim=1).numpy()
        return vectors

    return read


def encoding(model: Any, longest: int = MOST_TOKENS) -> Read:
    """Return a function that reads sentences with a ``SentenceTransformer``, up to ``longest`` tokens."""
    model.max_seq_length = min(model.max_seq_length or longest, longest)
    return lambda sentences: model.encode([*sentences], show_progress_bar=False)


def one_by_one(read: Read, order: int = 1) -> Vectors:
    """Return vectors of the sentences, each in its own batch, by default from the longest."""
    return np.concatenate([read([sentence]) for sentence in SENTENCES[::order]])[::order]


def in_two_ways(read: Read) -> tuple[Vectors, Vectors]:
    """Return vectors of the sentences, each read before longer ones; and of the first, in a batch with longer ones."""
    return one_by_one(read, -1), read(SENTENCES[:TOGETHER])


def compare(folder: Path, expected: Vectors, vectors: tuple[Vectors, Vectors], what: str) -> None:
    """Check that vectors are as expected, whichever sentences were read before or in the same batch.

    Raises:
        DataError: with a sentence, and the condition under which its vector differs.
    """
    before, beside = vectors
    check_equal(folder, expected, before, f"{what}, read before longer ones")
    check_equal(folder, expected[:TOGETHER], beside, f"{what}, in a batch with longer ones")


def check_equal(folder: Path, expected: Vectors, vectors: Vectors, when: str) -> None:
    """Check that two sets of vectors are equal up to rounding.

    Raises:
        DataError: with the sentence of the largest distance.
    """
    if vectors.shape != expected.shape:
        problem = (
            f"{when}, its vectors have {vectors.shape[1]} entries, the published ones {expected.shape[1]}"
        )
        raise DataError(f"{folder}: {problem}.{ADVICE}")
    if not np.isfinite(expected).all():
        raise DataError(f"{folder}: its published vectors are not all finite.{ADVICE}")
    away = np.linalg.norm(vectors - expected, axis=1) / np.linalg.norm(expected, axis=1)
    away[~np.isfinite(away)] = np.inf
    worst = int(away.argmax())
    if away[worst] > TOLERANCE:
        problem = (
            f"{when}, {SENTENCES[worst][:40]!r} has a vector {away[worst]:.2%} away from the published one"
        )
        raise DataError(f"{folder}: {problem}.{ADVICE}")


@contextmanager
def errors_as(folder: Path, copy: Path, what: str) -> Iterator[None]:
    """Turn an error of the libraries, or of a part that an encoder lacks, into one line with its folder."""
    try:
        yield
    except SemblanceError as error:
        raise DataError(str(error).replace(str(copy), str(folder))) from error
    except Exception as error:  # libraries and families of encoders raise different errors
        problem = f"{what}: {type(error).__name__}: {reason_of(error)}"
        raise DataError(f"{folder}: {problem}.{ADVICE}") from error
