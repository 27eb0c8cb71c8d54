"""Python functions of the demo: tools of the host's own, beside its servers."""

from __future__ import annotations

from typing import Literal, TypedDict

from gateway.errors import InvalidRequestError


class Invoice(TypedDict):
    """One invoice."""

    number: str
    customer: str
    amount_eur: float
    paid: bool


_INVOICES: dict[str, Invoice] = {
    "INV-2041": {"number": "INV-2041", "customer": "Orchard", "amount_eur": 1250.0, "paid": True},
    "INV-2042": {"number": "INV-2042", "customer": "Harbour", "amount_eur": 480.5, "paid": False},
    "INV-2043": {"number": "INV-2043", "customer": "Orchard", "amount_eur": 99.0, "paid": False},
}
_METRES = {"m": 1.0, "km": 1000.0, "mi": 1609.344, "ft": 0.3048}


def find_invoice(number: str) -> Invoice:
    """Look up one invoice: its customer, its amount, and whether it is paid.

    Args:
        number: The invoice number, for instance INV-2041.
    """
    if number not in _INVOICES:
        raise InvalidRequestError(f"there is no invoice {number!r}; try INV-2041")
    return _INVOICES[number]


def list_open_invoices(customer: str = "") -> list[Invoice]:
    """List the invoices that are not paid yet.

    Args:
        customer: Only this customer's; empty means all customers'.
    """
    return [
        invoice
        for invoice in _INVOICES.values()
        if not invoice["paid"] and customer in {"", invoice["customer"]}
    ]


def convert_length(
    value: float, from_unit: Literal["m", "km", "mi", "ft"], to_unit: Literal["m", "km", "mi", "ft"]
) -> float:
    """Convert a length or a distance between metres, kilometres, miles and feet.

    Args:
        value: How many of the first unit.
        from_unit: The unit that the value has.
        to_unit: The unit that is wanted.
    """
    return value * _METRES[from_unit] / _METRES[to_unit]


FUNCTIONS = (find_invoice, list_open_invoices, convert_length)
