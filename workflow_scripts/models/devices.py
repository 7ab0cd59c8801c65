"""Device on which a job encodes, and precision of its products; weights stay in float32."""

import os
import sys
from contextlib import AbstractContextManager, nullcontext

import torch

from workflow_scripts.errors import ConfigError
from workflow_scripts.settings.names import Precision

KERNELS = 128
"""Number of kernels that oneDNN keeps for later products of the same shapes, a megabyte or more each.

The default is 1,024, but batches seldom have the same number of tokens: 160 steps of MiniLM took 2.6 GB with it, and
2.0 GB, and no more time, with 128.
"""

RESERVED = ("CUDA_VISIBLE_DEVICES", "SLURM_JOB_GPUS")
"""Environment variables with the GPUs that a person or a scheduler has reserved for a job."""


def granted_device(gpus: int) -> torch.device:
    """Return the GPU if the job requested one and the machine has one, else the CPU.

    On a GPU, algorithms are deterministic, and float32 products have all their digits.

    Args:
        gpus: Number of GPUs that the job requested, 0 or 1.

    Raises:
        ConfigError: as ``finds_gpu``.
    """
    if not gpus or not finds_gpu("encoding"):
        return torch.device("cpu")
    make_deterministic()
    torch.set_float32_matmul_precision("highest")
    return torch.device("cuda")


def finds_gpu(work: str) -> bool:
    """Return whether PyTorch can use a GPU for a job that requested one; if not, print that it runs on the CPU.

    Args:
        work: Verb for the job's work, to print.

    Raises:
        ConfigError: if a GPU is reserved for the job: it would stay idle during work on the CPU.
    """
    if torch.cuda.is_available():
        return True
    # The first variable that is set decides: an empty CUDA_VISIBLE_DEVICES is enough in a job of SLURM.
    name = next((name for name in RESERVED if name in os.environ), RESERVED[0])
    # For CUDA, the list ends at the first name that is not a GPU's. SLURM writes NoDevFiles for none.
    if (first := os.environ.get(name, "").split(",")[0]) not in ("", "-1", "NoDevFiles"):
        raise ConfigError(
            f"{name}: GPU {first} is reserved for this job, but PyTorch {torch.__version__} cannot use it. Compare "
            f"the driver that `nvidia-smi` prints with CUDA {torch.version.cuda or '(none in this build)'}, or set "
            f'{RESERVED[0]}="" to run on the CPU.'
        )
    print(f"this job requested a GPU, but the machine has none: {work} on the CPU", file=sys.stderr)  # noqa: T201
    return False


def make_deterministic() -> None:
    """Switch deterministic algorithms on; call it before the first product on a GPU."""
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # required by deterministic algorithms
    torch.use_deterministic_algorithms(True)
    # Filling would only help to find reads of uninitialised memory, and takes a fiftieth of a step.
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]


def kind_of(device: torch.device) -> str:
    """Return the type of a device, with the model of a GPU: sums are rounded differently on another model."""
    return f"cuda {torch.cuda.get_device_name(device)}" if device.type == "cuda" else device.type


def first_line(error: BaseException) -> str:
    """Return type and first line of the first error in a chain, each raised while the previous one was handled."""
    while error.__cause__ or error.__context__:
        error = error.__cause__ or error.__context__  # type: ignore[assignment]
    lines = str(error).strip().splitlines()
    return f"{type(error).__name__}: {lines[0].rstrip('. ')}" if lines else type(error).__name__


def mixed_precision(precision: Precision, device: torch.device) -> AbstractContextManager[object]:
    """Return a context in which products on ``device`` have this precision.

    bfloat16 takes half the time on processors that support it, and much longer on others, such as GPUs before Ampere,
    which emulate it. On CPUs, ``auto`` keeps float32, so all CPUs give the same numbers.
    """
    on_gpu = precision == "auto" and device.type == "cuda"
    automatic = on_gpu and torch.cuda.is_bf16_supported(including_emulation=False)
    if automatic or precision == "bfloat16":
        os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", str(KERNELS))  # read at the first product
        return torch.autocast(device.type, torch.bfloat16)
    return nullcontext()
