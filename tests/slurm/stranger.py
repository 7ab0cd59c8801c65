"""Somebody else than root on the cluster: a user with a home, a fresh clone, an environment, and nothing in its own."""

import os
import pwd
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

from tests.planning import ROOT
from tests.slurm.node import UnavailableError

SCRIPTS = {"snakemake": "snakemake.cli", "torchrun": "torch.distributed.run"}
"""What activating an environment puts onto the PATH, and the modules behind it."""


class Stranger:
    """A user of this machine, made for a test and removed after it."""

    def __init__(self, name: str, folder: Path) -> None:
        if not shutil.which("useradd"):
            raise UnavailableError("no useradd to make another user with")
        self.name = name
        self.home = folder / name
        subprocess.run(["useradd", "--create-home", "--home-dir", str(self.home), name], check=True)
        self.home.chmod(0o755)
        self.entry = pwd.getpwnam(name)
        self.clone = self.home / "semblance"
        self._environment(folder)

    def remove(self) -> None:
        """End what still runs of it, and remove it with its home."""
        subprocess.run(["pkill", "-KILL", "-u", self.name], check=False)
        subprocess.run(["userdel", "--force", "--remove", self.name], check=False, capture_output=True)

    def _environment(self, folder: Path) -> None:
        """An environment with this one's packages; of an interpreter in another's home, a copy."""
        base, version = Path(sys.base_prefix), f"python{sys.version_info.major}.{sys.version_info.minor}"
        self._variables: dict[str, str] = {}
        if not self._can_read(base / f"bin/{version}"):
            base = folder / "python"
            skip = shutil.ignore_patterns("site-packages", "test", "__pycache__")
            shutil.copytree(sys.base_prefix, base, symlinks=True, ignore=skip)
            self._variables["LD_LIBRARY_PATH"] = str(base / "lib")
        self.environment = folder / "environment"
        make = [str(base / f"bin/{version}"), "-m", "venv", "--without-pip", str(self.environment)]
        subprocess.run(make, check=True, env=os.environ | self._variables)
        packages = self.environment / f"lib/{version}/site-packages"
        (packages / "theirs.pth").write_text(f"{sysconfig.get_paths()['purelib']}\n")
        for name, module in SCRIPTS.items():
            script = self.environment / "bin" / name
            script.write_text(
                f"#!{self.environment}/bin/python\nimport sys\nfrom {module} import main\nsys.exit(main())\n"
            )
            script.chmod(0o755)
        if self.run("python", "-c", "import snakemake, torch", cwd=self.home).returncode:
            raise UnavailableError(f"{packages} holds nothing that another user can import")

    def _can_read(self, path: Path) -> bool:
        asked = [
            "setpriv",
            f"--reuid={self.entry.pw_uid}",
            f"--regid={self.entry.pw_gid}",
            "--clear-groups",
            "test",
            "-x",
        ]
        return subprocess.run([*asked, str(path)], check=False, cwd="/").returncode == 0

    def get_clone(self) -> None:
        """A fresh clone of what is committed."""
        subprocess.run(["git", "clone", "--quiet", "--no-hardlinks", str(ROOT), str(self.clone)], check=True)
        subprocess.run(["chown", "--recursive", f"{self.name}:", str(self.clone)], check=True)

    def variables(self, **more: str) -> dict[str, str]:
        """The environment of its shell: nobody's keys, data or caches but its own."""
        return {
            "HOME": str(self.home), "USER": self.name, "LOGNAME": self.name, "LANG": "C.UTF-8", "OMP_NUM_THREADS": "1",
            "PATH": f"{self.environment}/bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
            "HF_HOME": str(self.home / "hub"), "TOKENIZERS_PARALLELISM": "false",
        } | self._variables | more  # fmt: skip

    def start(
        self, *command: str, printed: Path, cwd: Path | None = None, **more: str
    ) -> subprocess.Popen[bytes]:
        """Start a command as this user, what it prints in a file."""
        with printed.open("w") as file:
            return subprocess.Popen(
                command, cwd=cwd or self.clone, env=self.variables(**more), stdout=file, stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL, user=self.entry.pw_uid, group=self.entry.pw_gid, extra_groups=[],
            )  # fmt: skip

    def run(
        self, *command: str, cwd: Path | None = None, seconds: float = 600, **more: str
    ) -> subprocess.CompletedProcess[str]:
        """Run a command as this user to its end."""
        return subprocess.run(
            [str(self.environment / "bin" / command[0]) if command[0] in ("python", "snakemake") else command[0],
             *command[1:]],
            cwd=cwd or self.clone, env=self.variables(**more), capture_output=True, text=True, check=False,
            timeout=seconds, user=self.entry.pw_uid, group=self.entry.pw_gid, extra_groups=[],
        )  # fmt: skip

    def owns(self, path: Path) -> bool:
        """Whether a file is this user's."""
        return path.stat().st_uid == self.entry.pw_uid


def small_study(clone: Path, repository: str, revision: str) -> list[str]:
    """Write a study of a small encoder that is to be had from the Hub alone; returns snakemake's options for it."""
    (clone / "config/experiments/simcse_table_small.yaml").write_text(GRID)
    study = STUDY.replace("REPOSITORY", repository).replace("REVISION", revision).replace("STEPS", str(STEPS))
    (clone / "config/small.yaml").write_text(study)
    return ["--configfile", "config/small.yaml"]


STEPS = 120
STUDY = """\
name: small
experiments: [simcse_table_small]
contamination: null
encoders:
  minilm_hub:
    fetch:
      licence: Apache-2.0
      label: all-MiniLM-L6-v2 stands in for BERT-base
      sources: [{kind: hub, repository: REPOSITORY, revision: "REVISION"}]
corpora: {wiki_extract: {dev_sentences: 0, max_sentences: 2000}}
training:
  epochs: null
  max_steps: STEPS
  batch_size: 8
  cpu_threads: 1
  checkpoint_minutes: 0.5
development: {dataset: stsb_dev, every: 60}
suites:
  sts: {stsb: {datasets: [stsb_test], max_tokens: 512}}
  mteb:
    outside:
      {lists: [small], max_tokens: 512, batch_size: 32, device: cpu, metrics: [cosine_spearman], missing_data: stop}
mteb: {lists: {small: {STS-B: STSBenchmark}}}
report: {cosine_density: {task: stsb_test}}
"""
GRID = """\
title: SimCSE on a small encoder
source: a stranger
seeds: [1]
baseline: frozen_avg.minilm_hub
suites: {sts: [stsb], mteb: [outside]}
runs:
  - {method: frozen_avg, encoder: minilm_hub}
  - {method: simcse, encoder: minilm_hub, corpus: wiki_extract}
columns:
  - {heading: STS-B, suite: stsb, task: stsb_test, aggregation: all, metric: spearman, scale: 100, digits: 2}
  - {heading: mteb, suite: outside, task: STSBenchmark, aggregation: mean, metric: main_score, scale: 100, digits: 2}
"""
