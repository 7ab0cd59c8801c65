"""Whether Transformers reads a tokeniser as its ``tokenizer.json`` says.

Transformers 5 builds tokenisers of the classes that it knows from their vocabulary, and leaves out normalisation and
splitting of the file. sentence-transformers does the same with it, so that nothing else would show it.
"""

from collections.abc import Iterator
from pathlib import Path

from workflow_scripts.data.published import TOKENISER, encoder_folder, unreadable

_SENTENCES = (
    "Paris is older than paris, isn't it?",
    "In 1999 they paid $2,024.50 (+3%) for 1½ of 10².",
    "Ärger über naïve façades; señor Łukasz çok güzel",
    " two  spaces,\ta tab,\na line and an end ",
    "北京 2008、東京 ニュース 한국어 Москва العربية हिन्दी",
    "e-mail ada_b@example.org #1 🙂 — “quoted” … ﬁne Ⅳ",
    f"a long word {'ab' * 60} and a longer one {'c' * 250}",
    "",
)
_WORDS = 2000
"""Entries of the vocabulary that are looked up, as they are and in capitals."""


def other_ids(folder: Path) -> Iterator[str]:
    """A label if the loaded tokeniser gives a sentence other token ids than tokenizer.json does.

    Sentences are a few in several scripts, and the words of the vocabulary with its added tokens.

    Raises:
        DataError: if the tokeniser cannot be loaded.
    """
    from tokenizers import Tokenizer  # slow to import
    from transformers import AutoTokenizer

    place = encoder_folder(folder)
    if not (place / TOKENISER).is_file():
        return
    try:
        said = Tokenizer.from_file(str(place / TOKENISER))
        loaded = AutoTokenizer.from_pretrained(place, local_files_only=True)
    except Exception as error:  # of whatever library reads one of its files
        raise unreadable(folder, "tokeniser", error) from error
    said.no_truncation()
    said.no_padding()
    words = sorted(said.get_vocab(with_added_tokens=False))
    words = words[:: max(1, len(words) // _WORDS)] + [
        f"a{t.content}b" for t in said.get_added_tokens_decoder().values()
    ]
    for text in (*_SENTENCES, *words, *map(str.title, words)):
        if said.encode(text).ids != loaded(text, verbose=False)["input_ids"]:
            found = f"other token ids than the encoder's {TOKENISER} says"
            yield f"Transformers gives {found}, as for '{' '.join(text.split())[:40]}'"
            return
