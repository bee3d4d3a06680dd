"""Extractors by name: the built-in ones, and those of the entry point ``ledger.extractors``.

What it does: finds the extractor of a file by its keys, or one by its name. What it does not do: read files. Rules kept: those
of :mod:`ledger.core.plugins`; a file that two extractors take is an error, never a guess.
"""

from ledger.core.errors import Problem
from ledger.core.plugins import Plugins
from ledger.instruments.extract.aiperf import Aiperf, AiperfRecords, GenaiPerf
from ledger.instruments.extract.base import Extractor
from ledger.instruments.extract.benches import RigMark, V41Bench
from ledger.instruments.extract.document import Document, ExtractError
from ledger.instruments.extract.evals import InspectAi, LmEval, LmEvalSamples, Qeval
from ledger.instruments.extract.guidellm import Guidellm
from ledger.instruments.extract.llama import LlamaBench, LlamaBenchy
from ledger.instruments.extract.serving import SglangBench, VllmBench
from ledger.instruments.extract.timing import GoogleBenchmark, Hyperfine, PytestBenchmark

_BUILT_IN: tuple[type[Extractor], ...] = (
    Aiperf,
    AiperfRecords,
    GenaiPerf,
    GoogleBenchmark,
    Guidellm,
    Hyperfine,
    InspectAi,
    LlamaBench,
    LlamaBenchy,
    LmEval,
    LmEvalSamples,
    PytestBenchmark,
    Qeval,
    RigMark,
    SglangBench,
    V41Bench,
    VllmBench,
)
EXTRACTORS: Plugins[Extractor] = Plugins(
    kind=Extractor,  # type: ignore[type-abstract]  # only asked whether something is one
    group="ledger.extractors",
    called="format",
    built_in={kind.name: kind for kind in _BUILT_IN},
)
names = EXTRACTORS.names
get = EXTRACTORS.get


def find(document: Document) -> Extractor:
    """The one extractor that takes the file.

    Raises:
        ExtractError: none does, or several do.
    """
    taking = [extractor for name in names() if (extractor := get(name)).recognises(document)]
    if len(taking) == 1:
        return taking[0]
    found = ", ".join(extractor.name for extractor in taking)
    what = f"a file that several formats take: {found}" if taking else "a format that is not known here"
    hint = "--format names it; --with TABLE.toml describes another"
    raise ExtractError(Problem(what=what, value=document.name, hint=hint))
