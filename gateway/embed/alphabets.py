"""Which letters the first encoder can read: those of the 16 languages it was trained on. Pure.

Arabic, Chinese, Dutch, English, French, German, Italian, Japanese, Korean, Polish, Portuguese,
Russian, Spanish, Thai, Turkish. A text of another script, or with letters that none of these
languages has (Ukrainian, Vietnamese, Czech), is noise to it.
"""

from __future__ import annotations

import re
import unicodedata

_KNOWN = (
    "[a-zA-Z"
    "äöüßÄÖÜàâæçéèêëîïôœùûüÿÀÂÆÇÉÈÊËÎÏÔŒÙÛÜŸáíóúñÁÍÓÚÑãõÃÕìòÌÒ"
    "ąćęłńśźżĄĆĘŁŃŚŹŻğışĞİŞ"
    "\u0401\u0410-\u044f\u0451"
    "\u0600-\u06ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\u0e00-\u0e7f]*"
)
_WORD = re.compile(r"[^\W\d_]+")
_ENOUGH = 0.2
"""With this share of unreadable words a text is of another language; fewer may be names."""
LEAST = 0.2
"""What is left of the first encoder's share in such a text."""


def readable(text: str) -> float:
    """Say how far the first encoder can be trusted with *text*, `LEAST` to 1.

    A text without a word is trusted in full.
    """
    if text.isascii():
        return 1.0
    words = _WORD.findall(unicodedata.normalize("NFC", text))
    unread = sum(not re.fullmatch(_KNOWN, word) for word in words)
    share = unread / len(words) if words else 0.0
    return 1.0 - (1.0 - LEAST) * min(1.0, share / _ENOUGH)
