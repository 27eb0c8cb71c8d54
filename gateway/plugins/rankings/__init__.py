"""The ranking policies of registries."""
