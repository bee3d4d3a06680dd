"""Links lead somewhere: to files that are there, to headings that are there; and no page of the documentation stands alone."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from docs.examples import DOCS, ROOT, blocks, pages

_LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
NAMES = {str(page.relative_to(ROOT)): page for page in pages()}


def prose(text: str) -> str:
    """A page without its fenced blocks and its code spans."""
    for block in reversed(list(blocks(text))):
        text = text[: block.start] + text[block.end :]
    return re.sub(r"`[^`\n]*`", "``", text)


def links(text: str) -> Iterator[str]:
    """The targets of a page's links."""
    for match in _LINK.finditer(prose(text)):
        yield match[1]


def anchors(text: str) -> set[str]:
    """The anchors of a page's headings, as Git hosts make them."""
    found: set[str] = set()
    for heading in re.findall(r"^#{1,6} +(.+?) *$", prose_with_code(text), re.MULTILINE):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        found.add(re.sub(r"[^\w\- ]", "", words).replace(" ", "-"))
    return found


def prose_with_code(text: str) -> str:
    """A page without its fenced blocks."""
    for block in reversed(list(blocks(text))):
        text = text[: block.start] + text[block.end :]
    return text


def broken(page: Path, text: str) -> list[str]:
    """The links of a page that lead nowhere. Links to other places on the web are not followed."""
    near = [link for link in links(text) if not re.match(r"[a-z]+:", link)]
    return [link for link in near if not _leads_somewhere(page, text, link)]


def _leads_somewhere(page: Path, text: str, link: str) -> bool:
    path, _, anchor = link.partition("#")
    target = (page.parent / path).resolve()
    if path and not (target.is_relative_to(ROOT) and target.exists()):
        return False
    return not anchor or anchor in anchors(target.read_text(encoding="utf-8") if path else text)


@pytest.mark.parametrize("name", NAMES)
def test_every_link_leads_somewhere(name: str) -> None:
    assert broken(NAMES[name], NAMES[name].read_text(encoding="utf-8")) == []


def test_links_that_lead_nowhere_are_seen() -> None:
    page = DOCS / "README.md"
    text = "# A heading\n[a](reference/glossary.md#spec) [b](#a-heading) [c](gone.md) [d](#gone) [e](reference/spec.md#gone)\n"
    assert broken(page, text + "[f](../../../etc/passwd) [g](https://example.org/#x) `[h](gone.md)`") == [
        "gone.md",
        "#gone",
        "reference/spec.md#gone",
        "../../../etc/passwd",
    ]


def test_every_page_can_be_reached_from_the_first() -> None:
    first = DOCS / "README.md"
    seen: set[Path] = set()
    todo = [first]
    while todo:
        page = todo.pop()
        if page in seen:
            continue
        seen.add(page)
        targets = [(page.parent / link.partition("#")[0]).resolve() for link in links(page.read_text(encoding="utf-8"))]
        todo += [target for target in targets if target.suffix == ".md" and target.is_relative_to(DOCS) and target.exists()]
    assert sorted(str(page.relative_to(DOCS)) for page in set(DOCS.rglob("*.md")) - seen) == []


def test_decisions_have_each_a_number_of_its_own_and_their_parts() -> None:
    found = sorted(path for path in (DOCS / "adr").glob("*.md") if path.name != "README.md")
    assert len({path.name[:4] for path in found}) == len(found)
    for path in found:
        text = path.read_text(encoding="utf-8")
        assert text.startswith(f"# {path.name[:4]}: ")
        for part in ("\nStatus: ", "\n## Context\n", "\n## Decision\n", "\n## Consequences\n", "\n## Weighed\n"):
            assert part in text, f"{path.name}: {part.strip()}"
