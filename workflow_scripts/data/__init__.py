"""Sources of datasets and encoders, readers of formats, and corpora."""
