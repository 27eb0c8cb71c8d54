"""One immutable picture of the catalog: how it is built, and how little of it a change costs."""
