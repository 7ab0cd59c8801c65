"""What each entry script loads before it works: a job of a second must not spend four on packages it does not use."""

import json
import subprocess
import sys

import pytest

from workflow_scripts.provenance.closure import PACKAGE, ROOT

SLOW = (
    "datasets", "deep_translator", "faiss", "gensim", "jinja2", "matplotlib", "mteb", "openai", "pandas", "peft",
    "scipy.optimize", "scipy.stats", "sentence_transformers", "sklearn", "torch", "transformers",
)  # fmt: skip
"""Packages that take a tenth of a second or more."""
WITH_TORCH = {"torch", "transformers", "jinja2", "scipy.optimize"}
"""PyTorch, and what the encoders of transformers load beside it."""
SAVING = WITH_TORCH | {"datasets", "pandas", "peft", "scipy.stats", "sentence_transformers", "sklearn"}
"""What sentence-transformers loads, which writes model folders."""

MAY_LOAD: dict[str, set[str]] = {
    "jobs.average_tokens": WITH_TORCH,
    "jobs.continue_mlm": WITH_TORCH,
    "jobs.count_tokens": WITH_TORCH,  # for its tokeniser
    "jobs.count_words": set(),
    "jobs.describe_datasets": WITH_TORCH,  # likewise
    "jobs.draw_figures": {"pandas"},
    "jobs.drop_models": set(),
    "jobs.encode_teacher": WITH_TORCH,
    "jobs.evaluate_cost": WITH_TORCH,
    "jobs.evaluate_mteb": SAVING | {"mteb"},
    "jobs.evaluate_search": WITH_TORCH | {"faiss"},
    "jobs.evaluate_sts": WITH_TORCH,
    "jobs.evaluate_suite": WITH_TORCH,
    "jobs.extract_scores": WITH_TORCH,
    "jobs.fetch_encoder": set(),
    "jobs.fetch_tasks": SAVING | {"mteb"},
    "jobs.fit_wikitext": WITH_TORCH,
    "jobs.gather_round_trips": {"pandas"},
    "jobs.join_encoders": SAVING,
    "jobs.judge_claims": set(),
    "jobs.make_table": set(),
    "jobs.map_attention": WITH_TORCH,
    "jobs.measure_contamination": set(),
    "jobs.pick_exemplars": set(),
    "jobs.pool_encoder": SAVING,
    "jobs.read_dataset": set(),
    "jobs.read_word_vectors": WITH_TORCH,  # for the settings of a representation
    "jobs.split_corpus": set(),
    "jobs.tabulate_extraction": set(),
    "jobs.tabulate_times": set(),
    "jobs.train_encoder": SAVING,
    "jobs.translate_shard": {"deep_translator", "pandas"},
    "jobs.write_exemplars": set(),
    "jobs.write_model_card": {"jinja2"},
    "jobs.write_report": {"jinja2"},
}
"""Entry scripts to what importing them loads."""
FIGURES = {f"figures.{file.stem}" for file in (PACKAGE / "figures").glob("[a-z]*.py") if file.stem != "style"}
MAY_LOAD |= {name: {"pandas"} for name in FIGURES} | {"figures.style": set()}  # planning reads declarations

LOADED = """
import importlib, json, os, sys

def loaded(module, slow):
    reader, writer = os.pipe()
    if os.fork() == 0:
        importlib.import_module(f"workflow_scripts.{module}")
        os.write(writer, json.dumps([name for name in slow if name in sys.modules]).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as answer:
        return json.loads(answer.read() or '["nothing: it cannot be imported"]')

slow, light, with_torch, saving = json.loads(sys.argv[1])
found = {module: loaded(module, slow) for module in light}
import torch, transformers
from transformers import AutoModel, PreTrainedModel
found |= {module: loaded(module, slow) for module in with_torch}
import sentence_transformers
found |= {module: loaded(module, slow) for module in saving}
print(json.dumps(found))
"""


@pytest.fixture(scope="module")
def found() -> dict[str, list[str]]:
    """What each module loads in a process of its own; those that may load PyTorch share it, as others do more."""
    parts: list[list[str]] = [[], [], []]
    for module, names in MAY_LOAD.items():
        parts[("torch" in names) + ("sentence_transformers" in names)].append(module)
    asked = json.dumps([SLOW, *parts])
    done = subprocess.run(
        [sys.executable, "-c", LOADED, asked], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return {module: sorted(names) for module, names in json.loads(done.stdout.splitlines()[-1]).items()}


def test_the_table_names_every_entry_script():
    jobs = {f"jobs.{file.stem}" for file in (PACKAGE / "jobs").glob("[a-z]*.py")}
    assert jobs == {name for name in MAY_LOAD if name.startswith("jobs.")}
    assert len(MAY_LOAD) > len(jobs)


@pytest.mark.parametrize("module", sorted(MAY_LOAD))
def test_a_module_loads_what_the_table_says(found, module):
    assert found[module] == sorted(MAY_LOAD[module])
