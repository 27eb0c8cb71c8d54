"""The signals of `auto`, one module each; their weighted sum ranks the candidates."""
