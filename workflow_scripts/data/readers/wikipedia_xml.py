"""Sentences of a MediaWiki XML dump, without markup.

Reads pages of the article namespace that are not redirects. Tables and image captions are removed here, since gensim
keeps their words; gensim's ``filter_wiki`` removes templates, references and links; its leftovers (headings, list
marks, quotation marks, entities) are removed here too. Then paragraphs are split into sentences.
"""

import bz2
import html
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from gensim.corpora.wikicorpus import extract_pages, filter_wiki, remove_template

from workflow_scripts.data.readers import Files, Rows
from workflow_scripts.data.sentences import keep_sentences, split_sentences
from workflow_scripts.settings.readers import WikipediaXml as Config

_LISTED = re.compile(r"^\s*[*#:;|!{}=<]")  # a list, table, heading or left-over markup, not running text
_TABLE = re.compile(r"\{\|(?:(?!\{\||\|\}).)*\|\}", re.DOTALL)  # an innermost table
_FILE = re.compile(r"\[\[(?:File|Image):(?:[^\[\]]|\[\[[^\[\]]*\]\]|\[[^\[\]]*\])*\]\]", re.IGNORECASE)
_QUOTES = re.compile(r"'{2,}")
_TAGS = re.compile(r"<[^<>]*>")
_LEFT_OVER = re.compile(r"\[\[|\]\]|\{\{|\}\}|\||https?://")
_EMPTY_BRACKETS = re.compile(r"\(\s*[;,.]*\s*\)")
_BEFORE_POINT = re.compile(r"\s+([,.;:)])")
_ENDS = (".", "!", "?", '."', '!"', '?"', ".)", ".'")


def read(files: Files, options: Config) -> Rows:
    """Read the bz2-compressed dump of role ``dump``.

    Returns:
        Rows of the form ``sentences``.
    """
    dropped: Counter[str] = Counter()
    documents = list(_documents(files["dump"], dropped))
    table, cut = keep_sentences(documents, options.min_words, options.max_words)
    return Rows(table, dropped + cut)


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
    """Remove templates, tables, and images with their captions, innermost first."""
    text = _FILE.sub("", remove_template(html.unescape(wikitext)))
    tables = 1
    while tables:
        text, tables = _TABLE.subn("\n", text)
    return text


def _clean(paragraph: str) -> str:
    text = _TAGS.sub(" ", _QUOTES.sub("", html.unescape(paragraph)))
    text = _EMPTY_BRACKETS.sub("", text.replace("\N{NO-BREAK SPACE}", " "))
    return _BEFORE_POINT.sub(r"\1", " ".join(text.split()))
