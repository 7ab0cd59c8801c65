"""Evaluators that rule evaluate_suite runs keep ``evaluation.base``."""

import importlib
import inspect

import pytest

from workflow_scripts.columns.corpora import FORMS
from workflow_scripts.evaluation.base import Evaluator
from workflow_scripts.graph.suites import evaluators
from workflow_scripts.settings.suites import SuiteConfig


@pytest.mark.parametrize("kind", evaluators())
def test_every_evaluator_keeps_the_contract(kind):
    module = importlib.import_module(f"workflow_scripts.evaluation.{kind}")
    assert module.Config.form in FORMS
    assert issubclass(module.Config, SuiteConfig)
    asked = list(inspect.signature(Evaluator.evaluate).parameters)[1:]
    given = inspect.signature(module.evaluate).parameters.values()
    assert [p.name for p in given if p.default is p.empty] == asked


def test_kinds_are_found_by_their_class():
    assert {"clustering", "transfer"} <= set(evaluators())
    assert "sts" not in evaluators()  # a rule of its own
