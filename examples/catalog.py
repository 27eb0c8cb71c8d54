"""Agents and skills beside tools: put in, found by one search, shown in parts.

python examples/catalog.py
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from tempfile import TemporaryDirectory

from gateway import Entry, Filters, Gateway, Hints, Options
from gateway.catalog.entries import project

PLANNER = Entry(
    kind="agent",
    name="trip-planner",
    description="Plans trips to other cities, with trains and hotels.",
    hints=Hints(tags=("travel",), examples=("a week in Rome",)),
    metadata={"provider": {"organization": "Acme"}, "version": "1.2.0"},
)
EXPENSES = Entry(
    kind="skill", name="expense-report", description="How to write an expense report after a trip."
)


def book_train(origin: str, destination: str) -> str:
    """Book a train from one city to another."""
    return f"{origin} to {destination}: booked"


async def main() -> None:
    """Search every kind at once."""
    with TemporaryDirectory() as folder:  # leave it out to keep entries in your own catalog
        options = Options(catalog_store_path=Path(folder) / "catalog.sqlite3")
        await show(Gateway(strategy="graph", options=options))


async def show(opened: Gateway) -> None:
    """Put entries in, find them, and show a part of one."""
    async with opened as gateway:
        gateway.add_tool(book_train)
        await gateway.catalog.put(PLANNER, EXPENSES)
        everything = Filters(kinds=frozenset({"tool", "agent", "skill"}))
        found = await gateway.search("a trip to Rome by train", filters=everything)
        for match in found.matches:
            print(f"{match.id}: {match.description}")
        planner = await gateway.catalog.get(PLANNER.id)
        if planner is not None:
            print(project(planner.metadata, ["provider.organization"]))


if __name__ == "__main__":
    asyncio.run(main())
