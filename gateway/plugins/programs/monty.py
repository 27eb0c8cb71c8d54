"""Sandbox based on Monty, a Rust interpreter for a subset of Python, in separate processes.

Threads use Monty's blocking pool, because its asynchronous pool aborts the host process at exit
(version 1.4). Unsupported Python is an error with its line: ``yield``, ``with``, ``match``, most of
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
"""Seconds after the time limit until a worker process is killed."""
_MAX_CHECKED = 256
"""Maximum number of programs whose type check is remembered as passed."""
_STEPS_A_CALL = 4
_FREE_STEPS = 200
"""Number of switches from the sandbox to this process besides calls. A function name used as a
value takes one."""
_RECURSION = 200
Begin = Callable[[monty.MontySession, monty.CollectString], monty.SyncSnapshot]


def monty_sandbox(options: ProgramsOptions) -> MontySandbox:
    """Return the shared sandbox of this process for *options*.

    Raises:
        ConfigError: If bubblewrap is required and does not work here.
    """
    return _shared_sandbox(os.getpid(), options.processes, options.seconds, options.wrapper)


@cache
def _shared_sandbox(_pid: int, processes: int, seconds: float, wrapper: Wrapper) -> MontySandbox:
    # A forked child must not write to its parent's workers.
    return MontySandbox(processes=processes, seconds=seconds, wrapper=wrapper)


def wrapper_in_use(wrapper: Wrapper) -> Path | None:
    """Return the path of the wrapper program around the workers, or None."""
    return None if wrapper == "none" else wrapped(Path(find_monty_binary(None)))


class MontySandbox:
    """`Sandbox` with a pool of worker processes.

    Args:
        processes: Maximum number of worker processes.
        seconds: Maximum computing time of a program.
        wrapper: `ProgramsOptions.wrapper`.

    Raises:
        ConfigError: If bubblewrap is required and does not work here.
    """

    def __init__(
        self, *, processes: int = 4, seconds: float = 2.0, wrapper: Wrapper = "auto"
    ) -> None:
        binary = wrapper_in_use(wrapper)
        if binary is None and wrapper == "required":
            raise ConfigError(
                "ProgramsOptions.wrapper is 'required', but bubblewrap does not work here: install "
                "it (bwrap) and allow user namespaces, or use 'auto'"
            )
        self._pool = monty.Monty(
            binary_path=binary,
            max_processes=processes,
            # Also limits type checks and sleeping, which are not computing time.
            request_timeout=seconds + _GRACE_S,
            feed_duration_limit_grace=_GRACE_S,
            turn_duration_limit_grace=_GRACE_S,
        )
        self._pool.__enter__()
        # Programs that wait for a worker must not block other threads.
        self._threads = ThreadPoolExecutor(processes, thread_name_prefix="programs")
        self._checked = Cache[bool]("programs", max_items=_MAX_CHECKED)

    async def run(
        self, program: Program, *, call: AnswerCall, limits: ProgramsOptions
    ) -> ProgramResult:
        """Run *program*, as `Sandbox.run` does."""

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
        return await self._in_thread(_ProgramRun(program, call, limits), begin)

    async def resume(
        self,
        program: Program,
        snapshot: ProgramSnapshot,
        *,
        call: AnswerCall,
        limits: ProgramsOptions,
    ) -> ProgramResult:
        """Continue *program*, as `Sandbox.resume` does."""

        def begin(session: monty.MontySession, printed: monty.CollectString) -> monty.SyncSnapshot:
            return session.load_snapshot(snapshot.state, print_callback=printed)

        run = _ProgramRun(program, call, limits, snapshot)
        return await self._in_thread(run, begin)

    async def _in_thread(self, run: _ProgramRun, begin: Begin) -> ProgramResult:
        loop, context = asyncio.get_running_loop(), contextvars.copy_context()
        work = partial(context.run, run.drive, self._pool, begin, loop)
        try:
            return await loop.run_in_executor(self._threads, work)
        except asyncio.CancelledError:
            run.cancel()
            raise

    def close(self) -> None:
        """Wait for running programs, then stop the workers."""
        self._threads.shutdown()
        self._pool.__exit__(None, None, None)


class _ProgramRun:
    """One run of a program in one thread. The caller's event loop answers its calls."""

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
        """Cancel the run and its calls. May be called from any thread."""
        self._cancelled = True
        for future in [*self._open.values()]:
            future.cancel()

    def drive(
        self, pool: monty.Monty, begin: Begin, loop: asyncio.AbstractEventLoop
    ) -> ProgramResult:
        """Run the program, blocking the thread, until it ends or pauses."""
        self._loop = loop
        try:
            return self._drive(pool, begin)
        except monty.MontyTypingError as error:
            return self._failed_result("the types are wrong; nothing was called", _problems(error))
        except monty.MontyCrashedError as error:
            why = "took too long" if error.timed_out else "used too many resources"
            return self._failed_result(f"the program {why} and was stopped")
        except (monty.MontySyntaxError, monty.MontyRuntimeError) as error:
            return self._failed_result(_error_text(error))
        except (monty.MontyError, ValueRefusedError, RecursionError) as error:
            return self._failed_result(str(error))
        finally:
            for future in self._open.values():
                future.cancel()

    def _drive(self, pool: monty.Monty, begin: Begin) -> ProgramResult:
        if self._cancelled or time.monotonic() > self._deadline:
            return self._failed_result("other programs took too long, so this one did not start")
        with self._session(pool) as session:
            step = begin(session, self._printed)
            for call in self._before.waiting if self._before else ():
                self._start(call)
            while not isinstance(step, monty.MontyComplete):
                if self._cancelled:
                    return self._failed_result("cancelled")
                if not isinstance(step, monty.FutureSnapshot):
                    step = self._next(step)
                    continue
                answers = self._answers(step.pending_call_ids)
                if answers is None:
                    return self._failed_result(f"it took longer than {self._limits.wall_s:g} s")
                if not answers:
                    return self._paused_result(step)
                step = step.resume(answers)
            return replace(self._failed_result(""), value=to_json(step.output))

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
        return self._handle_call(step)

    def _look_up(self, step: monty.NameLookupSnapshot) -> monty.SyncSnapshot:
        if step.object_id is not None or step.variable_name not in self._program.functions:
            return step.resume()

        def function() -> None:
            """Placeholder for a function of the program. Monty passes on only its name."""

        function.__name__ = step.variable_name
        return step.resume(value=function)

    def _handle_call(self, step: monty.FunctionSnapshot) -> monty.SyncSnapshot:
        name = step.function_name
        if step.is_os_function:
            # Programs must not access files, environment variables or modules.
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
        """Wait until at least one of the calls *ids* is answered.

        Returns:
            Answers, keyed by call number. Empty if all calls wait for a person. None at the time
            limit or if the run was cancelled.
        """
        answers: dict[int, Any] = {}
        while not answers and (open_ids := [id_ for id_ in ids if id_ in self._open]):
            if self._cancelled:
                return None
            remaining = max(0.0, self._deadline - time.monotonic())
            done = wait((self._open[id_] for id_ in open_ids), remaining, FIRST_COMPLETED).done
            if not done:
                return None
            for id_ in open_ids:
                if self._open[id_] in done:
                    answer = self._result(self._open.pop(id_))
                    if answer.waits:
                        self._waiting[id_] = self._pending[id_]
                    else:
                        answers[id_] = _monty_answer(answer)
        return answers

    def _result(self, future: Future[CallAnswer]) -> CallAnswer:
        try:
            return future.result()
        except CancelledError:
            return CallAnswer(error="cancelled")

    def _paused_result(self, step: monty.FutureSnapshot) -> ProgramResult:
        waiting = tuple(self._waiting[id_] for id_ in step.pending_call_ids)
        result = self._failed_result("")
        snapshot = ProgramSnapshot(
            state=step.dump(), waiting=waiting, calls=self._calls, printed=result.printed
        )
        return replace(result, snapshot=snapshot)

    def _failed_result(self, error: str, problems: tuple[Problem, ...] = ()) -> ProgramResult:
        before, most = self._before.printed if self._before else "", self._limits.output_chars
        return ProgramResult(
            error=error[:most],
            problems=problems,
            printed=(before + self._printed.output)[:most],
            calls=self._calls,
        )


def _monty_answer(answer: CallAnswer) -> Mapping[str, object]:
    if answer.error:
        return {"exc_type": answer.error_type, "message": answer.error}
    return {"return_value": answer.value}


def _error_text(error: monty.MontySyntaxError | monty.MontyRuntimeError) -> str:
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
