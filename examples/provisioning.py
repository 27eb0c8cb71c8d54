"""Ask for what the catalog cannot do, and read the plan; nothing is fetched or installed.

python examples/provisioning.py
"""

from __future__ import annotations

import asyncio
import shlex

from gateway import Gateway, Provisioner, discover
from gateway.plugins.provision.policy import Question


def add(a: float, b: float) -> float:
    """Add two numbers."""
    return a + b


async def ask(question: Question) -> bool:
    """Show what would run, and agree to nothing. A real program would ask somebody."""
    for command in (*question.commands, question.launch):
        print(shlex.join(command))
    return False


async def main() -> None:
    """Look at home, then beyond."""
    async with Gateway(strategy="graph") as gateway:
        gateway.add_tool(add)
        here = await discover(gateway, "add two numbers")
        print(f"here: {here.tools[0].name}, confidence {here.tools[0].confidence:.2f}")

        provisioner = Provisioner(gateway, consent=ask)
        found = await provisioner.provision("what time is it in Kyiv")  # apply=True would do it
        if found.plan is None:
            raise SystemExit(found.reason)
        for gate in found.gates:
            print(f"{gate.name}: {gate.verdict}, {gate.reason}")
        print(f"{found.outcome}: {found.plan.entry.name} {found.plan.entry.version}")


if __name__ == "__main__":
    asyncio.run(main())
