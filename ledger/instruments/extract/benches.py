"""Results of v41bench, the worked example's own benchmark, and of RigMark.

What it does: reads v41bench's batches by the definitions of this ledger's own metrics, which are the same, and RigMark's
receipts under its own names. What it does not do: take v41bench's headline where the batches say otherwise. Rules kept: a
prompt length that is there again and is answered much faster was answered from the cache, so it is a trial of its own, marked a
hit; a request without usage is a failed one; the category ``ceiling_count`` is in no figure.
"""

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any

from ledger.core.words import Better
from ledger.instruments.extract.base import Extracted, Extraction, Extractor, counted, has, number, samples, single, text, whole
from ledger.instruments.extract.document import Document
from ledger.receipt.model import Figure

Table = Mapping[str, Any]

LEFT_OUT = "ceiling_count"
# A repeat of one prompt that is this many times faster than the slowest of its kind was not computed again.
TOO_FAST = 1.5
# How far a headline may lie from its batches, which are rounded.
AGREES = 0.005


class V41Bench(Extractor):
    """``bench-<label>.json`` of v41bench."""

    name = "v41bench"
    definitions: Mapping[str, str] = {
        "C": "completion tokens of a batch over its wall time, the mean over eight categories",
        "per_stream": "(tokens - 1) / (total - ttft), the mean over the streams and the categories",
        "ttft": "time to the first chunk, the mean over the streams and the categories",
        "prefill": "prompt tokens over the total time of a one-token reply; prompts of one length are the same in every run",
    }

    def _recognises(self, document: Document) -> bool:
        return has(document.root, "label", "prompt_set", "batches", "prefill")

    def _extract(self, document: Document) -> Extraction:
        root = document.root
        batches = [batch for batch in root["batches"] if batch["category"] != LEFT_OUT]
        levels = sorted({int(batch["c"]) for batch in batches})
        trials = [_decode([batch for batch in batches if batch["c"] == level], level) for level in levels]
        return Extraction(
            tool="v41bench",
            version=text(root.get("prompt_set")),
            trials=(*trials, *_prefill(root["prefill"])),
            warnings=tuple(_disagreements(root, trials)),
            model=text(root.get("model")),
            label=text(root.get("label")),
        )


def _decode(batches: Sequence[Table], level: int) -> Extracted:
    whole_ones = [batch for batch in batches if all(whole(request.get("completion_tokens")) for request in batch["requests"])]
    lost = sum(not whole(request.get("completion_tokens")) for batch in batches for request in batch["requests"])
    sent = sum(len(batch["requests"]) for batch in batches)
    told = {
        f"C{level}": ("agg_tok_s", "tok/s", Better.HIGHER),
        f"per_stream@C{level}": ("per_stream_tok_s", "tok/s", Better.HIGHER),
        f"ttft@C{level}": ("ttft_mean_s", "s", Better.LOWER),
    }
    figures: dict[str, Figure] = {}
    for name, (key, unit, better) in told.items():
        values = [each for batch in whole_ones if (each := number(batch.get(key))) is not None]
        mean = fmean(values) if values else None
        figures[name] = single(mean, unit, better, absent="no batch without a failed request", n=len(values), statistic="mean")
        for batch in whole_ones:
            figures[f"{name}/{batch['category']}"] = single(batch.get(key), unit, better, n=len(batch["requests"]))
    missing = len(batches) - len(whole_ones)
    return Extracted(
        measure=f"v41bench@C{level}",
        figures=figures,
        requests=counted(ok=sent - lost, failed=lost, why="no usage"),
        marks=(f"{missing} of {len(batches)} categories left out: a request without usage",) if missing else (),
        seconds=number(sum(number(batch.get("wall_s")) or 0.0 for batch in batches)),
    )


def _prefill(rows: Sequence[Table]) -> Iterable[Extracted]:
    """A trial of the prompts that were computed, and one of those that the cache must have answered."""
    cold: dict[str, list[Table]] = {}
    hits: dict[str, list[Table]] = {}
    for row in rows:
        rate = number(row.get("prefill_tok_s"))
        name = f"prefill@{whole(row['prompt_tokens'])}"
        same = [number(other.get("prefill_tok_s")) or 0.0 for other in rows if other["prompt_tokens"] == row["prompt_tokens"]]
        if rate is not None:
            (hits if rate > TOO_FAST * min(same) else cold).setdefault(name, []).append(row)
    for measure, found, conditions in (
        ("v41bench.prefill", cold, {}),
        ("v41bench.prefill-repeat", hits, {"prefix_cache": "hit"}),
    ):
        if found:
            rates = {name: [row["prefill_tok_s"] for row in items] for name, items in found.items()}
            figures = {name: samples(values, "tok/s", Better.HIGHER) for name, values in rates.items()}
            sent = sum(map(len, found.values()))
            yield Extracted(measure=measure, figures=figures, requests=counted(ok=sent), conditions=conditions)


def _disagreements(root: Table, trials: Sequence[Extracted]) -> Iterable[str]:
    """Headlines that are not what their batches give."""
    figures = {name: figure for trial in trials for name, figure in trial.figures.items()}
    for line in root.get("headline") or ():
        figure = figures.get(str(line.get("level")))
        told = number(line.get("agg_tok_s"))
        if figure is not None and figure.value and told and abs(told - figure.value) > AGREES * figure.value:
            yield f"the headline of {line['level']} says {told:g}, and its batches give {figure.value:.2f}"


class RigMark(Extractor):
    """RigMark's receipt."""

    name = "rigmark"
    definitions: Mapping[str, str] = {
        "aggregate": "completion tokens of all streams over barrier start to the last end",
        "per_stream": "(tokens - 1) / (last - first delta)",
        "ttft": "time to the first delta with content or reasoning",
        "prefill": "prompt tokens over the time to the first delta, cold or as a warm replay",
    }

    def _recognises(self, document: Document) -> bool:
        return has(document.root, "protocol", "concurrency") and isinstance(document.root["concurrency"], Mapping)

    def _extract(self, document: Document) -> Extraction:
        root = document.root
        trials = [_level(level, told) for level, told in root["concurrency"].items()]
        for state, condition in (("cold", {}), ("warm_replay", {"prefix_cache": "hit"})):
            found = {depth: told[state] for depth, told in (root.get("prefill") or {}).items() if state in told}
            if found:
                trials.append(_depths(state, found, condition))
        return Extraction(
            tool="RigMark",
            version=str(root["protocol"]),
            trials=tuple(trials),
            model=text((root.get("serving") or {}).get("model")) if isinstance(root.get("serving"), Mapping) else None,
        )


def _level(level: str, told: Table) -> Extracted:
    place = f"@C{whole(level)}"
    keys = {
        "aggregate": ("aggregate_end_to_end_tokens_per_second", "tok/s", Better.HIGHER),
        "per_stream": ("per_stream_decode_tokens_per_second", "tok/s", Better.HIGHER),
        "ttft": ("per_stream_ttft_seconds", "s", Better.LOWER),
    }
    figures = {f"rigmark.{name}{place}": _range(told.get(key), unit, better) for name, (key, unit, better) in keys.items()}
    return Extracted(measure=f"rigmark{place}", figures=figures, requests=counted(ok=told.get("requests") or whole(level)))


def _depths(state: str, found: Mapping[str, Table], conditions: Mapping[str, str]) -> Extracted:
    figures = {
        f"rigmark.prefill@{depth}": _range(told.get("effective_prefill_tokens_per_second"), "tok/s", Better.HIGHER)
        for depth, told in found.items()
    }
    return Extracted(measure=f"rigmark.prefill.{state}", figures=figures, requests=counted(ok=len(found)), conditions=conditions)


def _range(told: Any, unit: str, better: Better) -> Figure:
    if isinstance(told, Mapping):
        low, high = number(told.get("minimum")), number(told.get("maximum"))
        return single(told.get("median"), unit, better, statistic="median", low=low, high=high)
    return single(told, unit, better)
