"""A machine with GPUs that has none: nvidia-smi lists some, and PyTorch's metadata names the build with CUDA."""

import os
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path

CARDS = ("GPU-0a0a0a0a-1111", "GPU-0b0b0b0b-2222")
DIVIDED = "MIG-0c0c0c0c-3333"


def machine(folder: Path, listed: str = "") -> Mapping[str, str]:
    """The environment of a process on such a machine.

    Args:
        folder: For its programs, metadata and lock files.
        listed: What nvidia-smi prints; two cards, if left out.
    """
    lines = "\n".join(f"GPU {number}: NVIDIA H200 (UUID: {card})" for number, card in enumerate(CARDS))
    program = folder / "bin/nvidia-smi"
    for path in (program.parent, folder / "tmp", metadata := folder / "packages/torch-0.dist-info"):
        path.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\ncat <<'END'\n{listed or lines}\nEND\n")
    program.chmod(0o755)
    with_cuda = version("torch").partition("+")[0]
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: torch\nVersion: {with_cuda}\n")
    return {
        "PATH": f"{program.parent}:{os.environ['PATH']}",
        "PYTHONPATH": str(metadata.parent),
        "TMPDIR": str(folder / "tmp"),
    }
