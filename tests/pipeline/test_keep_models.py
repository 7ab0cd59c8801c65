"""A study that keeps the numbers and not the weights."""

from pathlib import Path

import pytest
import yaml

from tests.planning import run
from tests.smoke import CONFIGS, plan

SNAKEMAKE = ("-m", "snakemake", "--cores", "2", "--configfile")
SIMCSE = Path("results/demo/runs/simcse.minilm_mlm.wiki_extract")


def weights(folder):
    """Weights of all models."""
    return sorted(
        path.relative_to(folder) for path in folder.glob("results/demo/runs/*/seed*/model/**/*.safetensors")
    )


@pytest.mark.slow
def test_weights_go_when_all_is_made_and_come_back_byte_for_byte(smoke_copy):
    (smoke_copy / "config/keep.yaml").write_text(yaml.safe_dump({"keep_models": "none"}))
    files = [*CONFIGS, "config/keep.yaml"]
    model = next(path for path in weights(smoke_copy) if path.is_relative_to(SIMCSE))
    before = (smoke_copy / model).read_bytes()
    assert set(plan(smoke_copy, files[-1])) == {"drop_models"}
    finished = run(smoke_copy, *SNAKEMAKE, *files)
    assert finished.returncode == 0, finished.stderr[-3000:]
    assert weights(smoke_copy) == []
    verified = run(smoke_copy, "-m", "workflow_scripts", "verify")
    assert verified.returncode == 0, verified.stdout
    assert plan(smoke_copy, files[-1]) == {}
    record = smoke_copy / SIMCSE / model.relative_to(SIMCSE).parts[0] / "model/record.json"
    record.unlink()
    again = run(smoke_copy, *SNAKEMAKE, *CONFIGS, "--", str(record.relative_to(smoke_copy)))
    assert again.returncode == 0, again.stderr[-3000:]
    assert (smoke_copy / model).read_bytes() == before
