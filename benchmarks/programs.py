"""What programs over tools save and cost: the same tasks with and without them, losing rows too.

    python -m benchmarks.programs --json

A scripted model works through the chat wrapper over a real MCP server of 10, 100 or 500 tools. It
searches once, then sums the amounts of 1, 3, 10 or 50 orders:

* ``apart``: the orders are named, so that a model without programs calls all of them in one turn;
* ``chain``: each order names the next one, so that it makes one call a turn.

With ``--mistakes`` the first call, or the program, has a wrong argument, and the next turn mends
it. Tokens are estimated: of every request, whole, and of every reply. A real model adds its own
seconds for each turn and its own mistakes; neither is in these figures.

Beside the rows:

* the attempts of `benchmarks.program_escapes`, and how many got out;
* the start of the pool with its first program;
* a program of one call whose types are known to be right (``warm_run_ms``), and one that is checked
  first (``checked_run_ms``), both with a call that takes no time;
* how long after its limit a runaway ended, and a search while ten of them run.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Annotated, Any, Literal

import typer

from benchmarks.program_escapes import attempt_all
from benchmarks.program_server import total_of
from benchmarks.tables import print_figures, print_table
from gateway import Gateway, Middleware
from gateway.errors import LoopError
from gateway.options import ChatOptions, DiscoveryOptions, Options, ProgramsOptions
from gateway.plugins.programs.monty import MontySandbox, wrapper_in_use
from gateway.plugins.programs.sandbox import CallAnswer, PendingCall, Program
from gateway.runtime.text import json_tokens

Kind = Literal["apart", "chain"]
SIZES = (10, 100, 500)
CALLS = (1, 3, 10, 50)
_REPEATS = 50
_LIMITS = ProgramsOptions(calls=60)
app = typer.Typer(add_completion=False)


@dataclass(kw_only=True)
class ScriptedTask:
    """A model that sums orders; it is asked by its requests and counts them."""

    kind: Kind
    calls: int
    uses_program: bool
    mistakes: bool
    turns: int = 0
    tokens: int = 0
    failures: int = 0
    total: float | None = None
    _orders: list[dict[str, Any]] = field(default_factory=list)

    async def ask(self, body: dict[str, Any]) -> dict[str, Any]:
        """Answer one request."""
        self.turns += 1
        reply = self._reply(body["messages"])
        self.tokens += json_tokens(body) + json_tokens(reply)
        return reply

    def _reply(self, messages: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        if self.turns == 1:
            return _calls(("search_tools", {"query": "get an order with its lines and amounts"}))
        answers = _answers_of_last_turn(messages) if self.turns > 2 else []
        bad = [answer for answer in answers if "error" in answer]
        self.failures += len(bad)
        is_wrong = self.mistakes and self.turns == 2
        if self.uses_program:
            if answers and not bad:
                self.total = answers[0].get("result")
                return {"role": "assistant", "content": f"The total is {self.total}."}
            return _calls(("run_program", {"code": self._program(is_wrong=is_wrong)}))
        self._orders += [answer for answer in answers if "lines" in answer]
        return self._next_calls(is_wrong=is_wrong)

    def _next_calls(self, *, is_wrong: bool) -> dict[str, Any]:
        left = self.calls - len(self._orders)
        if not left:
            self.total = sum(line["amount"] for order in self._orders for line in order["lines"])
            return {"role": "assistant", "content": f"The total is {self.total}."}
        first = self._orders[-1]["next_order_id"] if self._orders else 1
        if is_wrong:
            return _calls(("get_order", {"order_id": "one"}))
        count = left if self.kind == "apart" else 1
        return _calls(*(("get_order", {"order_id": first + place}) for place in range(count)))

    def _program(self, *, is_wrong: bool) -> str:
        if is_wrong:
            return "order = await get_order(order='one')\norder['lines']"
        if self.kind == "apart":
            return (
                "import asyncio\n"
                f"orders = await asyncio.gather(*[get_order(order_id=i + 1) for i in "
                f"range({self.calls})])\n"
                "sum(line['amount'] for order in orders for line in order['lines'])"
            )
        return (
            "number, total = 1, 0\n"
            f"for _ in range({self.calls}):\n"
            "    order = await get_order(order_id=number)\n"
            "    total += sum(line['amount'] for line in order['lines'])\n"
            "    number = order['next_order_id']\n"
            "total"
        )


def _calls(*calls: tuple[str, Mapping[str, object]]) -> dict[str, Any]:
    listed = [
        {
            "id": f"call-{place}",
            "type": "function",
            "function": {"name": name, "arguments": json.dumps(arguments)},
        }
        for place, (name, arguments) in enumerate(calls)
    ]
    return {"role": "assistant", "content": None, "tool_calls": listed}


def _answers_of_last_turn(messages: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    answers: list[dict[str, Any]] = []
    for message in reversed(messages):
        if message.get("role") != "tool":
            break
        text = str(message.get("content"))
        answers.append(json.loads(text) if text.startswith("{") else {"error": text})
    return answers[::-1]


async def run_task(gateway: Gateway, task: ScriptedTask) -> dict[str, float]:
    """Run *task* through the wrapper and return its tokens, turns, seconds and failures."""
    text = f"What is the total of {task.calls} orders from number 1?"
    body = {"model": "scripted", "messages": [{"role": "user", "content": text}]}
    began = time.perf_counter()
    try:
        await Middleware(gateway)(body, task.ask)
    except LoopError:
        task.failures += 1
    seconds = time.perf_counter() - began
    expected = sum(total_of(number + 1) for number in range(task.calls))
    return {
        "tokens": task.tokens,
        "turns": task.turns,
        "seconds": round(seconds, 4),
        "failures": task.failures + (task.total != expected),
    }


async def compare(tools: int, *, mistakes: bool) -> list[dict[str, Any]]:
    """Return the rows of one server, each task with and without programs."""
    rows: list[dict[str, Any]] = []
    gateways = {
        uses_program: Gateway(
            options=Options(
                discovery=DiscoveryOptions(programs=uses_program),
                chat=ChatOptions(max_turns=100),
                programs=_LIMITS,
            )
        )
        for uses_program in (False, True)
    }
    for gateway in gateways.values():
        arguments = ("-m", "benchmarks.program_server", str(tools))
        gateway.add_server("shop", command=sys.executable, args=arguments)
        # Connecting is no task's own time.
        await gateway.search("an order")
        await gateway.invoke("get_order", {"order_id": 1})
    for calls in CALLS:
        for kind in ("apart", "chain") if calls > 1 else ("apart",):
            found = {}
            for uses_program, gateway in gateways.items():
                task = ScriptedTask(
                    kind=kind, calls=calls, uses_program=uses_program, mistakes=mistakes
                )
                found[uses_program] = await run_task(gateway, task)
            rows.append(_row(tools, calls, kind, found[False], found[True]))
    for gateway in gateways.values():
        await gateway.aclose()
    return rows


def _row(
    tools: int, calls: int, kind: str, direct: Mapping[str, float], program: Mapping[str, float]
) -> dict[str, Any]:
    row: dict[str, Any] = {"tools": tools, "calls": calls, "kind": kind}
    for name, value in direct.items():
        row |= {f"{name}_without": value, f"{name}_with": program[name]}
    row["tokens_saved_percent"] = round(100 * (1 - program["tokens"] / direct["tokens"]), 1)
    return row


async def _answer(_call: PendingCall) -> CallAnswer:
    return CallAnswer(value=1)


async def measure_sandbox() -> dict[str, float]:
    """Return the figures of the sandbox itself."""
    began = time.perf_counter()
    sandbox = MontySandbox()
    await sandbox.run(Program(code="1", functions=()), call=_answer, limits=ProgramsOptions())
    started = time.perf_counter() - began
    stubs = "async def tool(*, x: int) -> int: ...\n"
    warm = [await _time(sandbox, stubs, "await tool(x=1)") for _ in range(_REPEATS)][1:]
    checked = [await _time(sandbox, stubs, f"await tool(x={n})") for n in range(2, _REPEATS)]
    limits = ProgramsOptions(seconds=0.5, wall_s=60.0)
    box = MontySandbox(seconds=limits.seconds)
    spin = Program(code="while True:\n    pass", functions=())
    began = time.perf_counter()
    await box.run(spin, call=_answer, limits=limits)
    late = time.perf_counter() - began - limits.seconds
    figures = {
        "pool_start_ms": round(1000 * started, 2),
        "warm_run_ms": round(1000 * median(warm), 3),
        "checked_run_ms": round(1000 * median(checked), 2),
        "runaway_ended_after_limit_s": round(late, 3),
        **await _search_beside_runaways(),
    }
    sandbox.close()
    box.close()
    return figures


async def _time(sandbox: MontySandbox, stubs: str, code: str) -> float:
    program = Program(code=code, functions={"tool"}, stubs=stubs)
    began = time.perf_counter()
    await sandbox.run(program, call=_answer, limits=ProgramsOptions())
    return time.perf_counter() - began


async def _search_beside_runaways() -> dict[str, float]:
    """Return the median of a search that no cache answers, alone and while ten programs spin."""
    gateway = Gateway(strategy="graph")
    gateway.add_server(
        "shop", command=sys.executable, args=("-m", "benchmarks.program_server", "500")
    )
    await gateway.search("an order")
    sandbox, limits = MontySandbox(), ProgramsOptions(wall_s=60.0)
    alone = await _search_seconds(gateway, "letter")
    spin = Program(code="while True:\n    pass", functions=())
    spinning = [
        asyncio.create_task(sandbox.run(spin, call=_answer, limits=limits)) for _ in range(10)
    ]
    await asyncio.sleep(0.1)
    beside = await _search_seconds(gateway, "poster")
    under_way = sum(not task.done() for task in spinning)
    await asyncio.gather(*spinning)
    sandbox.close()
    await gateway.aclose()
    return {
        "search_alone_ms": round(1000 * alone, 2),
        "search_beside_ten_runaways_ms": round(1000 * beside, 2),
        "runaways_under_way": under_way,
    }


async def _search_seconds(gateway: Gateway, word: str) -> float:
    times = []
    for number in range(20):
        began = time.perf_counter()
        await gateway.search(f"print the {word} number {number}")
        times.append(time.perf_counter() - began)
    return median(times)


async def measure(sizes: Sequence[int], *, mistakes: bool) -> dict[str, Any]:
    """Return all figures."""
    sandbox = MontySandbox()
    outcomes = await attempt_all(sandbox)
    sandbox.close()
    return {
        "escapes_tried": len(outcomes),
        "escapes": sum(bool(outcome.reason) for outcome in outcomes),
        "escapes_max_s": round(max(outcome.seconds for outcome in outcomes), 3),
        "escapes_max_host_mib": round(max(outcome.host_mib for outcome in outcomes), 1),
        "bubblewrap": wrapper_in_use("auto") is not None,
        **await measure_sandbox(),
        "rows": [row for size in sizes for row in await compare(size, mistakes=mistakes)],
    }


@app.command()
def main(
    *,
    tools: Annotated[list[int] | None, typer.Option(help="Tools of the server.")] = None,
    mistakes: Annotated[bool, typer.Option(help="Begin with a wrong argument.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Measure, and print the figures."""
    figures = asyncio.run(measure(tools or SIZES, mistakes=mistakes))
    if as_json:
        print_figures(figures, as_json=True)
        return
    print_table("With and without programs", figures.pop("rows"))
    print_figures(figures, as_json=False)


if __name__ == "__main__":
    app()
