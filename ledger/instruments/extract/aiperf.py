"""Results of aiperf (summary and records) and of its elder, genai-perf.

What it does: reads the summary's statistics with their own units, or reduces the records of single requests. What it does not
do: take warm-up requests for measured ones. Rules kept: a metric's unit is the file's; a mismatch of output lengths, a run that
was cancelled and requests that failed are marks; a metric that is not known here is left in the file.
"""

from collections.abc import Mapping
from typing import Any

from attrs import frozen

from ledger.core.words import Better
from ledger.instruments.extract.base import (
    Extracted,
    Extraction,
    Extractor,
    counted,
    distribution,
    has,
    number,
    samples,
    single,
    text,
    whole,
)
from ledger.instruments.extract.document import Document
from ledger.receipt.model import Figure

_UNITS = {"tokens/sec": "tok/s", "tokens/sec/user": "tok/s", "requests/sec": "requests/s", "sec": "s"}
_STATISTICS = {"p50": "median", "avg": "mean", "std": "std", "p90": "p90", "p95": "p95", "p99": "p99", "min": "min", "max": "max"}


@frozen(kw_only=True)
class _Metric:
    """What a tag of the tool is called here, which way is better, and what the tool means by it."""

    name: str
    better: Better
    definition: str


_METRICS: Mapping[str, _Metric] = {
    "time_to_first_token": _Metric(
        name="ttft", better=Better.LOWER, definition="time to the first response with content or reasoning"
    ),
    "time_to_first_output_token": _Metric(
        name="ttfo", better=Better.LOWER, definition="time to the first response with content that is not reasoning"
    ),
    "inter_token_latency": _Metric(
        name="itl", better=Better.LOWER, definition="(latency - ttft) / (output tokens - 1) of a request"
    ),
    "inter_chunk_latency": _Metric(name="chunk_gap", better=Better.LOWER, definition="gap between responses"),
    "request_latency": _Metric(name="e2e", better=Better.LOWER, definition="request start to the last content response"),
    "output_token_throughput": _Metric(
        name="output_throughput", better=Better.HIGHER, definition="output tokens over the profiling phase"
    ),
    "output_token_throughput_per_user": _Metric(
        name="output_throughput_per_user", better=Better.HIGHER, definition="1 / itl of a request"
    ),
    "prefill_throughput_per_user": _Metric(
        name="prefill_per_user", better=Better.HIGHER, definition="prompt tokens over ttft of a request"
    ),
    "request_throughput": _Metric(
        name="request_throughput", better=Better.HIGHER, definition="requests over the profiling phase"
    ),
    "output_sequence_length": _Metric(
        name="output_tokens", better=Better.NEITHER, definition="output and reasoning tokens of a request"
    ),
    "input_sequence_length": _Metric(name="input_tokens", better=Better.NEITHER, definition="prompt tokens of a request"),
}
_DEFINITIONS = {metric.name: metric.definition for metric in _METRICS.values()}


class Aiperf(Extractor):
    """``profile_export_aiperf.json``: the summary of a run."""

    name = "aiperf"
    definitions = _DEFINITIONS

    def _recognises(self, document: Document) -> bool:
        return has(document.root, "schema_version", "aiperf_version", "request_latency")

    def _extract(self, document: Document) -> Extraction:
        root = document.root
        info = root.get("run_info")
        return Extraction(
            tool="aiperf",
            version=text(root.get("aiperf_version")),
            trials=(_summary(self.name, root),),
            command=text(info.get("cli_command")) if isinstance(info, Mapping) else None,
            warnings=tuple(_warnings(root)),
        )


class GenaiPerf(Extractor):
    """``profile_export_genai_perf.json``, which aiperf's summary grew out of."""

    name = "genai-perf"
    definitions: Mapping[str, str] = {
        **_DEFINITIONS,
        "ttft": "time to the first response of any kind",
        "itl": "gap between responses",
    }

    def _recognises(self, document: Document) -> bool:
        root = document.root
        return (
            has(root, "request_throughput", "input_config")
            and not has(root, "aiperf_version")
            and has(root["request_throughput"], "avg")
        )

    def _extract(self, document: Document) -> Extraction:
        trials = (_summary(self.name, document.root),)
        return Extraction(tool="genai-perf", version=None, trials=trials)


class AiperfRecords(Extractor):
    """``profile_export.jsonl``: one line for each request, of the warm-up too."""

    name = "aiperf-records"
    definitions = _DEFINITIONS

    def _recognises(self, document: Document) -> bool:
        first = document.values[0] if document.values else None
        return isinstance(first, Mapping) and has(first, "metadata", "metrics") and has(first["metadata"], "benchmark_phase")

    def _extract(self, document: Document) -> Extraction:
        rows = list(document.values)
        measured = [row for row in rows if row["metadata"]["benchmark_phase"] != "warmup"]
        good = [row for row in measured if not row.get("error") and not row["metadata"].get("was_cancelled")]
        cancelled = sum(bool(row["metadata"].get("was_cancelled")) for row in measured)
        figures: dict[str, Figure] = {}
        for tag, metric in _METRICS.items():
            told = [row["metrics"][tag] for row in good if tag in row["metrics"]]
            values = [each for item in told for each in _each(item["value"])]
            if told:
                figures[f"aiperf.{metric.name}"] = samples(values, _unit(told[0]["unit"]), metric.better)
        left_out = len(rows) - len(measured)
        trial = Extracted(
            measure="aiperf",
            figures=figures,
            requests=counted(ok=len(good), failed=len(measured) - len(good) - cancelled, cancelled=cancelled),
            parameters={"warm_up_requests_left_out": left_out},
            marks=document.marks,
        )
        said = f"{left_out} requests of the warm-up are left out"
        return Extraction(tool="aiperf", version=None, trials=(trial,), warnings=(said,) if left_out else ())


def _summary(tool: str, root: Mapping[str, Any]) -> Extracted:
    place = _place(root)
    n = whole(_average(root, "request_count"))
    figures: dict[str, Figure] = {}
    for tag, metric in _METRICS.items():
        told = root.get(tag)
        if not isinstance(told, Mapping):
            continue
        name, unit = f"{tool}.{metric.name}{place}", _unit(told.get("unit", ""))
        stats = {ours: told[theirs] for theirs, ours in _STATISTICS.items() if theirs in told}
        if set(stats) == {"mean"}:
            figures[name] = single(stats["mean"], unit, metric.better)
        else:
            figures |= distribution(name, stats, unit, metric.better, n=whole(told.get("count")) or n)
    failed = whole(_average(root, "error_request_count")) or 0
    return Extracted(
        measure=tool + place,
        figures=figures,
        requests=counted(ok=n, failed=failed),
        parameters=_parameters(root),
        marks=_marks(root, failed),
        seconds=number(_average(root, "benchmark_duration")),
    )


def _place(root: Mapping[str, Any]) -> str:
    """``@C2`` of the one phase that is measured, where it caps the concurrency."""
    config = root.get("input_config")
    phases = config.get("phases", ()) if isinstance(config, Mapping) else ()
    caps = {
        phase["concurrency"]
        for phase in phases
        if isinstance(phase, Mapping) and phase.get("kind") != "warmup" and whole(phase.get("concurrency"))
    }
    return f"@C{caps.pop()}" if len(caps) == 1 else ""


def _marks(root: Mapping[str, Any], failed: int) -> tuple[str, ...]:
    marks = []
    if failed:
        marks.append(f"{failed} requests failed")
    if root.get("was_cancelled") is True or root.get("is_complete") is False:
        marks.append("the run was not completed")
    if mismatched := whole(_average(root, "osl_mismatch_count")):
        marks.append(f"{mismatched} replies had not the length asked for")
    return tuple(marks)


def _warnings(root: Mapping[str, Any]) -> list[str]:
    errors = root.get("error_summary")
    return [f"the tool reports {len(errors)} kinds of errors"] if isinstance(errors, list) and errors else []


def _parameters(root: Mapping[str, Any]) -> dict[str, Any]:
    return {key: root[key] for key in ("benchmark_id", "schema_version") if isinstance(root.get(key), str)}


def _average(root: Mapping[str, Any], tag: str) -> Any:
    told = root.get(tag)
    return told.get("avg") if isinstance(told, Mapping) else told


def _unit(unit: str) -> str:
    return _UNITS.get(unit, unit)


def _each(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
