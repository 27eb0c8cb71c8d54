"""Flags tool definitions that look like an attack on a model: text that talks to it, not of a tool.

A definition is data that a stranger wrote and a model reads. Known attacks hide instructions in
descriptions, schemas, defaults and invisible characters ("tool poisoning", Invariant Labs, 2025;
OWASP MCP Top 10, MCP03), or praise a tool and heap up key words, so that it is found for
everything. These are plain rules: they find what is written plainly and no more, and what they
report is a reason to look, not a verdict.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping

from gateway.runtime.text import normalize
from gateway.types import JsonObject

_MAX_CHARS = 20_000
"""How much of each text is looked at: more than a model is ever shown of it …"""
_MAX_ALL_CHARS = 400_000
"""… and of all texts, what a person or a model reads first."""
_WINDOW_CHARS = 1000
_OVERLAP_CHARS = 300
"""What a rule finds is shorter."""
_READ = ("name", "description", "title", "inputSchema", "outputSchema", "annotations")

_HIDDEN = (
    "[\U000e0000-\U000e007f\u202a-\u202e\u2066-\u2069\x00-\x08\x0e-\x1f\x7f]"
    "|[\ufe00-\ufe0f\U000e0100-\U000e01ef]{3}"
    "|(?:\\w[\u200b\u2060\ufeff]\\w)|[\u200b-\u200f\u2060-\u2064\ufeff]{4}"
)
_INVISIBLE = "[\u00ad\u200b-\u200f\u2060-\u2064\ufeff\U000e0000-\U000e01ef]"

_PRIVATE_FILES = (
    r"\.ssh\b|\bid_(?:rsa|dsa|ecdsa|ed25519)\b|/etc/(?:passwd|shadow)\b|\.aws/credentials"
    r"|\.kube/config|\.npmrc\b|\.netrc\b|\.pypirc\b|\.docker/config\.json|\.cursor/mcp\.json"
    r"|claude_desktop_config\.json|\.git-credentials|\.env file|private key file|private key as"
)
_LOOT = (
    r"(?:conversation|chat|message) (?:history|transcript|log)|(?:entire|whole|full) conversation"
    r"|chat transcript|system prompt|environment variables|credentials?|passwords?|secrets"
    r"|api keys?|session tokens?|(?:access|auth|bearer) tokens?|private keys?|ssh keys?|cookies"
)
_TAKE = (
    r"append|attach|copy|embed|encode|exfiltrate|fetch|forward|include|leak|pass|post|put|reveal"
    r"|send|smuggle|transmit|upload|write|add"
)
_PLACE = r"in|into|to|as|by adding|with|after|within"
_RULES: Mapping[str, str] = {
    "instructions in tags": (
        r"</?\s*(?:important|system|secret|hidden[\w-]*|instructions?|admin|override|assistant)\s*>"
        r"|\[/?inst\]|<</?sys>>|<\|[a-z_]+\|>|<!--"
    ),
    "overrides instructions": (
        r"\b(?:ignore|disregard|forget|override|bypass|pay no attention to)\b[^.\n]{0,40}\b"
        r"(?:instructions?|rules|guidelines|directives|prompts?|restrictions|everything you)\b"
        r"|\b(?:prior|previous|earlier) (?:directives|instructions|rules|prompts)\b[^.\n]{0,30}"
        r"\b(?:void|invalid|cancell?ed|obsolete|replaced)\b"
        r"|\byou are now\b|\bnew instructions\s*:|\bno longer bound\b"
        r"|\b(?:assistant|model|ai|llm) must obey\b"
    ),
    "keeps a secret from the user": (
        r"\b(?:do not|don't|never|must not|without)\b[^.\n]{0,25}\b(?:tell|mention|inform|notify"
        r"|reveal|disclose|alert)(?:ing)?\b[^.\n]{0,40}\b(?:user|human|anyone|anybody|these"
        r"|this to)\b"
        r"|\b(?:user|human)s? (?:must|should|may|does|do|can) ?not (?:see|know|notice|be told"
        r"|be informed|find out)\b|\bhidden from the (?:user|human)\b"
        r"|\bwithout (?:the )?user(?:'s)? (?:knowledge|knowing|consent)\b"
    ),
    "names files of secrets": _PRIVATE_FILES,
    "asks for secrets": (
        rf"\b(?:{_TAKE})\b[^.\n]{{0,40}}\b(?:{_LOOT})\b[^.\n]{{0,40}}\b(?:{_PLACE})\b[^.\n]{{0,30}}"
        r"\b(?:parameters?|arguments?|fields?|url|query string|prompt|https?|context|notes?"
        r"|sidenote)"
        rf"|\b(?:{_TAKE})\b[^.\n]{{0,40}}\b(?:{_LOOT})\b[^.\n]{{0,20}}https?://"
        r"|\bpost every password\b"
    ),
    "speaks of other tools' calls": (
        r"\b(?:always|must be|must)\b[^.\n]{0,20}\b(?:call|invoke|use|run)[ed]*\b[^.\n]{0,20}"
        r"\b(?:first, )?before (?:any|every|each|all)(?: other)? (?:tools?|calls?)\b"
        r"|\bbefore (?:any|every|each) (?:other )?tools?(?: calls?)?\b"
        r"|\b(?:do not|don't|never) (?:use|call) (?:any )?other\b[^.\n]{0,20}\btools?\b"
        r"|\bthis tool (?:replaces|supersedes|overrides)\b|\bsupersedes (?:them )?all\b"
        r"|\bprefer this tool over (?:all|any|every)\b"
        r"|\b(?:when|whenever|if|each time)\b[^.\n]{0,30}\b(?:tool\b[^.\n]{0,20}\b"
        r"(?:is (?:called|used|invoked|available)|transfers?|sends?)|another tool)[^.\n]{0,40}"
        r"\b(?:change|replace|set|swap|redirect|modify)\b"
        r"|\bnever call \w+ again\b"
    ),
    "praises itself": (
        r"\b(?:always|must|should)\b[^.\n]{0,30}\b(?:use|call|run|invoke|choose|pick|select|prefer)"
        r"(?:ed)?\b[^.\n]{0,12}\bthis (?:tool|function|server)\b[^.\n]{0,20}"
        r"\b(?:first|for (?:any|every|all|each)(?:thing)? (?:requests?|tasks?|questions?|quer)"
        r"|for everything|for anything|no matter|whatever|instead of (?:any|all|every))"
        r"|\bmust (?:call|use|run|invoke) this (?:tool |function )?first\b(?! to\b)"
        r"|\b(?:use|call|choose) this (?:tool |function )?for (?:everything|anything|any task)\b"
        r"|\b(?:answers?|handles?|serves?|solves?|does|do|required for) (?:any|every|all|each)"
        r"(?: of)?(?: the)?(?: user'?s?)? (?:requests?|questions?|tasks?)\b"
        r"(?! (?:about|of|on|in|to|for|by|that|with|from|at|you|related|concerning|regarding))"
        r"|\b(?:can )?(?:do|does) (?:anything|everything) (?:that )?(?:the |a )?users?\b"
        r"|\bwhatever (?:the )?(?:user|request|task|question)s? (?:asks?|is|wants?|needs?|says?)\b"
        r"|\b(?:best|only|number one|#1) (?:and (?:best|only) )?tool (?:you|for (?:every|any|all))"
        r"|\bnever use another tool\b|\bprefer (?:it|this|me) (?:tool )?over (?:all|any|every)\b"
        r"|\bbefore you do anything else\b"
    ),
    "redirects what is sent": (
        r"\b(?:bcc|cc)'?e?d? (?:to )?\S+@|\b(?:change|replace|swap) the (?:recipient|account|amount"
        r"|address|iban)\b|\bevery (?:e-?mail|message)s? (?:must|goes|should)\b[^.\n]{0,30}\bto\b"
        r"|\bwebhook\.site\b|\brequestbin\b|\bngrok\b|\bburpcollaborator\b"
        r"|https?://\d{1,3}(?:\.\d{1,3}){3}\S*/(?:collect|exfil|steal|log)"
    ),
    "carries a command": (
        r"\b(?:curl|wget)\b[^\n]{0,80}\|\s*(?:ba|z)?sh\b|\brm -rf\s+[~/]|\bbase64 (?:-d|--decode)"
        r"|\bnc -e\b|/dev/tcp/|__import__\(|\bos\.system\(|\bpowershell\b[^\n]{0,20}-enc"
    ),
}
_NAMED_LOOT = r"ssh_id_|id_rsa|content_(?:from|of)_reading|system_prompt|private_key_of"
_WORD = r"[^\W\d_]{2,}"
_MIN_REPEATS = 8
"""How often one word must stand in a text before its share of the text is looked at."""
_MAX_WORD_SHARE = 0.3
_MIN_KEY_WORDS = 24
"""Words of one list, without a colon before it that would name what is listed."""
_MAX_GRAMMAR_SHARE = 0.05
_GRAMMAR = (
    r"\b(?:an?|and|are|as|at|be|by|can|do|for|from|given|has|if|into?|is|its?|not|of|on|only|or"
    r"|returns?|that|the|their|them|then|this|to|used?|using|when|where|which|will|with|your?)\b"
)
"""Words that every English sentence has some of, and a heap of key words none."""


def scan_definition(
    tool: JsonObject, on_step: Callable[[], None] = lambda: None
) -> tuple[str, ...]:
    """Return why the definition *tool*, as its server sent it, looks like an attack; else empty.

    Args:
        tool: The definition.
        on_step: Called between the steps of the work, each some milliseconds at most.
    """
    first = {key: tool[key] for key in _READ if key in tool}
    texts = (text[:_MAX_CHARS] for text in _texts({**first, **tool}))
    raw = "\n".join(texts)[:_MAX_ALL_CHARS]
    # In parts: one letter may stand for eighteen.
    parts = (raw[start : start + _MAX_CHARS] for start in range(0, len(raw), _MAX_CHARS))
    folded = (re.sub(_INVISIBLE, "", normalize("NFKC", part)).casefold() for part in parts)
    text = "".join(folded)
    reasons = [reason for reason, rule in _RULES.items() if _is_found(rule, text, on_step)]
    if re.search(_HIDDEN, raw):
        reasons.append("hidden characters")
    schema = tool.get("inputSchema")
    properties = schema.get("properties") if isinstance(schema, dict) else None
    names = properties if isinstance(properties, dict) else ()
    if any(re.search(_NAMED_LOOT, str(name).casefold()) for name in names):
        reasons.append("a parameter asks for secrets")
    description = tool.get("description")
    if isinstance(description, str) and _is_stuffed(description[:_MAX_CHARS].casefold()):
        reasons.append("heaps up key words")
    return tuple(reasons)


def _is_found(rule: str, text: str, on_step: Callable[[], None]) -> bool:
    """Whether *rule* matches a part of *text*, looked at window by window."""
    pattern = re.compile(rule)
    for start in range(0, len(text), _WINDOW_CHARS):
        on_step()
        if pattern.search(text, start, start + _WINDOW_CHARS + _OVERLAP_CHARS):
            return True
    return False


def _is_stuffed(text: str) -> bool:
    """Whether one word makes up much of *text*, or key words stand in it without a sentence."""
    words = re.findall(_WORD, text)
    if words:
        _, count = Counter(words).most_common(1)[0]
        if count >= _MIN_REPEATS and count > _MAX_WORD_SHARE * len(words):
            return True
    for sentence in re.split(r"[.!?;\n]+", text):
        listed = re.findall(_WORD, sentence)
        grammar = len(re.findall(_GRAMMAR, sentence))
        if len(listed) < _MIN_KEY_WORDS or ":" in sentence or not sentence.isascii():
            continue
        if len(set(listed)) > len(listed) / 2 and grammar <= _MAX_GRAMMAR_SHARE * len(listed):
            return True
    return False


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield name
            yield from _texts(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _texts(inner)
