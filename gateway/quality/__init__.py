"""Is what people ask for found in a catalog? Test requests, evaluations and comparisons."""

from gateway.quality.comparison import Comparison as Comparison
from gateway.quality.comparison import compare as compare
from gateway.quality.evaluation import TokenCounter as TokenCounter
from gateway.quality.evaluation import evaluate as evaluate
from gateway.quality.offline import offline_requests as offline_requests
from gateway.quality.page import to_page as to_page
from gateway.quality.report import EvalReport as EvalReport
from gateway.quality.report import Outcome as Outcome
from gateway.quality.report import Summary as Summary
from gateway.quality.report import read_report as read_report
from gateway.quality.report import write_report as write_report
from gateway.quality.requests import EvalRequest as EvalRequest
from gateway.quality.requests import RequestSet as RequestSet
from gateway.quality.requests import freeze as freeze
from gateway.quality.requests import parse as parse
from gateway.quality.requests import to_json_lines as to_json_lines
from gateway.quality.tuning import Tuning as Tuning
from gateway.quality.tuning import tune as tune
from gateway.quality.tuning import undo as undo
from gateway.quality.twins import hold_out as hold_out
