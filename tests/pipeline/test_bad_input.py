"""Bad input that a job meets ends in one line: where, what was found, what to do; finished work is kept."""

import re

from tests.planning import DEMO, copy_tree, snakemake
from workflow_scripts.provenance.artefacts import read_record


def test_a_dataset_that_breaks_its_contract_stops_its_own_jobs_only_and_is_the_last_thing_printed(tmp_path):
    folder = copy_tree(tmp_path)
    (folder / "config/broken.yaml").write_text("datasets: {lee: {contract: {rows: 1226}}}\n")
    made = ("results/demo/datasets/lee.parquet", "results/demo/encoders/minilm/record.json")
    code, printed = snakemake(folder, "--cores", "2", "--configfile", DEMO, "config/broken.yaml", "--", *made)
    *others, sentence, log = printed.splitlines()
    assert code == 1 and log == "    log: logs/demo/read_dataset/lee.log"
    assert re.match(r"DataError: datasets\.lee: rows 1225; its contract says 1226", sentence)
    assert not any("-m workflow_scripts" in line or "DataError" in line for line in others)
    assert read_record(folder / made[1]).rule == "fetch_encoder"
    assert not (folder / made[0]).exists()
