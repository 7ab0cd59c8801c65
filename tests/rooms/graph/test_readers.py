"""Readers that a configuration names."""

import pytest

from tests.support.snakemake_plans import settings_with
from tests.support.verb_answers import data
from workflow_scripts.settings.sources import reader_errors

COLUMNS = {"label": "y", "text1": "x"}


def dataset(**source):
    """A configuration with one dataset."""
    form = source.pop("form", "labelled")
    block = {
        "kind": "local",
        "reader": "delimited",
        "files": {"all": {}},
        "options": {"columns": COLUMNS},
    } | source
    files = {role: {"path": "mine.tsv", "sha256": None} for role in block["files"]}
    hub = {"kind": "hub", "repository": "a/b", "revision": "0" * 40, "splits": ["x"], "columns": {}}
    about = {"origin": "x", "url": "not stated", "language": "en", "licence": "x", "citation": "x"}
    mine = {"form": form, "sources": [hub, block | {"files": files}], "contract": {}, "about": about}
    return settings_with(datasets={"mine": mine})


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ({"reader": "delimitted"}, "reader: delimitted is not defined. Did you mean delimited?"),
        ({"reader": "base"}, "reader: base is not defined. "),
        ({"form": "pairs"}, "reader: delimited reads labelled, not pairs. Set form to labelled, or choose a reader of pairs."),
        ({"files": {"tests": {}}}, "files: tests is not a role of delimited. Did you mean test?"),
        (
            {"reader": "lee", "form": "pairs", "options": {}, "files": {"documents": {}}},
            "files: lee needs a file of role ratings. Add `ratings: ",
        ),
        (
            {"options": {"columns": COLUMNS, "seperator": ","}},
            "options.seperator: unknown key. Did you mean separator?",
        ),
        ({"options": {}}, "options.columns: missing. Add it, or check the block's name."),
        ({"options": {"columns": {"label": "y"}}}, "options.columns: label fit no form. Write score, sentence1"),
        ({"options": {"columns": COLUMNS, "header": ["y"]}}, "options.columns: x is not in header. Choose from: y."),
        ({"options": {"columns": COLUMNS, "header": ["x", "y", "x"]}}, "options.header: x occurs twice. Use each"),
        *(({"options": {"columns": COLUMNS, "fallback_encoding": name}}, f"options.fallback_encoding: {name} is not an encoding of Python.")
          for name in ("latin-99", "base64", "rot13", "utf-9", "")),
        ({"options": {"columns": COLUMNS | {"label": 3}}}, "options.columns.label: must be a text; found 3 (Column"),
        (
            {"reader": "lines", "form": "sentences", "files": {"text": {}}, "options": {"cleaning": "non"}},
            "options.cleaning: must be 'none' or 'sentences'; found 'non' (none keeps",
        ),
        (
            {"options": {"columns": COLUMNS, "strip": 1}},
            "options.strip: must be true or false; found 1",
        ),
        (
            {"reader": "lines", "form": "sentences", "files": {"text": {}}, "options": {"min_words": True, "max_words": 5}},
            "options.min_words: must be a whole number; found true",
        ),
    ],
)  # fmt: skip
def test_what_a_reader_does_not_take_is_one_line(source, message):
    block = dataset(**source).datasets["mine"]
    (found,) = map(str, reader_errors(block.sources[1], block.form))
    assert found.startswith(message)
    assert "\n" not in found


def test_the_command_prints_what_a_reader_takes():
    shown = data("schema", "delimited")[1]
    assert shown["rows"]["labelled"] == ["split", "text1", "text2", "label"]
    assert shown["properties"]["fallback_encoding"]["description"] == "Encoding of files that are not UTF-8."
