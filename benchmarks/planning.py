"""Planning the paper-scale graph, without a network, against planning the demo."""

import argparse
import os
import subprocess
import sys

from benchmarks.material import interleaved
from workflow_scripts.provenance.closure import ROOT


def plan(*arguments: str) -> None:
    """Dry-run the graph in the repository's root; fails if it cannot be planned."""
    command = [sys.executable, "-m", "snakemake", "-n", "--quiet", "all", "--forceall", *arguments]
    environment = os.environ | {"HF_HUB_OFFLINE": "1"}
    subprocess.run(
        command, cwd=ROOT, env=environment, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


def main() -> None:
    """Plan in turns, print the ratio."""
    paper, demo = interleaved(plan, lambda: plan("--configfile", "config/demo.yaml"), repeats=3)
    print(f"bench plan_paper_scale {paper / demo:.2f} times-the-time paper-scale-against-demo")


if __name__ == "__main__":
    argparse.ArgumentParser(description=__doc__).parse_args()
    main()
