"""Settings of the study of vectors without training, a module for each part of it."""
