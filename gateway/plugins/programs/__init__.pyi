# For type checkers: the names and modules of `__init__.py`.

from gateway.plugins.programs.monty import MontySandbox as MontySandbox
from gateway.plugins.programs.monty import wrapper_in_use as wrapper_in_use
from gateway.plugins.programs.runner import ProgramRunner as ProgramRunner
from gateway.plugins.programs.runner import program_tool as program_tool
from gateway.plugins.programs.sandbox import AnswerCall as AnswerCall
from gateway.plugins.programs.sandbox import CallAnswer as CallAnswer
from gateway.plugins.programs.sandbox import PendingCall as PendingCall
from gateway.plugins.programs.sandbox import Program as Program
from gateway.plugins.programs.sandbox import ProgramResult as ProgramResult
from gateway.plugins.programs.sandbox import ProgramSnapshot as ProgramSnapshot
from gateway.plugins.programs.shapes import MAX_KEYS as MAX_KEYS
from gateway.plugins.programs.shapes import join as join
from gateway.plugins.programs.shapes import shape_of as shape_of
from gateway.plugins.programs.store import program_store as program_store
from gateway.plugins.programs.stubs import HEADER as HEADER
from gateway.plugins.programs.stubs import declare as declare
from gateway.plugins.programs.stubs import identifiers as identifiers
from gateway.plugins.programs.tables import PROGRAMS as PROGRAMS
