"""Every reader takes the roles and returns a form that its settings name."""

import importlib

import pytest

from workflow_scripts.columns import FORMS
from workflow_scripts.settings.sources import READERS

EXAMPLES = {
    "class_files": ({"good": "fine\n"}, {}),
    "delimited": ({"test": "l\tt\n1\ta\n"}, {"columns": {"text1": "t", "label": "l"}}),
    "lee": ({"documents": "a\nb\n", "ratings": "1 0.5\n0.5 1\n"}, {}),
    "lines": ({"text": "A sentence.\n"}, {}),
    "wikipedia_xml": (None, {"min_words": 1, "max_words": 9}),
    "wikitext": ({"train": "A sentence .\n"}, {"unknown": None, "min_characters": 1}),
}
"""Contents by role, and options; None where the reader's own test makes the file."""


@pytest.mark.parametrize("name", READERS)
def test_a_reader_reads_what_its_settings_say(tmp_path, name):
    contents, options = EXAMPLES[name]
    takes = READERS[name]
    settings = takes.parse(options, name)
    assert {*settings.returns} <= {*takes.forms} <= {*FORMS}
    assert all(option.description for option in takes.model_fields.values())
    if contents is None:
        return
    assert not takes.roles or {*contents} <= {*takes.roles}
    for role, content in contents.items():
        (tmp_path / role).write_text(content)
    module = importlib.import_module(f"workflow_scripts.data.readers.{takes.module}")
    found = getattr(module, name)({role: tmp_path / role for role in contents}, settings)
    assert len(found.table)
    assert found.table.schema in [FORMS[form] for form in settings.returns]
