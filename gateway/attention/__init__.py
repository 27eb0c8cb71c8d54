from gateway.attention.changes import Change as Change
from gateway.attention.changes import accept_similar as accept_similar
from gateway.attention.changes import difference_lines as difference_lines
from gateway.attention.changes import difference_of as difference_of
from gateway.attention.changes import find_changes as find_changes
from gateway.attention.changes import find_similar as find_similar
from gateway.attention.issues import Issue as Issue
from gateway.attention.issues import IssueKind as IssueKind
