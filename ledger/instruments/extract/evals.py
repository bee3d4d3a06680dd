"""Results of quality evaluations: lm-eval (results and samples), inspect_ai (JSON and ``.eval``), qeval.

What it does: reads scores with how many items stand behind each, and counts items by how they ended. What it does not do: pair
two files; the items stay in the file, which is kept. Rules kept: an item that failed is counted and is no wrong answer: where
there is one, the rate is given over those completed and over all; a standard error that is "N/A" is left out.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ledger.core.words import Better
from ledger.instruments.extract.base import Extracted, Extraction, Extractor, counted, has, name_of, number, single, text, whole
from ledger.instruments.extract.document import Document
from ledger.receipt.model import Figure

Table = Mapping[str, Any]
_DIRECTIONS: Mapping[Any, Better] = {True: Better.HIGHER, False: Better.LOWER}
_ERROR = ", ± one standard error"
# What a scorer gives beside a score, to say how far it can be trusted.
_SPREADS = frozenset({"stderr", "std", "var", "bootstrap_stderr"})


class LmEval(Extractor):
    """lm-eval's ``results_*.json``."""

    name = "lm-eval"
    definitions: Mapping[str, str] = {"score": "the task's metric after its filter, over the items evaluated"}

    def _recognises(self, document: Document) -> bool:
        return has(document.root, "results", "configs", "versions", "n-shot")

    def _extract(self, document: Document) -> Extraction:
        root = document.root
        trials = tuple(_task(root, task, told) for task, told in {**root["results"], **(root.get("groups") or {})}.items())
        return Extraction(
            tool="lm-eval",
            version=text(root.get("lm_eval_version")),
            trials=trials,
            model=text(root.get("model_name")),
        )


def _task(root: Table, task: str, told: Table) -> Extracted:
    counts = (root.get("n-samples") or {}).get(task) or {}
    n = whole(counts.get("effective")) or whole(told.get("sample_len"))
    directions = (root.get("higher_is_better") or {}).get(task) or {}
    figures: dict[str, Figure] = {}
    for key, value in told.items():
        metric, comma, kept = key.partition(",")
        if not comma or metric.endswith("_stderr"):
            continue
        error = number(told.get(f"{metric}_stderr,{kept}"))
        found = number(value)
        better = _DIRECTIONS.get(directions.get(metric), Better.NEITHER)
        spread: dict[str, Any] = {} if error is None or found is None else {"low": found - error, "high": found + error}
        place = "" if kept == "none" else f"/{name_of(kept)}"
        name = f"lm-eval.{name_of(task)}.{name_of(metric)}{place}"
        figures[name] = single(value, "score", better, n=n, statistic=f"mean{_ERROR}" if spread else "mean", **spread)
    shots = (root.get("n-shot") or {}).get(task)
    version = (root.get("versions") or {}).get(task)
    return Extracted(
        measure=f"lm-eval.{name_of(task)}",
        figures=figures,
        requests=counted(ok=n),
        parameters={key: value for key, value in (("shots", shots), ("task_version", version)) if number(value) is not None},
    )


class LmEvalSamples(Extractor):
    """lm-eval's ``samples_<task>_*.jsonl``: one line for each item."""

    name = "lm-eval-samples"
    definitions: Mapping[str, str] = {"items": "the metric of each item, their mean"}

    def _recognises(self, document: Document) -> bool:
        return bool(document.values) and all(has(row, "doc_id", "resps", "filtered_resps", "metrics") for row in document.values)

    def _extract(self, document: Document) -> Extraction:
        figures: dict[str, Figure] = {}
        for metric in dict.fromkeys(name for row in document.values for name in row["metrics"]):
            values = [each for row in document.values if (each := number(row.get(metric))) is not None]
            figures[f"lm-eval.items.{name_of(metric)}"] = _mean(values)
        trial = Extracted(
            measure="lm-eval.items",
            figures=figures,
            requests=counted(ok=len(document.values)),
            marks=document.marks,
        )
        return Extraction(tool="lm-eval", version=None, trials=(trial,))


class InspectAi(Extractor):
    """inspect_ai's log, as JSON or as the ZIP that ends in ``.eval``."""

    name = "inspect_ai"
    definitions: Mapping[str, str] = {
        "score": "the scorer's metric as the log gives it",
        "completed": "samples that were scored, of all",
    }

    def _recognises(self, document: Document) -> bool:
        header = _header(document)
        return has(header, "version", "status", "eval") and has(header["eval"], "task")

    def _extract(self, document: Document) -> Extraction:
        header = _header(document)
        about, results = header["eval"], header.get("results") or {}
        task = name_of(about["task"])
        all_of, done = whole(results.get("total_samples")), whole(results.get("completed_samples"))
        failed = _failed(document)
        figures: dict[str, Figure] = {}
        for score in results.get("scores") or ():
            scorer = name_of(score.get("scorer") or score["name"])
            for name, metric in score["metrics"].items():
                if name not in _SPREADS:
                    found = single(metric.get("value"), "score", Better.HIGHER, n=done, statistic=name, **_spread(metric, score))
                    figures[f"inspect_ai.{task}.{scorer}.{name_of(name)}"] = found
        figures[f"inspect_ai.{task}.completed"] = single(done, "samples", n=all_of)
        status = text(header.get("status")) or "unknown"
        trial = Extracted(
            measure=f"inspect_ai.{task}",
            figures=figures,
            requests=counted(ok=done, failed=max(failed, (all_of or 0) - (done or 0))),
            marks=() if status == "success" else (f"the log's status is {status}",),
        )
        return Extraction(
            tool="inspect_ai",
            version=text((about.get("packages") or {}).get("inspect_ai")),
            trials=(trial,),
            model=text(about.get("model")),
        )


def _spread(metric: Table, score: Table) -> dict[str, Any]:
    """One standard error to each side of a mean, where the log has one."""
    value, error = number(metric.get("value")), number((score["metrics"].get("stderr") or {}).get("value"))
    if value is None or error is None or metric.get("name") not in ("accuracy", "mean"):
        return {}
    return {"low": value - error, "high": value + error}


def _header(document: Document) -> Any:
    return document.members.get("header.json") if document.members else document.root


def _failed(document: Document) -> int:
    """Samples that ended with an error."""
    found = [value for name, value in document.members.items() if name.startswith("samples/")]
    root = document.root
    found += root.get("samples") or [] if isinstance(root, Mapping) else []
    return sum(1 for sample in found if isinstance(sample, Mapping) and sample.get("error"))


class Qeval(Extractor):
    """The worked example's quality gate: tasks of several categories, each passed or not."""

    name = "qeval"
    definitions: Mapping[str, str] = {
        "passed": "tasks passed",
        "pass_rate": "tasks passed over all tasks; pass_rate_of_completed leaves out those whose request failed",
    }

    def _recognises(self, document: Document) -> bool:
        results = document.root.get("results") if has(document.root, "label", "results") else None
        return isinstance(results, list) and bool(results) and all(has(row, "id", "category", "pass") for row in results)

    def _extract(self, document: Document) -> Extraction:
        root = document.root
        rows: Sequence[Table] = root["results"]
        completed = [row for row in rows if not str(row.get("why", "")).startswith("request failed")]
        lost = len(rows) - len(completed)
        figures = {
            "qeval.passed": single(_passes(rows), "tasks", Better.HIGHER, n=len(rows), statistic="sum"),
            "qeval.pass_rate": _share(rows),
            "qeval.median_tok_s": single(root.get("median_tok_s"), "tok/s", Better.HIGHER, n=len(completed), statistic="median"),
        }
        if lost:
            figures["qeval.pass_rate_of_completed"] = _share(completed)
        for category in dict.fromkeys(row["category"] for row in rows):
            figures[f"qeval.pass_rate/{name_of(category)}"] = _share([row for row in rows if row["category"] == category])
        ends = Counter(str(row.get("finish_reason")) for row in completed)
        cut = ends.get("length", 0)
        trial = Extracted(
            measure="qeval",
            figures=figures,
            requests=counted(ok=len(completed), failed=lost),
            parameters={"concurrency": root["concurrency"]} if whole(root.get("concurrency")) else {},
            marks=(*_all_alike(rows), *((f"{cut} replies were cut at their length",) if cut else ())),
            seconds=number(root.get("wall_s")),
        )
        return Extraction(tool="qeval", version=None, trials=(trial,), label=text(root.get("label")))


def _passes(rows: Iterable[Table]) -> int:
    return sum(row["pass"] is True for row in rows)


def _share(rows: Sequence[Table]) -> Figure:
    if not rows:
        return Figure(unit="ratio", better=Better.HIGHER, absent="no task was completed")
    return single(_passes(rows) / len(rows), "ratio", Better.HIGHER, n=len(rows), statistic="mean")


def _all_alike(rows: Sequence[Table]) -> tuple[str, ...]:
    """A score of zero for every task is the harness more often than the model."""
    return () if _passes(rows) else ("no task passed: look at the harness",)


def _mean(values: Sequence[float]) -> Figure:
    if not values:
        return Figure(unit="score", absent="no item has a number")
    return Figure(unit="score", better=Better.HIGHER, value=sum(values) / len(values), n=len(values), statistic="mean")
