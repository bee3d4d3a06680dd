"""Results of llama-bench and of llama-benchy.

What it does: reads one trial of each file, a figure for each test. What it does not do: compare the two: one runs in process
without HTTP or sampling, the other asks a server. Rules kept: repetitions are kept as samples; llama-benchy's prompt speed is
by the first event of any kind, so it is named ``pp_by_first_event`` and never prefill; its busiest second is left in the file.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from ledger.core.words import Better
from ledger.instruments.extract.base import (
    Extracted,
    Extraction,
    Extractor,
    counted,
    has,
    number,
    samples,
    single,
    text,
    whole,
)
from ledger.instruments.extract.document import Document, ExtractError
from ledger.receipt.model import Figure

Row = Mapping[str, Any]


class LlamaBench(Extractor):
    """``llama-bench -o json``, ``jsonl`` or ``csv``, also with log lines before it."""

    name = "llama-bench"
    definitions: Mapping[str, str] = {
        "pp": "prompt tokens over time, in process, no HTTP",
        "tg": "generated tokens over time, in process, no sampling and no tokenizing",
        "pg": "prompt and generated tokens together over time",
    }

    def _recognises(self, document: Document) -> bool:
        rows = _rows(document)
        return bool(rows) and all(has(row, "build_commit", "avg_ts", "n_prompt", "n_gen") for row in rows)

    def _extract(self, document: Document) -> Extraction:
        rows = _rows(document)
        figures: dict[str, Figure] = {}
        for row in rows:
            name = _test(row)
            if name in figures:
                raise ExtractError(f"the test {name} is there twice", hint="import a file of one configuration at a time")
            figures[name] = _speed(row)
        first = rows[0]
        keep = ("n_batch", "n_ubatch", "n_threads", "type_k", "type_v", "n_gpu_layers", "flash_attn", "model_type", "backends")
        trial = Extracted(
            measure=self.name,
            figures=figures,
            requests=counted(ok=sum(figure.n or 1 for figure in figures.values())),
            parameters={key: str(first[key]) for key in keep if first.get(key) not in (None, "")},
            marks=document.marks,
        )
        return Extraction(
            tool="llama-bench",
            version=text(first.get("build_commit")),
            trials=(trial,),
            model=text(first.get("model_filename")),
        )


class LlamaBenchy(Extractor):
    """``llama-benchy --save-result --format json``."""

    name = "llama-benchy"
    definitions: Mapping[str, str] = {
        "pp_by_first_event": "prompt tokens over the time to the first event of any kind, less the latency measured",
        "tg": "(tokens - 1) / (last - first content), of all streams together",
        "tg_per_stream": "the same of one stream",
        "ttfr": "time to the first event of any kind",
        "ttft": "time to the first content",
    }

    def _recognises(self, document: Document) -> bool:
        root = document.root
        return has(root, "latency_mode", "benchmarks") and all(has(item, "pp_throughput") for item in root["benchmarks"])

    def _extract(self, document: Document) -> Extraction:
        root = document.root
        return Extraction(
            tool="llama-benchy",
            version=text(root.get("version")),
            trials=tuple(self._trial(root, item) for item in root["benchmarks"]),
            model=text(root.get("model")),
        )

    def _trial(self, root: Row, item: Row) -> Extracted:
        place = f"@C{whole(item['concurrency']) or 1}"
        depth = whole(item.get("context_size")) or 0
        size = f"{whole(item['prompt_size'])}" + (f"-d{depth}" if depth else "")
        context = ".context" if item.get("is_context_prefill_phase") is True else ""
        told: dict[str, tuple[str, str, Better]] = {
            f"pp_by_first_event{size}": ("pp_throughput", "tok/s", Better.HIGHER),
            f"tg{whole(item['response_size'])}": ("tg_throughput", "tok/s", Better.HIGHER),
            f"tg_per_stream{whole(item['response_size'])}": ("tg_req_throughput", "tok/s", Better.HIGHER),
            f"ttfr{size}": ("ttfr", "ms", Better.LOWER),
            f"ttft{size}": ("e2e_ttft", "ms", Better.LOWER),
        }
        figures = {
            f"{self.name}.{name}{context}{place}": _spread(item.get(key), unit, better)
            for name, (key, unit, better) in told.items()
        }
        runs = len((item.get("pp_throughput") or {}).get("values") or ())
        said = {key: root[key] for key in ("latency_mode", "latency_ms", "prefix_caching_enabled") if key in root}
        cached = root.get("prefix_caching_enabled") is True
        return Extracted(
            measure=f"{self.name}{context}{place}-pp{size}-tg{whole(item['response_size'])}",
            figures=figures,
            requests=counted(ok=runs * (whole(item["concurrency"]) or 1)),
            parameters=said,
            conditions={"prefix_cache": "allowed"} if cached else {},
        )


def _rows(document: Document) -> Sequence[Row]:
    if document.rows:
        return [{**row, "samples_ts": _list(row.get("samples_ts"))} for row in document.rows]
    values = document.root if isinstance(document.root, list) else document.values
    return [value for value in values if isinstance(value, Mapping)]


def _list(written: str | None) -> Any:
    """A list that stands in a cell of a CSV as JSON."""
    try:
        return orjson.loads(written or "null")
    except orjson.JSONDecodeError:
        return None


def _test(row: Row) -> str:
    """``llama-bench.pp512``, ``tg128``, ``pp512-tg128``, each ``-d<depth>`` behind a filled context."""
    prompt, made = whole(row["n_prompt"]) or 0, whole(row["n_gen"]) or 0
    parts = ([f"pp{prompt}"] if prompt else []) + ([f"tg{made}"] if made else [])
    if not parts:
        raise ExtractError("a test of no prompt and no generated token")
    depth = whole(row.get("n_depth")) or 0
    return f"llama-bench.{'-'.join(parts)}" + (f"-d{depth}" if depth else "")


def _speed(row: Row) -> Figure:
    """The repetitions where the file has them, else the tool's mean."""
    if isinstance(row.get("samples_ts"), list) and row["samples_ts"]:
        return samples(row["samples_ts"], "tok/s", Better.HIGHER)
    mean = number(row["avg_ts"])
    return single(mean or None, "tok/s", Better.HIGHER, statistic="mean")


def _spread(told: Any, unit: str, better: Better) -> Figure:
    if not isinstance(told, Mapping):
        return Figure(unit=unit, better=better, absent="the tool gives none")
    values = told.get("values")
    return samples(values, unit, better) if isinstance(values, list) and values else single(told.get("mean"), unit, better)
