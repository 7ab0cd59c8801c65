"""The memory and time that each rule asks for; they decide no result, so Snakemake reruns nothing for them."""

from collections.abc import Callable
from typing import NamedTuple

from workflow_scripts.graph.sizes import parts_of
from workflow_scripts.graph.slices import Config, Wildcards
from workflow_scripts.graph.study import Lookups

OF_SIZE = {"base": (1, 1), "large": (1, 3), "huge": (5, 60)}
"""Memory and time of a job that computes with one encoder, in those of one with BERT-base.

BERT-large computes 3.5 times as much; seven billion parameters 75 times, and they are 27 GB in float32.
"""

LONGEST = 7 * 24 * 60
"""Most minutes that a job asks for, since few queues take more; jobs that run so long go on in their next try."""


class Request(NamedTuple):
    """What a job asks for in its first try, where it loads BERT-base or no encoder."""

    gigabytes: int
    minutes: int
    encoder: str = ""
    """The encoder that the job loads: of a wildcard, of all runs of its ``experiment``, or of ``extraction``."""


REQUESTS = {
    "average_tokens": Request(20, 12 * 60, "extraction"),
    "continue_mlm": Request(16, 4 * 60, "encoder"),
    "count_tokens": Request(4, 15),
    "count_words": Request(4, 15),
    "describe_datasets": Request(4, 15),
    "draw_figures": Request(4, 30, "experiment"),
    "drop_models": Request(2, 10),
    "encode_teacher": Request(16, 4 * 60, "teacher"),
    "evaluate_cost": Request(8, 30, "run"),
    "evaluate_mteb": Request(32, 24 * 60, "run"),
    "evaluate_search": Request(16, 60, "run"),
    "evaluate_sts": Request(8, 60, "run"),
    "evaluate_suite": Request(16, 4 * 60, "run"),
    "extract_scores": Request(32, 12 * 60, "extraction"),
    "fetch_encoder": Request(2, 30),
    "fetch_tasks": Request(4, 4 * 60),
    "fit_wikitext": Request(32, 2 * 60, "extraction"),
    "gather_round_trips": Request(4, 15),
    "join_encoders": Request(8, 15, "run"),
    "judge_claims": Request(4, 10),
    "make_table": Request(2, 10),
    "map_attention": Request(8, 30, "run"),
    "measure_contamination": Request(8, 30),
    "pick_exemplars": Request(4, 15),
    "pool_encoder": Request(8, 15, "run"),
    "read_dataset": Request(4, 30),
    "read_word_vectors": Request(16, 30),
    "split_corpus": Request(4, 15),
    "tabulate_extraction": Request(4, 10),
    "tabulate_times": Request(2, 10),
    "train_encoder": Request(16, 8 * 60, "run"),
    "translate_shard": Request(2, 24 * 60),
    "write_exemplars": Request(4, 4 * 60),
    "write_model_card": Request(2, 10),
    "write_report": Request(4, 10),
}


class Requests(Lookups):
    """Functions of a job's wildcards and of its try."""

    def of(self, rule: str) -> dict[str, Callable[..., str | int]]:
        """Memory, such as 16GB, and minutes; twice as much in a second try. Of several encoders, the time of each."""
        request = REQUESTS[rule]

        def memory(wildcards: Wildcards, attempt: int = 1) -> str:
            factor = max(memory for memory, _ in self._needs(request.encoder, wildcards))
            return f"{request.gigabytes * attempt * factor}GB"

        def minutes(wildcards: Wildcards, attempt: int = 1) -> int:
            factor = sum(time for _, time in self._needs(request.encoder, wildcards))
            return min(request.minutes * attempt * factor, LONGEST)

        return {"mem": memory, "runtime": minutes}

    def _needs(self, loaded: str, wildcards: Wildcards) -> list[tuple[int, int]]:
        """Memory and time of every encoder that a job computes with, in those of BERT-base."""
        if loaded == "experiment":  # figures of some runs: one of each size
            runs = (
                self._study.runs_of(wildcards.experiment) if wildcards.experiment in self._study.grids else {}
            )
            sizes = {self._size(part) for run in runs.values() for part in self._parts(run.encoder)}
            return [OF_SIZE[size] for size in sorted(sizes or {"base"})]
        if not loaded:
            return [(1, 1)]
        named = (
            self._config["extraction"]["encoder"] if loaded == "extraction" else getattr(wildcards, loaded)
        )
        encoder = self._study.runs[named].encoder if loaded == "run" else named
        return [OF_SIZE[self._size(part)] for part in self._parts(encoder)]

    def _parts(self, encoder: str) -> list[str]:
        return parts_of(self._config["encoders"], encoder)

    def _size(self, encoder: str) -> str:
        return size_of(self._config["encoders"], encoder)


def size_of(encoders: Config, encoder: str) -> str:
    """The class of size that a fetched or adapted encoder is configured as."""
    block = encoders[encoder]
    if "adapt" in block:
        return size_of(encoders, block["adapt"]["base"])
    size: str = block["fetch"].get("size", "base")
    return size
