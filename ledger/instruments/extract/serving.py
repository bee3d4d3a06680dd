"""Results of the serving engines' own benchmarks: vLLM ``bench serve`` and its sweep, and SGLang ``bench_serving``.

What it does: reads the flat tables that both write, one for each run. What it does not do: believe their peaks, which are
buckets of chunks. Rules kept: ITL is a gap between chunks in both tools and is named ``chunk_gap`` here; where no request
succeeded the zeros that the tool wrote are absent; a request rate that is "inf" is no number.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from ledger.core.words import Better
from ledger.instruments.extract.base import (
    ALL_FAILED,
    Extracted,
    Extraction,
    Extractor,
    counted,
    distribution,
    has,
    number,
    single,
    text,
    whole,
)
from ledger.instruments.extract.document import Document
from ledger.receipt.model import Figure

Run = Mapping[str, Any]

_RATES = {
    "output_throughput": "tok/s",
    "total_token_throughput": "tok/s",
    "input_throughput": "tok/s",
    "request_throughput": "requests/s",
    "request_goodput": "requests/s",
}
_TIMES = {"ttft": "ttft", "tpot": "tpot", "itl": "chunk_gap", "e2el": "e2e", "e2e_latency": "e2e"}
_STATISTICS = ("mean", "median", "std", "p50", "p90", "p95", "p99")
_SPECULATION = {
    "spec_decode_acceptance_rate": ("draft_acceptance", "%"),
    "spec_decode_acceptance_length": ("acceptance_length", "tokens"),
    "accept_length": ("acceptance_length", "tokens"),
}


class VllmBench(Extractor):
    """vLLM ``bench serve --save-result``, also appended results, and the array of a sweep."""

    name = "vllm-bench"
    definitions: Mapping[str, str] = {
        "output_throughput": "completion tokens of all requests over the run's duration, ramp and tail inside",
        "ttft": "time to the first chunk with choices, role-only chunks included",
        "tpot": "(latency - ttft) / (output tokens - 1), of requests with more than one token",
        "chunk_gap": "gap between chunks with choices, the first left out; the tool calls it ITL",
        "e2e": "request start to the last chunk with choices",
    }

    def _recognises(self, document: Document) -> bool:
        runs = _runs(document)
        return bool(runs) and all(
            has(run, "output_throughput", "mean_ttft_ms", "completed") and not _is_sglang(run) for run in runs
        )

    def _extract(self, document: Document) -> Extraction:
        runs = _runs(document)
        return Extraction(
            tool="vLLM bench serve",
            version=text(runs[0].get("vllm_version")),
            trials=tuple(_trial(self.name, run) for run in runs),
            model=text(runs[0].get("model_id")),
            label=text(runs[0].get("label")),
            warnings=tuple(_warnings(runs)),
        )


class SglangBench(Extractor):
    """SGLang ``bench_serving``: one JSON line for each run."""

    name = "sglang-bench"
    definitions: Mapping[str, str] = {
        "output_throughput": "completion tokens by usage (else the tokens asked for) over the run's duration",
        "ttft": "time to the first chunk with content or reasoning",
        "tpot": "(latency - ttft) / (output tokens - 1)",
        "chunk_gap": "gap between chunks, which the tool calls ITL; divided by tokens where the acceptance length is known",
        "e2e": "request start to the last line, [DONE] included",
    }

    def _recognises(self, document: Document) -> bool:
        runs = _runs(document)
        return bool(runs) and all(_is_sglang(run) for run in runs)

    def _extract(self, document: Document) -> Extraction:
        runs = _runs(document)
        said = ["output lengths are those asked for where a reply had no usage; the file does not say for how many"]
        return Extraction(
            tool="SGLang bench_serving",
            version=None,
            trials=tuple(_trial(self.name, run) for run in runs),
            label=text(runs[0].get("tag")),
            warnings=(*said, *_warnings(runs)),
        )


def _runs(document: Document) -> list[Run]:
    """The tables of the runs: the values of the file, or those of its one array."""
    values: Iterable[Any] = document.root if isinstance(document.root, list) else document.values
    found = list(values)
    return found if all(isinstance(value, Mapping) for value in found) else []


def _is_sglang(run: Run) -> bool:
    return has(run, "output_throughput", "total_output_tokens_retokenized")


def _trial(tool: str, run: Run) -> Extracted:
    ok = whole(run.get("completed"))
    place = _place(run)
    failed = ok == 0
    figures: dict[str, Figure] = {}
    for key, unit in _RATES.items():
        # A goodput is null where no limits were asked for; another null is a number that was none.
        if key in run and (key != "request_goodput" or run[key] is not None):
            figures[f"{tool}.{key}{place}"] = single(None if failed else run[key], unit, Better.HIGHER, absent=ALL_FAILED)
    for key, name in _TIMES.items():
        stats = {statistic: run[f"{statistic}_{key}_ms"] for statistic in _STATISTICS if f"{statistic}_{key}_ms" in run}
        if failed and stats:
            figures[f"{tool}.{name}{place}"] = Figure(unit="ms", better=Better.LOWER, absent=ALL_FAILED)
        elif stats:
            figures |= distribution(f"{tool}.{name}{place}", stats, "ms", Better.LOWER, n=ok)
    for key, (name, unit) in _SPECULATION.items():
        if run.get(key) is not None:
            figures[f"{tool}.{name}{place}"] = single(run[key], unit, Better.HIGHER)
    return Extracted(
        measure=tool + place,
        figures=figures,
        requests=counted(ok=ok, failed=_failed(run, ok)),
        parameters=_parameters(run),
        marks=_marks(run, ok),
        seconds=number(run.get("duration")),
    )


def _place(run: Run) -> str:
    """``@C8`` where concurrency is capped, ``@4rps`` where requests come at a rate."""
    rate = number(run.get("request_rate"))
    cap = whole(run.get("max_concurrency"))
    return (f"@C{cap}" if cap else "") + (f"@{rate:g}rps" if rate is not None else "")


def _failed(run: Run, ok: int | None) -> int:
    """How many failed: what the file says, else what was asked less what completed."""
    told = whole(run.get("failed"))
    asked = whole(run.get("num_prompts"))
    return told if told is not None else max(0, (asked or 0) - (ok or 0))


def _marks(run: Run, ok: int | None) -> tuple[str, ...]:
    marks = []
    if failed := _failed(run, ok):
        marks.append(f"{failed} requests failed")
    if (cap := whole(run.get("max_concurrency"))) and ok is not None and ok < cap:
        marks.append(f"fewer requests than the concurrency of {cap}")
    return tuple(marks)


def _parameters(run: Run) -> dict[str, Any]:
    """What the run says of how it was made: short texts, numbers and switches that are no figures."""
    keep = (
        "backend",
        "endpoint_type",
        "dataset_name",
        "num_prompts",
        "max_concurrency",
        "request_rate",
        "burstiness",
        "run_number",
    )
    lengths = ("random_input_len", "random_output_len", "total_input_tokens", "total_output_tokens", "date")
    return {key: run[key] for key in (*keep, *lengths) if isinstance(run.get(key), str | int | float) and run[key] == run[key]}


def _warnings(runs: Iterable[Run]) -> Iterable[str]:
    for run in runs:
        if "total_output_tokens_retokenized" in run and run.get("total_output_tokens_retokenized") != run.get(
            "total_output_tokens"
        ):
            told, again = run.get("total_output_tokens"), run["total_output_tokens_retokenized"]
            yield f"output tokens are {told} by the server's count and {again} when the text is tokenized again"
