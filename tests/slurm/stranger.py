"""Somebody else than root on the cluster: a user with a home, a fresh clone, an environment, and nothing in its own."""

import os
import pwd
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

from tests.slurm.node import UnavailableError
from tests.support.snakemake_plans import ROOT

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

    def run(
        self, *command: str, cwd: Path | None = None, seconds: float = 600, **more: str
    ) -> subprocess.CompletedProcess[str]:
        """Run a command as this user to its end, with nobody's keys, data or caches but its own."""
        variables = {
            "HOME": str(self.home), "USER": self.name, "LOGNAME": self.name, "LANG": "C.UTF-8", "OMP_NUM_THREADS": "1",
            "PATH": f"{self.environment}/bin:/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
            "HF_HOME": str(self.home / "hub"), "TOKENIZERS_PARALLELISM": "false",
        } | self._variables | more  # fmt: skip
        return subprocess.run(
            [str(self.environment / "bin" / command[0]) if command[0] in ("python", "snakemake") else command[0],
             *command[1:]],
            cwd=cwd or self.clone, env=variables, capture_output=True, text=True, check=False,
            timeout=seconds, user=self.entry.pw_uid, group=self.entry.pw_gid, extra_groups=[],
        )  # fmt: skip
