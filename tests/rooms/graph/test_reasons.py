"""Why a job runs again: the names of settings, not their JSON."""

import json

from tests.planning import ROOT, run

SNAKEFILE = """
import json
from workflow_scripts.graph.failures import report_failures

report_failures()

rule made:
    output: "made.txt"
    params: settings=json.dumps(config["settings"]), packages='{"torch": "2.11"}'
    shell: "touch {output}"
"""


def reason(folder, settings, *options):
    """The reason that Snakemake prints for the job, by the settings of an earlier call."""
    (folder / "config.json").write_text(json.dumps({"settings": settings}))
    words = ("-m", "snakemake", "--cores", "1", "--configfile", "config.json", *options)
    ended = run(folder, *words, PYTHONPATH=str(ROOT))
    printed = ended.stdout + ended.stderr
    return next((line for line in printed.splitlines() if line.startswith("Reason: ")), printed)


def test_a_changed_setting_is_named_with_its_old_and_new_value(tmp_path):
    (tmp_path / "Snakefile").write_text(SNAKEFILE)
    settings = {
        "training": {"rate": 3e-5, "text": "it's; now: 'x'", "runs": [{"seed": 1}]},
        "more": "x" * 600,
    }
    assert reason(tmp_path, settings) == "Reason: Missing output files: made.txt"
    settings["training"]["rate"] = 5e-5
    assert reason(tmp_path, settings, "-n") == "Reason: Changed: training.rate 3e-05 -> 5e-05"
    settings["training"] |= {"text": "y" * 90, "runs": [{"seed": 2}], "new": True}
    assert reason(tmp_path, settings, "-n") == (
        "Reason: Changed: training.rate 3e-05 -> 5e-05, training.text it's; now: 'x' -> "
        f"{'y' * 59}…, training.runs.0.seed 1 -> 2, and 1 more"
    )
