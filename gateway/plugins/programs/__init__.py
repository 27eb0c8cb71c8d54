"""Sandboxed programs of a model, which call tools."""

from gateway.runtime.lazy_names import lazy_names

__all__, __getattr__, __dir__ = lazy_names(
    __name__,
    {
        "monty": "MontySandbox wrapper_in_use",
        "runner": "ProgramRunner program_tool",
        "sandbox": "AnswerCall CallAnswer PendingCall Program ProgramResult ProgramSnapshot",
        "shapes": "MAX_KEYS join shape_of",
        "store": "program_store",
        "stubs": "HEADER declare identifiers",
        "tables": "PROGRAMS",
    },
)
