"""Access control: policies, limits, redaction and the audit log."""

from gateway.runtime.lazy_names import lazy_names

__all__, __getattr__, __dir__ = lazy_names(
    __name__,
    {
        "audit": "AuditDecision AuditLog AuditRow Auditor new_row read_all",
        "gate": "AccessGate",
        "limits": "Charge Limiter MemoryCounters charges_of",
        "policies": "Policies",
        "redaction": "Redactor",
        "tables": "AUDIT LIMITS SqlAuditLog audit_log_of auditor_of counters_of",
    },
)
