"""A GPU is never waited for, draws nothing of its own and repeats its bytes: shown without one (``tests.support.fake_cuda``)."""

import json
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest
import torch

from tests.support import fake_cuda, small_methods
from tests.support.snakemake_plans import ROOT, run_alone
from tests.support.toy_objectives import CASES

QUICK = (
    "step simcse_3r", "step jtcse", "step promptbert", "step diffcse", "step llm2vec", "step simcse_s2sent",
    "step simcse_layerattpooler", "step continue_mlm", "encode simcse_layerattpooler", "encode simcse_s2sent",
    "teacher jtcse", "study float32",
)  # fmt: skip
"""What the short suite runs of BERT; of other families, the long one."""
NOT_OF = {"roberta": ("step llm2vec",), "mpnet": ("step llm2vec", "step jtcse", "teacher jtcse")}
"""LLM2Vec is for decoders, and JTCSE for families built as BERT."""
ALL = [
    *(f"step {name}" for name in CASES),
    *(f"encode {name}" for name in small_methods.readouts()),
    *(f"teacher {name}" for name in ("jtcse", "simcse_round_trips", "llm2vec", "promptbert")),
    *(f"study {precision}" for precision in ("float32", "bfloat16")),
]
WORKS = [
    ("bert", name) if name in QUICK else pytest.param("bert", name, marks=pytest.mark.slow) for name in ALL
] + [
    pytest.param(family, name, marks=pytest.mark.slow)
    for family in ("roberta", "mpnet")
    for name in QUICK
    if name not in NOT_OF[family]
]
FAULTS = {
    "item": "_local_scalar_dense: the host waits for the value of a tensor",
    "if": "_local_scalar_dense: the host waits for the value of a tensor",
    "mask": "_local_scalar_dense: the host waits for the value of a tensor",
    "tensor": "lift_fresh: has a tensor of the host, of shape (1,)",
    "host": "ones: has a tensor of the host, of shape (2,)",
    "copied": "_to_copy: has a tensor of the host, of shape ()",
    "rand": "rand: draws from the GPU's generator",
    "dropout": "native_dropout: draws from the GPU's generator",
    "kernel": "cumsum: no deterministic kernel of real numbers",
    "unknown kernel": "logcumsumexp: no deterministic kernel is known (PyTorch 2.13)",
}


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """The GPU that computes nothing."""
    if torch.version.cuda:
        pytest.skip("PyTorch is the build with CUDA, which looks for a real GPU")
    if not (compiler := shutil.which("g++")):
        pytest.skip("no C++ compiler: g++ is not installed")
    place, torch_root = tmp_path_factory.mktemp("fake") / "fake_cuda.so", Path(torch.__file__).parent
    libraries = torch_root / "lib"
    subprocess.run(
        [compiler, "-std=c++20", "-shared", "-fPIC", "-O0", f"-I{torch_root / 'include'}", ROOT / "tests/support/fake_cuda.cpp",
         "-o", place, f"-L{libraries}", f"-Wl,-rpath,{libraries}", "-lc10", "-ltorch_cpu"], check=True,
    )  # fmt: skip
    return place


@pytest.fixture(scope="module")
def refused(library, request):
    """What is refused of the works of a family that were selected, by their names; one process for each family."""
    selected = [item.callspec.params for item in request.session.items if item.module is request.module and hasattr(item, "callspec")]  # fmt: skip

    @cache
    def of(family):
        names = [one["name"] for one in selected if one["family"] == family]
        done = run_alone(ROOT, "-m", "tests.support.fake_cuda", library, family, *names)
        assert done.returncode == 0, done.stderr
        return dict(map(json.loads, done.stdout.splitlines()))

    return of


def test_the_kernels_of_this_pytorch_were_looked_up():
    assert torch.__version__.startswith(fake_cuda.KNOWN_OF), (
        "look up DETERMINISTIC in the new version's sources"
    )
    assert {*QUICK} <= {*ALL}
    assert fake_cuda.FAULTS.keys() == FAULTS.keys()


@pytest.mark.parametrize(("family", "name"), WORKS)
def test_a_gpu_never_waits_and_repeats_its_bytes(refused, family, name):
    assert refused(family)[name] is None


@pytest.mark.parametrize("family", ["bert"])
@pytest.mark.parametrize("name", [f"fault {name}" for name in FAULTS])
def test_a_fault_in_a_step_is_found(refused, family, name):
    assert refused(family)[name] == FAULTS[name.removeprefix("fault ")]
