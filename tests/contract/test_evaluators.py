"""Evaluators of vectors keep ``evaluation.base``."""

import importlib
import inspect

import pytest

from workflow_scripts.columns import FORMS
from workflow_scripts.evaluation.base import Evaluator
from workflow_scripts.settings.suites import EVALUATORS, SuiteConfig


@pytest.mark.parametrize("kind", EVALUATORS)
def test_every_evaluator_keeps_the_contract(kind):
    module = importlib.import_module(f"workflow_scripts.evaluation.{kind}")
    assert module.Config.form in FORMS
    assert issubclass(module.Config, SuiteConfig)
    asked = list(inspect.signature(Evaluator.load).parameters)[1:]
    assert list(inspect.signature(module.load).parameters) == asked
