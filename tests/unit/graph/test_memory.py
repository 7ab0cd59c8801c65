"""Memory that jobs ask for."""

from types import SimpleNamespace
from typing import ClassVar

from workflow_scripts.graph.memory import Memory
from workflow_scripts.graph.workloads import Workloads
from workflow_scripts.settings.start import Size

LLAMA, BERT = Size(layers=32, width=4096), Size(layers=12, width=768)


class Study:
    """Four runs of one encoder each, a teacher of two, and a study without training."""

    def __init__(self, encoder="bert"):
        self.config = {"extraction": {"encoder": encoder}}

    runs: ClassVar = {
        "small": SimpleNamespace(encoder="bert"),
        "adapted": SimpleNamespace(encoder="llama"),
        "whole": SimpleNamespace(encoder="llama"),
        "unknown": SimpleNamespace(encoder="not_fetched_yet"),
    }
    sizes = SimpleNamespace(
        behind=lambda encoder: {
            "bert": [BERT], "llama": [LLAMA], "not_fetched_yet": [None], "two": [LLAMA, LLAMA],
        }[encoder]
    )  # fmt: skip

    def method(self, run):
        frozen = {"module": "llm2vec", "weights": "bfloat16"}
        return {"adapted": {"module": "three_r", "base": frozen}}.get(run, {"module": "simcse"})


def wildcards(run):
    return SimpleNamespace(run=run)


def test_encoders_of_usual_size_take_what_their_rule_says():
    memory = Memory(Study(), Workloads(Study()))
    assert memory.reading(8)(wildcards("small")) == "8GB"
    assert memory.training(16)(wildcards("small")) == "16GB"
    assert memory.reading(8)(wildcards("unknown")) == "8GB"


def test_seven_billion_parameters_take_their_own_size():
    """12 * 32 * 4096^2 + 65,536 * 4096 = 6.71e9 parameters: 26.8 GB in float32, four times that to be trained."""
    assert LLAMA.parameters == 6_710_886_400
    memory = Memory(Study(), Workloads(Study()))
    assert memory.reading(8)(wildcards("adapted")) == "31GB"
    assert memory.training(16)(wildcards("adapted")) == "31GB"
    assert memory.training(16)(wildcards("whole")) == "112GB"
    assert memory.encoding(16)(SimpleNamespace(teacher="two")) == "58GB"


def test_sums_of_states_take_a_table_of_the_vocabulary_for_each_layer():
    """13 * 65,536 * 768 * 8 bytes are 5.2 GB, and BERT-base is 0.5 GB."""
    asked = [
        Memory(study, Workloads(study)).averaging()(wildcards("")) for study in (Study(), Study("llama"))
    ]
    assert asked == ["10GB", "102GB"]
    unknown = Study("not_fetched_yet")
    assert Memory(unknown, Workloads(unknown)).averaging()(wildcards("")) == "20GB"
