# For type checkers: the names and modules of `__init__.py`.

from gateway.plugins.access.audit import AuditDecision as AuditDecision
from gateway.plugins.access.audit import AuditLog as AuditLog
from gateway.plugins.access.audit import Auditor as Auditor
from gateway.plugins.access.audit import AuditRow as AuditRow
from gateway.plugins.access.audit import new_row as new_row
from gateway.plugins.access.audit import read_all as read_all
from gateway.plugins.access.gate import AccessGate as AccessGate
from gateway.plugins.access.limits import Charge as Charge
from gateway.plugins.access.limits import Limiter as Limiter
from gateway.plugins.access.limits import MemoryCounters as MemoryCounters
from gateway.plugins.access.limits import charges_of as charges_of
from gateway.plugins.access.policies import Policies as Policies
from gateway.plugins.access.redaction import Redactor as Redactor
from gateway.plugins.access.tables import AUDIT as AUDIT
from gateway.plugins.access.tables import LIMITS as LIMITS
from gateway.plugins.access.tables import SqlAuditLog as SqlAuditLog
from gateway.plugins.access.tables import audit_log_of as audit_log_of
from gateway.plugins.access.tables import auditor_of as auditor_of
from gateway.plugins.access.tables import counters_of as counters_of
