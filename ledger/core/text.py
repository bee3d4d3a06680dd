"""Text from outside, made safe to show.

What it does: :func:`visible` turns control characters, escape sequences and bidirectional overrides into visible escapes.
What it does not do: change what is stored. Rule kept: whatever came from a spec, a receipt, a server or a log passes here
before it reaches a screen.
"""

import json
import re
import unicodedata

_KEPT = frozenset("\n\t")
_NOT_PLAIN = re.compile(r"[^\n\x20-\x7e]")


def visible(text: str, *, keep: frozenset[str] = _KEPT) -> str:
    """``text`` with every control, format, surrogate or private character written as ``\\xNN`` or ``\\uNNNN``."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(c if c in keep or not _is_control(c) else _escape(c) for c in text)


def one_line(text: str, limit: int = 200) -> str:
    """``text`` on one line of at most ``limit`` characters, safe to show."""
    flat = visible(text, keep=frozenset())
    return flat if len(flat) <= limit else flat[: limit - 1] + "…"


def visible_json(text: str) -> str:
    """JSON ``text`` with whatever :func:`visible` would escape written as ``\\uNNNN``: other bytes, and the same value."""
    return _NOT_PLAIN.sub(lambda match: json.dumps(match[0])[1:-1] if _is_control(match[0]) else match[0], text)


def _is_control(char: str) -> bool:
    return unicodedata.category(char) in {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}


def _escape(char: str) -> str:
    code = ord(char)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"
