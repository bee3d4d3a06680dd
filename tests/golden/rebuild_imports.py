"""Makes the golden imports again, byte for byte: ``python tests/golden/rebuild_imports.py`` from the root of the repository.

What it does: writes, for each sample file of another tool in ``samples/``, what its extractor gives. The samples were made with
the released tools of the version in their names, against a server on the same machine. What it does not do: judge; the tests
hold values of each sample against its own text. Rule kept: what is written is a function of the sample and of the extractors
alone.
"""

from pathlib import Path
from typing import Any

import attrs
import orjson

from ledger.instruments.extract import registry
from ledger.instruments.extract.base import Extraction
from ledger.instruments.extract.document import read_document

SAMPLES = Path(__file__).parent / "samples"
FOLDER = Path(__file__).parent / "imports"
_STYLE = orjson.OPT_INDENT_2 | orjson.OPT_SORT_KEYS | orjson.OPT_APPEND_NEWLINE


def extraction_of(path: Path) -> tuple[str, Extraction]:
    """The name of the format of a sample, and what it gives."""
    document = read_document(path.name, path.read_bytes())
    extractor = registry.find(document)
    return extractor.name, extractor.extract(document)


def golden() -> dict[str, bytes]:
    """The bytes of each golden import by the name of its file."""
    made = {}
    for path in sorted(SAMPLES.iterdir()):
        name, found = extraction_of(path)
        plain: dict[str, Any] = attrs.asdict(found, filter=lambda _, value: value not in (None, (), {}))
        made[f"{path.name}.golden.json"] = orjson.dumps({"format": name, **plain}, option=_STYLE)
    return made


def main() -> None:
    """Write them."""
    FOLDER.mkdir(exist_ok=True)
    for name, data in golden().items():
        (FOLDER / name).write_bytes(data)
        print(name)


if __name__ == "__main__":
    main()
