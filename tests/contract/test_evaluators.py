"""Evaluators of vectors keep ``evaluation.base``."""

import importlib
import inspect
from typing import get_args

import pytest

from workflow_scripts.columns import FORMS
from workflow_scripts.evaluation.base import Evaluator
from workflow_scripts.settings.suites import EVALUATORS, SuiteConfig


@pytest.mark.parametrize("kind", EVALUATORS)
def test_every_evaluator_keeps_the_contract(kind):
    module = importlib.import_module(f"workflow_scripts.evaluation.{kind}")
    assert module.Config.form in FORMS
    assert issubclass(module.Config, SuiteConfig)
    assert get_args(get_args(module.Config.model_fields["datasets"].annotation)[0])[1].forms == (
        module.Config.form,
    )  # checks and readers agree
    asked = list(inspect.signature(Evaluator.load).parameters)[1:]
    assert list(inspect.signature(module.load).parameters) == asked
