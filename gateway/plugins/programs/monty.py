"""The sandbox over Monty, an interpreter of a part of Python in Rust, in processes of its own.

* Its blocking pool on threads of ours: the asynchronous one aborts the host at exit (version 1.4).
* A program whose types were right is not checked again while its stubs stay the same.
* Python that Monty does not know is an error with its line: ``yield``, ``with``, ``match``, most of
  the standard library.
"""

from __future__ import annotations

import asyncio
import contextvars
import json
import os
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, CancelledError, Future, ThreadPoolExecutor, wait
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any

import pydantic_monty as monty
from pydantic_monty._binary import find_monty_binary

from gateway.errors import ConfigError
from gateway.options.programs import ProgramsOptions, Wrapper
from gateway.plugins.programs.sandbox import (
    AnswerCall,
    CallAnswer,
    PendingCall,
    Problem,
    Program,
    ProgramResult,
    ProgramSnapshot,
    wrapped,
)
from gateway.plugins.programs.shapes import ValueRefusedError, to_json
from gateway.runtime.cache import Cache
from gateway.runtime.text import digest

_GRACE_S = 0.4
"""A process that does not end a program itself is killed so long after its time was up."""
_CHECKED = 256
"""Of how many programs it is remembered that their types were right."""
_STEPS_A_CALL = 4
_FREE_STEPS = 200
"""Turns to this process that a program may take beside those of its calls: each name that it uses
as a value takes one."""
_RECURSION = 200
Begin = Callable[[monty.MontySession, monty.CollectString], monty.SyncSnapshot]


def monty_sandbox(options: ProgramsOptions) -> MontySandbox:
    """Return the sandbox of this process for these *options*; its workers are shared.

    Raises:
        ConfigError: Bubblewrap is required and does not work here.
    """
    return _shared(os.getpid(), options.processes, options.seconds, options.wrapper)


@cache
def _shared(_pid: int, processes: int, seconds: float, wrapper: Wrapper) -> MontySandbox:
    # By process: a forked child must not write to the workers of its parent.
    return MontySandbox(processes=processes, seconds=seconds, wrapper=wrapper)


def wrapper_in_use(wrapper: Wrapper) -> Path | None:
    """Return what shuts the workers in; None if nothing does."""
    return None if wrapper == "none" else wrapped(Path(find_monty_binary(None)))


class MontySandbox:
    """`Sandbox` over one pool of workers.

    Args:
        processes: The most workers.
        seconds: The longest that a program computes.
        wrapper: See `ProgramsOptions.wrapper`.

    Raises:
        ConfigError: Bubblewrap is required and does not work here.
    """

    def __init__(
        self, *, processes: int = 4, seconds: float = 2.0, wrapper: Wrapper = "auto"
    ) -> None:
        binary = wrapper_in_use(wrapper)
        if binary is None and wrapper == "required":
            raise ConfigError(
                "ProgramsOptions.wrapper is 'required', and bubblewrap does not work here: install "
                "it (bwrap) and allow user namespaces, or use 'auto'"
            )
        self._pool = monty.Monty(
            binary_path=binary,
            max_processes=processes,
            # Bounds what no limit inside counts: the type check, and sleeping with computing.
            request_timeout=seconds + _GRACE_S,
            feed_duration_limit_grace=_GRACE_S,
            turn_duration_limit_grace=_GRACE_S,
        )
        self._pool.__enter__()
        # As many threads as workers: who waits for one waits here, and blocks nobody else's thread.
        self._threads = ThreadPoolExecutor(processes, thread_name_prefix="programs")
        self._checked = Cache[bool]("programs", max_items=_CHECKED)

    async def run(
        self, program: Program, *, call: AnswerCall, limits: ProgramsOptions
    ) -> ProgramResult:
        """See `Sandbox.run`."""

        def begin(session: monty.MontySession, printed: monty.CollectString) -> monty.SyncSnapshot:
            first = session.feed_start(
                program.code,
                inputs=dict(program.inputs),
                print_callback=printed,
                skip_type_check=is_checked,
            )
            self._checked.put(key, value=True)
            return first

        key = digest(f"{program.stubs}\0{program.code}")
        is_checked = bool(self._checked.peek(key))
        return await self._in_thread(_Run(program, call, limits), begin)

    async def resume(
        self,
        program: Program,
        snapshot: ProgramSnapshot,
        *,
        call: AnswerCall,
        limits: ProgramsOptions,
    ) -> ProgramResult:
        """See `Sandbox.resume`."""

        def begin(session: monty.MontySession, printed: monty.CollectString) -> monty.SyncSnapshot:
            return session.load_snapshot(snapshot.state, print_callback=printed)

        run = _Run(program, call, limits, snapshot)
        return await self._in_thread(run, begin)

    async def _in_thread(self, run: _Run, begin: Begin) -> ProgramResult:
        loop, context = asyncio.get_running_loop(), contextvars.copy_context()
        work = partial(context.run, run.drive, self._pool, begin, loop)
        try:
            return await loop.run_in_executor(self._threads, work)
        except asyncio.CancelledError:
            run.cancel()
            raise

    def close(self) -> None:
        """End the workers; programs that run end first."""
        self._threads.shutdown()
        self._pool.__exit__(None, None, None)


class _Run:
    """One program on its way, in one thread; its calls are answered on the caller's loop."""

    def __init__(
        self,
        program: Program,
        call: AnswerCall,
        limits: ProgramsOptions,
        snapshot: ProgramSnapshot | None = None,
    ) -> None:
        self._program = program
        self._call = call
        self._limits = limits
        self._before = snapshot
        self._calls = 0 if snapshot is None else snapshot.calls
        self._deadline = time.monotonic() + limits.wall_s
        self._open: dict[int, Future[CallAnswer]] = {}
        self._pending: dict[int, PendingCall] = {}
        self._waiting: dict[int, PendingCall] = {}
        self._cancelled = False
        self._printed = monty.CollectString(max_bytes=limits.output_chars)
        self._loop: asyncio.AbstractEventLoop

    def cancel(self) -> None:
        """End it: its result is not wanted any more. From any thread."""
        self._cancelled = True
        for future in [*self._open.values()]:
            future.cancel()

    def drive(
        self, pool: monty.Monty, begin: Begin, loop: asyncio.AbstractEventLoop
    ) -> ProgramResult:
        """Run it to its end; blocks."""
        self._loop = loop
        try:
            return self._drive(pool, begin)
        except monty.MontyTypingError as error:
            return self._failed("the types are wrong; nothing was called", _problems(error))
        except monty.MontyCrashedError as error:
            why = "took too long" if error.timed_out else "took more than it may"
            return self._failed(f"the program {why} and was ended")
        except (monty.MontySyntaxError, monty.MontyRuntimeError) as error:
            return self._failed(_described(error))
        except (monty.MontyError, ValueRefusedError, RecursionError) as error:
            return self._failed(str(error))
        finally:
            for future in self._open.values():
                future.cancel()

    def _drive(self, pool: monty.Monty, begin: Begin) -> ProgramResult:
        if self._cancelled or time.monotonic() > self._deadline:
            return self._failed("other programs took too long: there was no turn for this one")
        with self._session(pool) as session:
            step = begin(session, self._printed)
            for call in self._before.waiting if self._before else ():
                self._start(call)
            while not isinstance(step, monty.MontyComplete):
                if self._cancelled:
                    return self._failed("cancelled")
                if not isinstance(step, monty.FutureSnapshot):
                    step = self._next(step)
                    continue
                answers = self._answers(step.pending_call_ids)
                if answers is None:
                    return self._failed(f"it took longer than {self._limits.wall_s:g} s")
                if not answers:
                    return self._paused(step)
                step = step.resume(answers)
            return replace(self._failed(""), value=to_json(step.output))

    def _session(self, pool: monty.Monty) -> monty.MontySession:
        limits, stubs = self._limits, self._program.stubs
        return pool.checkout(
            limits={
                "max_feed_duration_secs": limits.seconds,
                "max_memory": limits.memory_bytes,
                "max_recursion_depth": _RECURSION,
                "max_suspensions": _FREE_STEPS + _STEPS_A_CALL * limits.calls,
                "max_total_sleep_secs": limits.seconds,
            },
            type_check=bool(stubs),
            type_check_stubs=stubs or None,
            type_check_format="jsonlines",
        )

    def _next(self, step: monty.FunctionSnapshot | monty.NameLookupSnapshot) -> monty.SyncSnapshot:
        if isinstance(step, monty.NameLookupSnapshot):
            return self._look_up(step)
        return self._called(step)

    def _look_up(self, step: monty.NameLookupSnapshot) -> monty.SyncSnapshot:
        if step.object_id is not None or step.variable_name not in self._program.functions:
            return step.resume()

        def function() -> None:
            """Stand for a function of the program, which is called by its name."""

        function.__name__ = step.variable_name
        return step.resume(value=function)

    def _called(self, step: monty.FunctionSnapshot) -> monty.SyncSnapshot:
        name = step.function_name
        if step.is_os_function:
            # No file, no environment and no module of the host.
            return step.resume_not_handled()
        if step.object_id is not None or name not in self._program.functions:
            return step.resume({"exc_type": "NameError", "message": f"name {name!r} is unknown"})
        if self._calls >= self._limits.calls:
            message = f"a program makes at most {self._limits.calls} calls"
            return step.resume({"exc_type": "RuntimeError", "message": message})
        self._calls += 1
        try:
            positional, named = to_json(step.args), to_json(step.kwargs)
        except ValueRefusedError as error:
            return step.resume({"exc_type": "ValueError", "message": f"{name}: {error}"})
        if isinstance(positional, list) and isinstance(named, dict):
            self._start(
                PendingCall(id=step.call_id, name=name, positional=(*positional,), named=named)
            )
        return step.resume({"future": ...})

    def _start(self, call: PendingCall) -> None:
        self._pending[call.id] = call
        answer: Any = self._call(call)
        self._open[call.id] = asyncio.run_coroutine_threadsafe(answer, self._loop)

    def _answers(self, ids: Collection[int]) -> dict[int, Any] | None:
        """Wait for one of the calls *ids* at least.

        Returns:
            The answers that there are; none if all wait for a person, None if time is up.
        """
        answers: dict[int, Any] = {}
        while not answers and (left := [id_ for id_ in ids if id_ in self._open]):
            if self._cancelled:
                return None
            remaining = max(0.0, self._deadline - time.monotonic())
            done = wait((self._open[id_] for id_ in left), remaining, FIRST_COMPLETED).done
            if not done:
                return None
            for id_ in left:
                if self._open[id_] in done:
                    answer = self._result(self._open.pop(id_))
                    if answer.waits:
                        self._waiting[id_] = self._pending[id_]
                    else:
                        answers[id_] = _settled(answer)
        return answers

    def _result(self, future: Future[CallAnswer]) -> CallAnswer:
        try:
            return future.result()
        except CancelledError:
            return CallAnswer(error="cancelled")

    def _paused(self, step: monty.FutureSnapshot) -> ProgramResult:
        waiting = tuple(self._waiting[id_] for id_ in step.pending_call_ids)
        result = self._failed("")
        snapshot = ProgramSnapshot(
            state=step.dump(), waiting=waiting, calls=self._calls, printed=result.printed
        )
        return replace(result, snapshot=snapshot)

    def _failed(self, error: str, problems: tuple[Problem, ...] = ()) -> ProgramResult:
        before, most = self._before.printed if self._before else "", self._limits.output_chars
        return ProgramResult(
            error=error[:most],
            problems=problems,
            printed=(before + self._printed.output)[:most],
            calls=self._calls,
        )


def _settled(answer: CallAnswer) -> Mapping[str, object]:
    if answer.error:
        return {"exc_type": answer.error_type, "message": answer.error}
    return {"return_value": answer.value}


def _described(error: monty.MontySyntaxError | monty.MontyRuntimeError) -> str:
    lines = [frame.line for frame in error.traceback()]
    text = error.display("type-msg")
    return f"line {lines[-1]}: {text}" if lines else text


def _problems(error: monty.MontyTypingError) -> tuple[Problem, ...]:
    return tuple(_read_problems(error.display()))


def _read_problems(text: str) -> Iterator[Problem]:
    for line in text.splitlines():
        try:
            row: Any = json.loads(line)
            yield Problem(
                line=int(row["location"]["row"]), message=str(row["message"]), code=str(row["code"])
            )
        except (ValueError, TypeError, KeyError):
            yield Problem(line=1, message=line)
