"""Whether a GPU computes what the CPU computes, the same every time, without waiting, and how fast.

The first thing to run on a new cluster, in ten minutes. It needs neither Snakemake, data, weights nor a network, but
PyTorch 2.11, Transformers 5.17 and sentence-transformers or newer. With --device cpu it does the same on small
encoders, and says what only a card can tell.

  python -m workflow_scripts gpu-check --json benchmarks/gpu.json
"""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

import torch

from workflow_scripts.audit.printing import Answer, Rows, argument, rows_of
from workflow_scripts.errors import ConfigError
from workflow_scripts.gpu_check import again, cards, fits, right, speed, waits
from workflow_scripts.gpu_check.lines import Line, left_open
from workflow_scripts.gpu_check.material import BASE, SMALL, training, write_encoder
from workflow_scripts.provenance.record import git_state
from workflow_scripts.training.loop import prepare

Check = Callable[[], Iterator[Line]]


ARGUMENTS = (
    argument("--device", choices=("cuda", "cpu"), help="what is checked; cuda where there is a card"),
    argument("--minutes", type=float, default=10.0, help="after which no other part begins"),
    argument("--json", dest="file", type=Path, metavar="FILE", help="write what was found there, too"),
)


def answer(device: str | None, minutes: float, file: Path | None) -> Answer:
    """Every line, printed as it is found; exit code 1 if one fails.

    Raises:
        ConfigError: if there is no such device.
    """
    if device == "cuda" and not torch.cuda.is_available():
        raise ConfigError(
            "--device cuda: PyTorch sees no GPU here. Start it where there is one, or with --device cpu."
        )
    card = torch.device(device or ("cuda" if torch.cuda.is_available() else "cpu"))
    prepare(training(SMALL), seed=1)  # before the card is touched, which then computes deterministically
    with tempfile.TemporaryDirectory() as folder:
        lines = list(_shown(found_by(checks(Path(folder), card), minutes)))
    failed = sum(line.verdict == "fails" for line in lines)
    data = {"machine": machine(card)}
    if file:
        file.write_text(json.dumps(data | {"lines": rows_of(lines)}, indent=1), "utf-8")
    said = (
        f"{failed} of {len(lines)} lines fail"
        if failed
        else f"all that {data['machine']['device']} can show holds"
    )
    return Answer(said, not failed, [Rows("lines", rows_of(lines))], data)


def checks(folder: Path, device: torch.device) -> dict[str, Check]:
    """The parts in their order; a card is timed with an encoder of base size, a CPU with a small one."""
    small, size = folder / "small", SMALL if device.type == "cpu" else BASE
    timed = small if size is SMALL else folder / "base"
    for kind in ("bert", "llama"):
        write_encoder(small, SMALL, kind)
    if timed != small:
        write_encoder(timed, size)
    steps = 100 if device.type == "cuda" else 2
    return {
        right.PART: lambda: right.check(small, device),
        again.PART: lambda: again.check(small, device, SMALL),
        waits.PART: lambda: waits.check(timed, device, size),
        speed.PART: lambda: speed.check(timed, device, size, steps),
        fits.PART: lambda: fits.check(folder, device),
        cards.PART: lambda: cards.check(small, device),
    }


def found_by(parts: dict[str, Check], minutes: float) -> Iterator[Line]:
    """The lines of all parts; those that would begin too late are named."""
    end = time.monotonic() + 60 * minutes
    for name, part in parts.items():
        if time.monotonic() > end:
            yield left_open(name, "", f"more than {minutes:g} minutes")
        else:
            yield from part()


def machine(device: torch.device) -> dict[str, str]:
    """What was checked, when, and with what."""
    packages = {name: version(name) for name in ("torch", "transformers", "sentence-transformers")}
    card = torch.cuda.get_device_name(device) if device.type == "cuda" else "a CPU"
    today = datetime.now(UTC).date().isoformat()
    about = {"date": today, "commit": str(git_state()[0]), "driver": _driver()}
    return {"device": card, "cuda": str(torch.version.cuda), **about, **packages}


def _driver() -> str:
    command = ("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader")
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return done.stdout.partition("\n")[0]


def _shown(lines: Iterator[Line]) -> Iterator[Line]:
    for line in lines:
        print(f"{line.verdict:13}  {line.part}: {line.what}  {line.found}", file=sys.stderr)  # noqa: T201
        yield line
