"""What settings say of readers, against what they do."""

import ast

import pytest

from tests.planning import ROOT, run
from workflow_scripts.config import names_in as modules_of
from workflow_scripts.data.text_files import SPLITS
from workflow_scripts.graph.readers import READERS, reader, reader_findings
from workflow_scripts.provenance.closure import PACKAGE

FOLDER = PACKAGE / "data/readers"

FORMS = {"pairs": "PAIRS", "labelled": "labelled", "sentences": "SENTENCES", "triples": "TRIPLES"}
"""Form to the name that a reader of it uses; ``keep_sentences`` makes sentences too."""


def source_of(name):
    return ast.parse((FOLDER / f"{name}.py").read_text())


def names_in(tree):
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}


def roles_read(tree):
    """Roles that ``files`` is asked for by name."""
    return {
        node.slice.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Subscript)
        and isinstance(node.value, ast.Name)
        and (node.value.id, type(node.slice)) == ("files", ast.Constant)
    }


@pytest.mark.parametrize("name", modules_of(READERS))
def test_the_settings_of_a_reader_say_what_its_code_does(name):
    found, tree = reader(name), source_of(name)
    names = {"SENTENCES" if word == "keep_sentences" else word for word in names_in(tree)}
    assert set(found.forms) == {form for form, used in FORMS.items() if used in names} != set()
    if "parts" in names:
        assert set(found.roles) == set(SPLITS) and not found.all_roles
    else:
        assert set(found.roles) == roles_read(tree)
    assert found.__doc__.endswith(".")
    assert all(option.description for option in found.model_fields.values())


def dataset(**source):
    """A configuration with one dataset."""
    block = {"reader": "labelled_tsv", "files": {"all": {}}, "options": {"label": "y", "text1": "x"}} | source
    return {
        "datasets": {"mine": {"form": source.pop("form", "labelled"), "sources": [{"kind": "hub"}, block]}}
    }


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ({"reader": "labeled_tsv"}, "reader: labeled_tsv is not defined. Did you mean labelled_tsv?"),
        ({"reader": "base"}, "reader: base is not defined. "),
        ({"form": "pairs"}, "reader: labelled_tsv reads labelled, not pairs. Name another, or correct form."),
        ({"files": {"tests": {}}}, "files: tests is no role of a file of labelled_tsv. Did you mean test?"),
        (
            {"reader": "lee", "form": "pairs", "options": {}, "files": {"documents": {}}},
            "files: lee needs a file of role ratings. Name it there.",
        ),
        (
            {"options": {"label": "y", "text1": "x", "txt2": "z"}},
            "options.txt2: unknown key. Did you mean text2?",
        ),
        ({"options": {"label": "y"}}, "options: without text1. Write it there."),
        ({"options": {"label": 3, "text1": "x"}}, "options.label: 3 is not text (Column of the label.)."),
        (
            {"reader": "class_files", "options": {"escapes": "keeps"}},
            "options.escapes: 'keeps' is none of keep, decode. Did you mean keep?",
        ),
        (
            {"reader": "label_space_text", "options": {"coarse": 1}},
            "options.coarse: 1 is not true or false",
        ),
        (
            {"reader": "lines", "form": "sentences", "files": {"text": {}}, "options": {"min_words": True, "max_words": 5}},
            "options.min_words: True is not a whole number",
        ),
    ],
)  # fmt: skip
def test_what_a_reader_does_not_take_is_one_line(source, message):
    (found,) = reader_findings(dataset(**source))
    assert found.startswith(f"datasets.mine.sources.1.{message}") and "\n" not in found


def test_sound_sources_and_sources_without_a_reader_are_let_pass():
    assert list(reader_findings(dataset())) == []
    assert list(reader_findings(dataset(options={"label": "y", "text1": "x", "split": None}))) == []
    assert (
        list(reader_findings(dataset(reader="class_files", files={"good": {}}, options={"escapes": "keep"})))
        == []
    )


def test_the_command_lists_readers_and_refuses_names_that_are_none():
    shown = run(ROOT, "-m", "workflow_scripts", "readers")
    for name in modules_of(READERS):
        assert f"\n{name}: " in f"\n{shown.stdout}"
    one = run(ROOT, "-m", "workflow_scripts", "readers", "labelled_tsv").stdout.splitlines()
    assert one[0].startswith("labelled_tsv: Labelled texts")
    assert "  rows    labelled: split, text1, text2, label" in one
    assert "  files   any of train, dev, test, all" in one
    assert "  option  text2: text or null, null if left out. Column of a pair's second text." in one
    refused = run(ROOT, "-m", "workflow_scripts", "readers", "lines", "labeled_tsv")
    assert refused.returncode == 2 and not refused.stdout
    assert refused.stderr == "ConfigError: readers: labeled_tsv is not defined. Did you mean labelled_tsv?\n"
