"""Which way round a sentence reads a ratio.

What it does: finds words around a bound ratio that say the reverse of it: "B over C" beside C over B, "faster than" beside a
value below one. What it does not do: understand prose; it knows the words of its tables. Rule kept: the sentence is that of the
binding alone, with the texts of bindings as they are now.
"""

import re

from ledger.core.words import Better
from ledger.publish.page import CLOSE, Page
from ledger.publish.values import Filled
from ledger.query.language import Side

_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_ENDS = re.compile(r"[.!?](?=\s|$)|\n[ \t]*\n|\n(?=[-*|#>])|\|")
_BETTER = re.compile(r"\b(?:faster|quicker|better)\s+than\b", re.IGNORECASE)
_WORSE = re.compile(r"\b(?:slower|worse)\s+than\b", re.IGNORECASE)
_FASTER = re.compile(r"\bfaster\b")
_SLOWER = re.compile(r"\bslower\b")


def reversed_words(page: Page, item: Filled) -> str | None:
    """What in the sentence, or in the bound text itself, says the reverse of the value; None where nothing does."""
    if item.ask is None or item.ask.over is None or item.row is None or item.row.value is None:
        return None
    said = page.text[item.binding.start : item.binding.end]
    if (_FASTER.search(said) and _SLOWER.search(item.text)) or (_SLOWER.search(said) and _FASTER.search(item.text)):
        return f"the page says {said.strip()!r}, and the value says the reverse"
    around = _sentence(page, item)
    above, below = _names(item.ask.side), _names(item.ask.over)
    for top in above - below:
        for bottom in below - above:
            if re.search(rf"\b{re.escape(bottom)}\s+over\s+{re.escape(top)}\b", around):
                return f"the sentence says {bottom} over {top}, and the ratio is {top} over {bottom}"
    if item.style.phrase or item.row.better is Better.NEITHER:
        return None
    is_better = (item.row.value > 1) == (item.row.better is Better.HIGHER)
    words = (_WORSE if is_better else _BETTER).search(around)
    return f"the sentence says {words[0]!r}, and the value says the reverse" if words and item.row.value != 1 else None


def _names(side: Side) -> set[str]:
    return {word.text for word in side.of}


def _sentence(page: Page, item: Filled) -> str:
    before = page.text[max(0, item.binding.at - 1000) : item.binding.at]
    after = page.text[item.binding.end + len(CLOSE) : item.binding.end + 1000]
    before, after = _COMMENT.sub("", before), _COMMENT.sub("", after)
    starts = [match.end() for match in _ENDS.finditer(before)]
    end = _ENDS.search(after)
    text = page.text[item.binding.start : item.binding.end]
    return f"{before[starts[-1] if starts else 0 :]}{text}{after[: end.start() if end else len(after)]}"
