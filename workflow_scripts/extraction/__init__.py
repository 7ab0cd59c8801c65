"""The study of sentence vectors without training: what token vectors are, how they are weighed and shaped."""
