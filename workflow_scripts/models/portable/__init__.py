"""Files that go into model folders as they are: they import one another, relatively, and nothing of this project.

What is not a name of the hub's libraries here is a file next to it there. Files named ``*_module`` and those of
``encoder_sum`` and ``prompted_transformer`` hold modules of sentence-transformers; the others compute.
"""
