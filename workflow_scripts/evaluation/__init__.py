"""Evaluators: an encoder or its vectors in, scores in long form out; one kind of evaluation a module.

``evaluation.base`` holds their contract.
"""
