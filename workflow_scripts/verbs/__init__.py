"""The verbs of ``python -m workflow_scripts``, a module each, and the parts that they share."""
