"""What a card says of the record that lies beside it."""

import json

from tests.planning import ROOT
from workflow_scripts.provenance.artefacts import identity, job_record, read_record, writing_model_folder
from workflow_scripts.reporting.model_card import Config, Source, model_card


def test_a_card_names_its_sources_and_the_identity_that_the_records_of_readers_name(tmp_path, monkeypatch):
    """A source stays in its line whatever it is called."""
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "model"
    wildcards = {"run": "plain", "seed": "1"}
    made = job_record("make_table", settings={}, inputs={}, outputs=[folder], wildcards=wildcards)
    with writing_model_folder(folder, made) as temporary:
        (temporary / "modules.json").write_text("[]")
        (temporary / "config.json").write_text("{}")
    source = Source(name="set", licence="MIT", origin="a | b", citation="One 2012,\n  Two 2013")
    config = Config(encoders=[], data=[source], method={"module": "plain"}, training=None)
    known = identity(folder)
    template = (ROOT / "resources/report/model_card.md.j2").read_text()
    card = model_card(
        template, folder, config, read_record(folder), known, method=json, scores=[], history=None
    )
    reader = job_record("make_table", settings={}, inputs={"model": folder}, outputs=[])
    assert f"`record.json`, identity `{reader.inputs['model'].sha256}`, commit `" in card
    assert "- set, from a | b; licence MIT; cite One 2012, Two 2013" in card.splitlines()
