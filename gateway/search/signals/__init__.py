"""The signals of `auto`; their weighted sum ranks the candidates."""
