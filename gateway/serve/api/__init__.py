"""The catalog over HTTP: search, entities and the index, as JSON, with an OpenAPI document."""
