"""Tools as services offer them, the same at every run: names, sentences, parameters, vectors.

* A server is an invented product that does some common trade; its tools do common things.
* Vectors lie in clusters whose axes fall off by a power law, as those of real encoders do.
* Tool and question are numbered: number n's words and number n's vector belong together.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import product
from zlib import crc32

import numpy as np

from benchmarks.synthetic import NOUNS
from gateway.embed.protocol import Embedded, EmbedderInfo, Role
from gateway.plugins.quality.distractors import FixedSource
from gateway.runtime.vectors import Matrix, Vector, unit_rows
from gateway.types import JsonObject, ToolDefinition

PER_SERVER = 20
_TRADES = {
    "billing": "invoice payment refund subscription receipt credit discount statement",
    "calendar": "event meeting reminder attendee room holiday schedule invitation",
    "shipping": "parcel shipment label courier delivery address warehouse customs",
    "monitoring": "alert dashboard metric incident log trace threshold probe",
    "hiring": "candidate interview vacancy offer application referral resume recruiter",
    "code": "repository branch commit issue release pipeline review workflow",
    "travel": "flight hotel booking passenger itinerary seat luggage transfer",
    "weather": "forecast station temperature storm rainfall wind humidity warning",
    "health": "patient appointment prescription allergy vaccine diagnosis clinic dose",
    "learning": "course lesson student quiz grade teacher certificate assignment",
    "music": "song playlist album artist concert lyric genre podcast",
    "banking": "account transfer card loan balance beneficiary deposit statement",
    "maps": "route place distance traffic region marker elevation address",
    "support": "ticket customer conversation macro satisfaction agent queue article",
    "storage": "file folder bucket archive upload version permission link",
    "property": "tenant lease apartment inspection rent landlord repair meter",
}
_VERBS = {
    "list": ("List the", "Returns one page, newest first."),
    "search": ("Search for a", "Matches titles and notes, best first."),
    "get": ("Get the details of a", "Returns every field that the caller may see."),
    "create": ("Create a new", "Returns its identifier."),
    "update": ("Change the fields of an existing", "Fields that are left out stay as they are."),
    "delete": ("Delete a", "This cannot be undone."),
    "export": ("Export a", "Writes a spreadsheet and returns its address."),
    "share": ("Share a", "The recipients are told by e-mail."),
    "archive": ("Archive a", "It is hidden from lists and can be restored."),
    "count": ("Count every", "Groups the numbers by day, week or month."),
}
_PHRASES = (
    "I need to {verb} the {thing} for our {trade} team",
    "{verb} this {thing}",
    "can you {verb} a {thing} in {product} and tell me when it is done",
    "please {verb} the latest {thing} that a customer asked about",
)
_PRODUCTS = 3989
"""A prime number, so that no product does the same trade twice before the millionth tool."""
_CENTRES = 2000
_CALL = "Operation {number}."
_NUMBERED = re.compile(r"[Oo]peration (\d+)")


def servers(count: int) -> Iterator[FixedSource]:
    """Make *count* tools, twenty a server, one server after another."""
    for start in range(0, count, PER_SERVER):
        numbers = range(start, min(start + PER_SERVER, count))
        trade, product_name, _ = _place(start)
        yield FixedSource(f"{product_name}-{trade}", [_tool(number) for number in numbers])


def question(number: int) -> str:
    """Ask for the tool of this number, in one of a few ways; every fourth mistypes the thing."""
    trade, product_name, (verb, thing) = _place(number)
    typed = thing if number % 4 else thing[:2] + thing[3:]
    phrase = _PHRASES[number % 7 % len(_PHRASES)]
    return phrase.format(verb=verb, thing=typed, trade=trade, product=product_name)


def vectors(count: int, dimensions: int) -> Matrix:
    """Return the vectors of *count* tools, unit rows."""
    rng = np.random.default_rng(5)
    spectrum = (1 + np.arange(dimensions, dtype=np.float32)) ** -0.5
    centres = rng.standard_normal((_CENTRES, dimensions), dtype=np.float32) * spectrum
    rows = rng.standard_normal((count, dimensions), dtype=np.float32)
    rows *= 0.6 * spectrum
    rows += centres[rng.integers(_CENTRES, size=count)]
    return unit_rows(rows)


def near(rows: Matrix, seed: int = 6) -> Matrix:
    """Return a question's vector for each of *rows*: the row, and as much noise."""
    rng = np.random.default_rng(seed)
    noise = unit_rows(np.asarray(rng.standard_normal(rows.shape, dtype=np.float32)))
    return unit_rows(rows + noise)


class NumberedEmbedder:
    """Looks the vector of a tool up by the number in its text; a name alone gets one by chance."""

    MODEL_ID = "numbered"

    def __init__(self, rows: Matrix) -> None:
        self._rows = rows
        self.info = EmbedderInfo(model_id=self.MODEL_ID, provider="none", dimensions=rows.shape[1])

    async def embed(self, texts: Sequence[str], *, role: Role) -> Embedded:
        """Return the rows of the texts' numbers, and of names."""
        del role
        return Embedded(vectors=np.stack([self._row(text) for text in texts]))

    def _row(self, text: str) -> Vector:
        if found := _NUMBERED.search(text):
            return np.asarray(self._rows[int(found[1])])
        rng = np.random.default_rng(crc32(text.encode()))
        return np.asarray(unit_rows(rng.standard_normal(self._rows.shape[1]))[0])


def _place(number: int) -> tuple[str, str, tuple[str, str]]:
    """Return the trade and the product of a tool's server, and what the tool does to what."""
    server, at = divmod(number, PER_SERVER)
    trade = tuple(_TRADES)[server % len(_TRADES)]
    deeds = tuple(product(_VERBS, _TRADES[trade].split()))
    return trade, NOUNS[server % _PRODUCTS], deeds[(server * 7 + at * 11) % len(deeds)]


def _tool(number: int) -> ToolDefinition:
    trade, product_name, (verb, thing) = _place(number)
    does, tells = _VERBS[verb]
    fields: dict[str, JsonObject] = {
        f"{thing}_id": {"type": "string", "description": f"Which {thing} is meant."},
        "limit": {"type": "integer", "description": "How many at most, 20 if not given."},
        "note": {"type": "string", "description": f"A remark for the {trade} team."},
    }
    needed = [] if verb in {"list", "search", "create", "count"} else [f"{thing}_id"]
    return ToolDefinition(
        name=f"{verb}_{thing}",
        description=f"{_CALL.format(number=number)} {does} {thing} in {product_name}. {tells}",
        input_schema={"type": "object", "properties": fields, "required": needed},
    )
