"""Readers of running text, and its division into sentences."""

import bz2
import html
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from gensim.corpora.wikicorpus import extract_pages, filter_wiki, remove_template

from workflow_scripts.columns import SENTENCES
from workflow_scripts.data.readers import Files, SourceRows, plain_lines
from workflow_scripts.data.tables import table_of
from workflow_scripts.errors import DataError
from workflow_scripts.settings.sources import Lines, WikipediaXml, WikitextReader

# A full stop after one of these, or after a single capital letter, does not end a sentence.
_ABBREVIATIONS = {
    "Mr", "Mrs", "Ms", "Dr", "Prof", "St", "Gen", "Col", "Sgt", "Lt", "Capt", "Rev", "Hon", "Sen", "Rep",
    "Gov", "Jr", "Sr", "Inc", "Ltd", "Co", "Corp", "vs", "etc", "al", "cf", "ca", "c", "fl", "approx",
    "No", "Nos", "Vol", "vol", "pp", "p", "ed", "eds", "Jan", "Feb", "Mar", "Apr", "Jun", "Jul", "Aug",
    "Sep", "Sept", "Oct", "Nov", "Dec", "Fig", "fig", "Mt", "Ft", "e.g", "i.e", "U.S", "U.K",
}  # fmt: skip
_END = re.compile(r"(?<=[.!?])[\"')\]]*\s+(?=[\"'(\[]*[A-Z0-9])")
_LAST_WORD = re.compile(r"([\w.]+)\.$")
_INITIALS = re.compile(r"[A-Z]|([A-Za-z]\.)+[A-Za-z]")


def split_sentences(paragraph: str) -> list[str]:
    """Return the sentences of one paragraph; white space is normalised."""
    sentences: list[str] = []
    start = 0
    text = " ".join(paragraph.split())
    for end in _END.finditer(text):
        piece = text[start : end.start()]
        if not _is_abbreviated(piece):
            sentences.append(text[start : end.end()].strip())
            start = end.end()
    sentences.append(text[start:].strip())
    return [sentence for sentence in sentences if sentence]


def _is_abbreviated(piece: str) -> bool:
    last = _LAST_WORD.search(piece)
    return last is not None and (last[1] in _ABBREVIATIONS or _INITIALS.fullmatch(last[1]) is not None)


def keep_sentences(
    documents: Iterable[Iterable[str]], min_words: int, max_words: int
) -> tuple[pa.Table, Counter[str]]:
    """Return each distinct sentence of ``min_words`` to ``max_words`` words once, in order.

    Args:
        documents: The sentences of each document.
        min_words: Minimum number of words, separated by white space.
        max_words: Maximum number. ASSUME: longer ones are lists that lost their markup, not sentences.

    Returns:
        Columns of ``columns.SENTENCES``, and the number of sentences that each rule dropped.
    """
    dropped: Counter[str] = Counter()
    kept: dict[str, tuple[int, int]] = {}
    for document, sentences in enumerate(documents):
        for position, sentence in enumerate(sentences):
            words = len(sentence.split())
            if words < min_words:
                dropped[f"under {min_words} words"] += 1
            elif words > max_words:
                dropped[f"over {max_words} words"] += 1
            elif sentence in kept:
                dropped["repeated"] += 1
            else:
                kept[sentence] = (document, position)
    return table_of([(sentence, *origin) for sentence, origin in kept.items()], SENTENCES), dropped


def lines(files: Files, options: Lines) -> SourceRows:
    """Return the sentences of the file of role ``text``: one per line, plain text or gzip; each is a document.

    Published corpora are such files, and a paper's number of steps counts all lines, including repeated, short and
    blank ones. Cleaning is optional, and its counts are part of the result.

    Returns:
        Rows of the form ``sentences``.

    Raises:
        DataError: with the first line that is not UTF-8; or if all lines have cells separated by tabs, or are JSON.
    """
    raw = plain_lines(files["text"])
    if options.cleaning == "none":
        return SourceRows(table_of([(line, document, 0) for document, line in enumerate(raw)], SENTENCES))
    cleaned = [" ".join(line.split()) for line in raw]
    blank = Counter({"blank": cleaned.count("")})
    table, cut = keep_sentences(([line] for line in cleaned if line), options.min_words, options.max_words)
    return SourceRows(table, blank + cut)


_HEADING = re.compile(r"= .* =$")
_JOINED = re.compile(r" @([-,.])@ ")
_UNKNOWN = "<unk>"


def wikitext(files: Files, options: WikitextReader) -> SourceRows:
    """Return the sentences of a release of Wikitext, of all files in the order of the source.

    Each paragraph is a document and is split into sentences; headings are dropped. The tokenised release writes rare
    words as <unk>, and hyphens, commas and points inside words and numbers as ``@-@``; the raw release does neither.
    Papers seldom state the release, so both can be read.

    Returns:
        Rows of the form ``sentences``.

    Raises:
        DataError: if a text is missing, or the column ``text`` of a Parquet file has another type.
    """
    dropped: Counter[str] = Counter()
    rows: list[tuple[str, int, int]] = []
    document = 0
    for paragraph in (line.strip() for path in files.values() for line in _paragraphs(path)):
        if not paragraph or _HEADING.match(paragraph):
            dropped["heading" if paragraph else "blank"] += 1
            continue
        text = _JOINED.sub(r"\1", paragraph)
        if options.unknown is not None:
            text = text.replace(_UNKNOWN, options.unknown)
        for position, sentence in enumerate(split_sentences(text)):
            if len(sentence) < options.min_characters:
                dropped[f"under {options.min_characters} characters"] += 1
            else:
                rows.append((sentence, document, position))
        document += 1
    return SourceRows(table_of(rows, SENTENCES), dropped)


def _paragraphs(path: Path) -> list[str]:
    """Return the lines of a text file, or the column ``text`` of a Parquet file of the Hub."""
    if path.suffix != ".parquet":
        return plain_lines(path)
    schema = pq.read_schema(path)
    texts = [field.name for field in schema if _is_text(field.type)]
    if "text" not in texts:
        found = f"column text is {schema.field('text').type}" if "text" in schema.names else "no column text"
        problem = f"{found}; columns of text: {', '.join(texts) or 'none'}"
        raise DataError(f"{path}: {problem}. Obtain a file with a column text of texts.")
    lines: list[Any] = pq.read_table(path, columns=["text"])["text"].to_pylist()
    if None in lines:
        raise DataError(f"{path}: row {lines.index(None) + 1}: text is missing. Obtain the file again.")
    return lines


def _is_text(kind: pa.DataType) -> bool:
    values = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_string(values) or pa.types.is_large_string(values))


_LISTED = re.compile(r"^\s*[*#:;|!{}=<]")  # a list, table, heading or left-over markup, not running text
_TABLE = re.compile(r"\{\|(?:(?!\{\||\|\}).)*\|\}", re.DOTALL)  # an innermost table
_FILE = re.compile(r"\[\[(?:File|Image):(?:[^\[\]]|\[\[[^\[\]]*\]\]|\[[^\[\]]*\])*\]\]", re.IGNORECASE)
_QUOTES = re.compile(r"'{2,}")
_TAGS = re.compile(r"<[^<>]*>")
_LEFT_OVER = re.compile(r"\[\[|\]\]|\{\{|\}\}|\||https?://")
_EMPTY_BRACKETS = re.compile(r"\(\s*[;,.]*\s*\)")
_BEFORE_POINT = re.compile(r"\s+([,.;:)])")
_ENDS = (".", "!", "?", '."', '!"', '?"', ".)", ".'")


def wikipedia_xml(files: Files, options: WikipediaXml) -> SourceRows:
    """Return the sentences of the bz2-compressed MediaWiki XML dump of role ``dump``, without markup.

    Only pages of the article namespace that are not redirects are read. Tables and image captions are removed here,
    since gensim keeps their words. gensim's ``filter_wiki`` removes templates, references and links; its leftovers
    (headings, list marks, quotation marks, entities) are removed here, too. Then paragraphs are split into sentences.

    Returns:
        Rows of the form ``sentences``.
    """
    dropped: Counter[str] = Counter()
    documents = list(_documents(files["dump"], dropped))
    table, cut = keep_sentences(documents, options.min_words, options.max_words)
    return SourceRows(table, dropped + cut)


def _documents(path: Path, dropped: Counter[str]) -> Iterator[list[str]]:
    with bz2.open(path) as dump:
        for _title, text, _page in extract_pages(dump, filter_namespaces=("0",)):
            if not text.strip() or text.lstrip().lower().startswith("#redirect"):
                dropped["redirect, empty or no article"] += 1
                continue
            yield list(_sentences(text, dropped))


def _sentences(wikitext: str, dropped: Counter[str]) -> Iterator[str]:
    for paragraph in filter_wiki(_running_text(wikitext)).split("\n"):
        if not paragraph.strip():
            continue
        if _LISTED.match(paragraph):
            dropped["paragraph of list, table or heading"] += 1
            continue
        for sentence in split_sentences(_clean(paragraph)):
            if _LEFT_OVER.search(sentence):
                dropped["left-over markup"] += 1
            elif not sentence.endswith(_ENDS):
                dropped["no end of sentence"] += 1
            else:
                yield sentence


def _running_text(wikitext: str) -> str:
    """Return wikitext without templates, tables, and images with their captions, removed innermost first."""
    text = _FILE.sub("", remove_template(html.unescape(wikitext)))
    tables = 1
    while tables:
        text, tables = _TABLE.subn("\n", text)
    return text


def _clean(paragraph: str) -> str:
    text = _TAGS.sub(" ", _QUOTES.sub("", html.unescape(paragraph)))
    text = _EMPTY_BRACKETS.sub("", text.replace("\N{NO-BREAK SPACE}", " "))
    return _BEFORE_POINT.sub(r"\1", " ".join(text.split()))
