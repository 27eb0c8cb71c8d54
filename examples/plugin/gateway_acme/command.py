"""The command ``gateway acme``."""

from __future__ import annotations

import typer

from .embedder import WORDS

app = typer.Typer()


@app.command()
def acme() -> None:
    """Show the words that the embedder of Acme reads."""
    typer.echo(", ".join(WORDS))
