"""Results of guidellm.

What it does: reads each benchmark's statistics over the requests that succeeded. What it does not do: take its totals over all
requests, or the lowest and highest of a rate, which are the gaps of two requests that end together. Rules kept: the tool's own
warnings come along.
"""

from collections.abc import Mapping
from typing import Any

from ledger.core.words import Better
from ledger.instruments.extract.base import Extracted, Extraction, Extractor, counted, distribution, has, number, text, whole
from ledger.instruments.extract.document import Document
from ledger.receipt.model import Figure

_METRICS: Mapping[str, tuple[str, str, Better]] = {
    "time_to_first_token_ms": ("ttft", "ms", Better.LOWER),
    "time_per_output_token_ms": ("tpot_with_first", "ms", Better.LOWER),
    "inter_token_latency_ms": ("itl", "ms", Better.LOWER),
    "request_latency": ("e2e", "s", Better.LOWER),
    "output_tokens_per_second": ("output_throughput", "tok/s", Better.HIGHER),
    "tokens_per_second": ("total_throughput", "tok/s", Better.HIGHER),
    "requests_per_second": ("request_throughput", "requests/s", Better.HIGHER),
    "request_concurrency": ("concurrency", "requests", Better.NEITHER),
    "prompt_token_count": ("input_tokens", "tokens", Better.NEITHER),
    "output_token_count": ("output_tokens", "tokens", Better.NEITHER),
}
_RATES = ("output_throughput", "total_throughput", "request_throughput", "concurrency")


class Guidellm(Extractor):
    """guidellm's JSON, of 0.8 (``metadata.version`` 2) and of older ones."""

    name = "guidellm"
    definitions: Mapping[str, str] = {
        "ttft": "time to the first iteration with content, reasoning or a tool call",
        "tpot_with_first": "(last token - request start) / output tokens: the first token's wait is inside",
        "itl": "(last - first token) / (output tokens - 1) of a request",
        "e2e": "request start to the last token's iteration",
        "output_throughput": "output tokens over the counted window, averaged over time",
    }

    def _recognises(self, document: Document) -> bool:
        benchmarks = document.root.get("benchmarks") if isinstance(document.root, Mapping) else None
        return (
            isinstance(benchmarks, list)
            and bool(benchmarks)
            and all(has(item, "metrics") and has(item["metrics"], "request_totals") for item in benchmarks)
        )

    def _extract(self, document: Document) -> Extraction:
        root = document.root
        about = root.get("metadata", {})
        return Extraction(
            tool="guidellm",
            version=text(about.get("guidellm_version")),
            trials=tuple(_trial(self.name, item) for item in root["benchmarks"]),
            model=_model(root),
            warnings=tuple(dict.fromkeys(_warnings(root))),
        )


def _trial(tool: str, benchmark: Mapping[str, Any]) -> Extracted:
    strategy = benchmark.get("config", {}).get("strategy") or {}
    streams, rate = whole(strategy.get("streams")), number(strategy.get("rate"))
    place = f"@C{streams}" if streams else f"@{rate:g}rps" if rate else ""
    metrics, totals = benchmark["metrics"], benchmark["metrics"]["request_totals"]
    figures: dict[str, Figure] = {}
    for key, (name, unit, better) in _METRICS.items():
        told = metrics.get(key)
        if isinstance(told, Mapping) and isinstance(told.get("successful"), Mapping):
            figures |= distribution(
                f"{tool}.{name}{place}", _stats(told["successful"], name), unit, better, n=_count(told, totals)
            )
    failed = whole(totals.get("errored")) or 0
    return Extracted(
        measure=tool + place,
        figures=figures,
        requests=counted(ok=totals.get("successful"), failed=failed, cancelled=totals.get("incomplete")),
        parameters={"strategy": str(strategy.get("type_", ""))} if strategy else {},
        marks=(f"{failed} requests failed",) if failed else (),
        seconds=number(benchmark.get("duration")),
    )


def _stats(told: Mapping[str, Any], name: str) -> dict[str, Any]:
    percentiles: Any = told.get("percentiles") or {}
    if name in _RATES:
        return {"mean": told.get("mean")}
    stats = {key: told.get(key) for key in ("median", "mean", "min", "max")}
    return {**stats, "std": told.get("std_dev"), **{key: percentiles.get(key) for key in ("p90", "p95", "p99")}}


def _count(told: Mapping[str, Any], totals: Mapping[str, Any]) -> int | None:
    return whole(totals.get("successful")) if told["successful"].get("count") is None else whole(told["successful"]["count"])


def _model(root: Mapping[str, Any]) -> str | None:
    spec = root.get("config", {}).get("spec") if isinstance(root.get("config"), Mapping) else root.get("args")
    backend = spec.get("backend") if isinstance(spec, Mapping) else None
    told = backend.get("model") if isinstance(backend, Mapping) else spec.get("model") if isinstance(spec, Mapping) else None
    return text(told)


def _warnings(root: Mapping[str, Any]) -> list[str]:
    """What the tool itself doubts; newer files say it as tables with a message."""
    found: list[str] = []
    for item in (root, *root["benchmarks"]):
        for warning in item.get("warnings") or ():
            said = warning.get("message") if isinstance(warning, Mapping) else warning
            found += [f"guidellm: {said}"] if text(said) else []
    return found
