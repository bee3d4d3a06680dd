"""Numbers of a page that look like figures and are bound to nothing.

What it does: finds numbers with a unit of measurement, in prose, headings, tables, alt texts and front matter. What it does not
do: judge whether they are true. Rules kept: code, addresses, comments and bound text are left alone; a number in front matter, a
heading or an alt text, where no comment can stand, counts as bound where a binding of the page shows it.
"""

import re
from collections.abc import Iterator, Sequence

from ledger.publish.page import Page

_UNITS = r"tok(?:ens)?/s|t/s|tok/J|req/s|ms|µs|us|s|seconds|GiB|MiB|KiB|GB|MB|TB|°C|W|%|percent|×|x|times"
_NUMBER = r"[0-9]{1,3}(?:,[0-9]{3})+(?:\.[0-9]+)?|[0-9]+(?:\.[0-9]+)?"
_METRIC = re.compile(
    rf"(?<![\w.@/#-])[-+−]?(?P<number>{_NUMBER})(?:[ \u00a0\u202f]?(?:{_UNITS})(?![\w/])|(?=[ ]?\|)(?<=\.[0-9]))"
)
# Where nobody reads a number: comments, addresses of links and of themselves, tags.
_SILENT = re.compile(r"<!--.*?-->|(?<=\]\()[^)\s]*|<?https?://[^\s>)]+|<[a-zA-Z/][^>]*>", re.DOTALL)


def loose_numbers(page: Page) -> Iterator[tuple[int, str]]:
    """Offset and text of every number that looks like a figure and is bound to nothing."""
    hidden = [*page.code, *((item.at, item.end) for item in page.bindings)]
    hidden += [(item.start, item.end) for item in page.not_ours if item.start >= 0]
    hidden += [match.span() for match in _SILENT.finditer(page.text)]
    plain = _blanked(page.text, hidden)
    for item in page.not_ours:
        if item.start < 0:
            plain = plain.replace(item.text, " " * len(item.text))
    shown = _numbers_shown(page)
    for match in _METRIC.finditer(plain):
        if not (_no_comment_can_stand(page, plain, match.start()) and match["number"] in shown):
            yield match.start(), match[0].strip()


def _blanked(text: str, hidden: Sequence[tuple[int, int]]) -> str:
    """The text with what is hidden as spaces, every offset kept."""
    chars = list(text)
    for start, end in hidden:
        chars[start:end] = ["\n" if char == "\n" else " " for char in chars[start:end]]
    return "".join(chars)


def _numbers_shown(page: Page) -> set[str]:
    shown = " ".join(page.text[item.start : item.end] for item in page.bindings)
    return set(re.findall(_NUMBER, shown))


def _no_comment_can_stand(page: Page, plain: str, at: int) -> bool:
    line = plain[plain.rfind("\n", 0, at) + 1 : at]
    in_alt = line.rfind("![") > line.rfind("](")
    return at < page.front or line.lstrip().startswith("#") or in_alt
