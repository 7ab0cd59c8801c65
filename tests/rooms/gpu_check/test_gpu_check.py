"""The check of a GPU, on a CPU: faults that it must name, and the whole command on small encoders."""

import json
import subprocess
import sys
import time

import pytest
import torch

from workflow_scripts.errors import ConfigError
from workflow_scripts.gpu_check import again, cards, right, speed, verb, waits
from workflow_scripts.gpu_check.lines import judged
from workflow_scripts.gpu_check.material import SMALL, blocks, prepared, sentences, training, write_encoder
from workflow_scripts.provenance.closure import ROOT

CPU = torch.device("cpu")
pytestmark = pytest.mark.usefixtures("torch_settings")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """With a small BERT."""
    folder = tmp_path_factory.mktemp("gpu")
    write_encoder(folder, SMALL._replace(layers=2))
    return folder


def trained_by(method, folder):
    return prepared(blocks()[method], folder, SMALL, CPU)


def waits_in_a_step(trained):
    return waits.waits_of(waits.one_step(trained, SMALL), CPU, trained)


FAULTS = {
    "a loss that is looked at": (lambda loss: loss * float(loss.item() > 0), "_local_scalar_dense waits"),
    "a loss that depends on how many are positive": (
        lambda loss: loss + 0 * loss.flatten()[loss.flatten() > 0].sum(),
        "an index by a mask waits",
    ),
    "a vector that is listed": (lambda loss: loss + 0 * sum(loss.flatten().tolist()), "tolist waits"),
    "a copy that blocks": (
        lambda loss: loss + torch.zeros(3, device=CPU).to(loss.device).sum(),
        "a copy to the card waits",
    ),
    "a mask that is drawn elsewhere": (
        lambda loss: loss * (torch.rand(1) < 2).sum(),
        "a tensor that names no device",
    ),
    "a kernel that has no fixed order": (
        lambda loss: loss + 0 * loss.detach().flatten().histc(2).sum(),
        "histc has no deterministic kernel",
    ),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_what_a_card_would_wait_for_is_named(folder, fault):
    change, named = FAULTS[fault]
    trained = trained_by("simcse", folder)
    whole = trained.objective.loss
    trained.objective.loss = lambda step: change(whole(step))
    found = waits_in_a_step(trained)
    assert any(named in line for line in found), found


@pytest.mark.parametrize("method", ["simcse", "distil"])
def test_a_step_as_it_is_waits_for_nothing(folder, method):
    """Copies of a teacher's vectors among it."""
    assert waits_in_a_step(trained_by(method, folder)) == []


@pytest.mark.slow
def test_a_compiled_encoder_trains_like_any_other(folder):
    settings = training(SMALL, max_steps=1, precision="float32")
    step = speed.Step(
        folder / "bert", sentences(SMALL.batch, SMALL), settings, speed.recipe("avg"), "avg", CPU
    )
    speed.two_calls(step, compiled_by="eager")()


def test_a_machine_without_a_package_is_told_what_to_install():
    code = "import sys; sys.modules['torch'] = None; from workflow_scripts.__main__ import main; main()"
    asked = subprocess.run(
        [sys.executable, "-c", code, "gpu-check"], capture_output=True, text=True, check=False, cwd=ROOT
    )
    assert asked.returncode == 2
    (line,) = asked.stderr.splitlines()
    assert line.startswith("gpu-check: no Python package torch is here. pip install torch ")


def test_another_gradient_of_one_small_parameter_is_found(folder):
    """A bias of one layer, a hundredth larger; and none at all, which is no rounding."""
    first = right.found(trained_by("simcse", folder))
    name = next(name for name in first.gradients if name.endswith("layer.0.output.dense.bias"))
    changed = first._replace(gradients=first.gradients | {name: first.gradients[name] * 1.01})
    assert right.distance(first, first) == 0
    assert right.distance(first, changed) > right.CLOSE
    fewer = first._replace(gradients={name: first.gradients[name]})
    assert right.distance(first, fewer) == float("inf")


def test_products_that_are_not_rounded_fail(folder, monkeypatch):
    """As where autocast names another device than the one that computes."""
    assert right.bfloat16(folder, CPU).verdict == "holds"
    monkeypatch.setattr(
        right, "mixed_precision", lambda _precision, _device: torch.autocast("cpu", enabled=False)
    )
    assert right.bfloat16(folder, CPU).verdict == "fails"


def test_a_number_that_is_none_fails():
    assert judged("part", "what", float("nan"), 1).verdict == "fails"
    assert judged("part", "what", 1, 1).verdict == "holds"


def test_two_processes_compute_the_joint_gradient(folder):
    (line,) = cards.check(folder, CPU)
    assert line.verdict == "holds", line


def test_processes_that_wait_for_each_other_are_all_ended():
    """A child that went on would hold the pipe, and the check wait for it."""
    start = time.monotonic()
    assert cards.run_together(["sh", "-c", "sleep 60 & wait"], 0.5) == "ended after 0.5 seconds"
    assert time.monotonic() - start < 30


def test_parts_that_would_begin_too_late_are_named():
    lines = list(verb.found_by({"first": lambda: iter(()), "second": lambda: iter(())}, minutes=0))
    assert [(line.part, line.verdict) for line in lines] == [
        ("first", "not held here"),
        ("second", "not held here"),
    ]


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU here")
def test_a_card_that_is_not_there_is_one_line():
    with pytest.raises(ConfigError, match="--device cuda: PyTorch sees no GPU here"):
        verb.answer("cuda", minutes=1, file=None)


@pytest.mark.slow
def test_the_whole_command_holds_on_a_cpu(tmp_path, monkeypatch):
    """Each of its parts; trainings that are made again are short, as each step writes what it would be resumed from."""
    for name, value in {"STEPS": 6, "KILLED_AFTER": 3}.items():
        monkeypatch.setattr(again, name, value)
    answer = verb.answer("cpu", minutes=20, file=tmp_path / "card.json")
    written = json.loads((tmp_path / "card.json").read_text("utf-8"))
    lines = written["lines"]
    assert {"device", "driver", "date", "commit", "torch"} <= written["machine"].keys()
    assert answer.good, [line for line in lines if line["verdict"] == "fails"]
    assert {line["part"] for line in lines} >= {
        "right",
        "the same again",
        "no waiting",
        "fast",
        "fits",
        "several cards",
    }
    read = {line["what"].rpartition("SentenceTransformer, read by ")[2] for line in lines}
    assert read >= {"mask_token", "s2sent", "layer_attention", "pooling avg_top2", "pooling cls"}
