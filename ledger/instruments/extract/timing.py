"""Results of programs that time programs: hyperfine, pytest-benchmark, google-benchmark.

What it does: reads one figure for each benchmark, with its samples where the file has them. What it does not do: take an
aggregate row for a measurement. Rules kept: a run that failed or whose command did not exit with 0 is counted and marked; a
name is made of the benchmark's own.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from ledger.core.words import Better
from ledger.instruments.extract.base import (
    Extracted,
    Extraction,
    Extractor,
    counted,
    distribution,
    has,
    name_of,
    number,
    samples,
    text,
    whole,
)
from ledger.instruments.extract.document import Document
from ledger.receipt.model import Figure

Table = Mapping[str, Any]


class Hyperfine(Extractor):
    """``hyperfine --export-json``."""

    name = "hyperfine"
    definitions: Mapping[str, str] = {
        "time": "wall time of the command, the shell's own start taken off",
        "user": "mean user CPU time",
        "system": "mean system CPU time",
        "memory": "peak resident memory of the command",
    }

    def _recognises(self, document: Document) -> bool:
        results = document.root.get("results") if isinstance(document.root, Mapping) else None
        return isinstance(results, list) and bool(results) and all(has(item, "command", "mean", "min") for item in results)

    def _extract(self, document: Document) -> Extraction:
        trials = tuple(self._trial(item) for item in document.root["results"])
        command = "; ".join(str(item["command"]) for item in document.root["results"])
        return Extraction(tool="hyperfine", version=None, trials=trials, command=command)

    def _trial(self, item: Table) -> Extracted:
        parameters = {str(key): str(value) for key, value in (item.get("parameters") or {}).items()}
        settings = "".join(f".{name_of(key)}-{name_of(value)}" for key, value in parameters.items())
        place = name_of(item["command"]) + settings
        times, codes = item.get("times") or (), item.get("exit_codes") or ()
        bad = sum(code != 0 for code in codes)
        time = samples(times, "s", Better.LOWER) if times else _summary(item)
        figures = {f"hyperfine.time@{place}": time}
        for key in ("user", "system"):
            if number(item.get(key)) is not None:
                figures[f"hyperfine.{key}@{place}"] = Figure(
                    unit="s", better=Better.LOWER, value=number(item[key]), n=len(times) or None, statistic="mean"
                )
        if item.get("memory_usage_byte"):
            figures[f"hyperfine.memory@{place}"] = samples(item["memory_usage_byte"], "B", Better.LOWER)
        return Extracted(
            measure=f"hyperfine.{place}",
            figures=figures,
            requests=counted(ok=max(len(times), 1) - bad, failed=bad, why="the command did not exit with 0"),
            parameters={"command": str(item["command"]), **parameters},
            marks=(f"{bad} of {len(codes)} runs did not exit with 0",) if bad else (),
        )


def _summary(item: Table) -> Figure:
    stats = {key: item.get(key) for key in ("median", "mean", "min", "max")}
    return distribution("time", stats, "s", Better.LOWER, n=None)["time"]


class PytestBenchmark(Extractor):
    """``pytest --benchmark-json``."""

    name = "pytest-benchmark"
    definitions: Mapping[str, str] = {"time": "wall time of one call, of each round the mean over its iterations"}

    def _recognises(self, document: Document) -> bool:
        return has(document.root, "machine_info", "commit_info", "benchmarks")

    def _extract(self, document: Document) -> Extraction:
        root = document.root
        commit = root["commit_info"]
        dirty = ("the commit had changes that are not committed",) if commit.get("dirty") is True else ()
        return Extraction(
            tool="pytest-benchmark",
            version=text(root.get("version")),
            trials=tuple(self._trial(item, commit, dirty) for item in root["benchmarks"]),
        )

    def _trial(self, item: Table, commit: Table, marks: tuple[str, ...]) -> Extracted:
        stats = item["stats"]
        place = name_of(item["fullname"])
        rounds = whole(stats.get("rounds"))
        told = {"median": stats.get("median"), "mean": stats.get("mean"), "min": stats.get("min"), "max": stats.get("max")}
        figures = distribution(
            f"pytest-benchmark.time@{place}", {**told, "std": stats.get("stddev")}, "s", Better.LOWER, n=rounds
        )
        if stats.get("data"):
            figures[f"pytest-benchmark.time@{place}"] = samples(stats["data"], "s", Better.LOWER)
        extra = {
            f"extra.{key}": value for key, value in (item.get("extra_info") or {}).items() if isinstance(value, str | int | float)
        }
        keep = {"iterations": stats.get("iterations"), "commit": commit.get("id"), "group": item.get("group")}
        return Extracted(
            measure=f"pytest-benchmark.{place}",
            figures=figures,
            requests=counted(ok=rounds),
            parameters={key: value for key, value in {**keep, **extra}.items() if value is not None},
            marks=marks,
            seconds=number(stats.get("total")),
        )


class GoogleBenchmark(Extractor):
    """``--benchmark_out`` of google-benchmark, as JSON."""

    name = "google-benchmark"
    definitions: Mapping[str, str] = {
        "real_time": "wall time of one iteration",
        "cpu_time": "CPU time of one iteration",
    }

    def _recognises(self, document: Document) -> bool:
        benchmarks = document.root.get("benchmarks") if has(document.root, "context", "benchmarks") else None
        return isinstance(benchmarks, list) and any(has(row, "real_time") or has(row, "error_occurred") for row in benchmarks)

    def _extract(self, document: Document) -> Extraction:
        root = document.root
        rows = [row for row in root["benchmarks"] if row.get("run_type", "iteration") == "iteration" and not _is_aggregate(row)]
        groups: dict[str, list[Table]] = {}
        for row in rows:
            groups.setdefault(str(row.get("run_name", row["name"])), []).append(row)
        context = root["context"]
        scaling = ("CPU frequency scaling was on",) if context.get("cpu_scaling_enabled") is True else ()
        debug = ("a debug build of the library",) if context.get("library_build_type") == "debug" else ()
        return Extraction(
            tool="google-benchmark",
            version=text(context.get("library_version")),
            trials=tuple(_repeats(name, group, (*scaling, *debug)) for name, group in groups.items()),
            command=text(context.get("executable")),
        )


def _is_aggregate(row: Table) -> bool:
    """Files of old versions have no ``run_type``; their aggregates are told by the name alone."""
    return "run_type" not in row and str(row.get("name", "")).rpartition("_")[2] in ("mean", "median", "stddev", "cv")


def _repeats(name: str, rows: Sequence[Table], marks: tuple[str, ...]) -> Extracted:
    good = [row for row in rows if not row.get("error_occurred")]
    bad = len(rows) - len(good)
    reasons = {str(row.get("error_message")) for row in rows if row.get("error_occurred")}
    unit = str(good[0].get("time_unit", "ns")) if good else "ns"
    figures = {
        f"google-benchmark.{key}@{name_of(name)}": samples(
            [row.get(key) for row in good],
            unit,
            Better.LOWER,
            absent=f"failed: {', '.join(sorted(reasons))}" if bad else "no run",
        )
        for key in ("real_time", "cpu_time")
    }
    return Extracted(
        measure=f"google-benchmark.{name_of(name)}",
        figures=figures,
        requests=counted(ok=len(good), failed=bad, why=", ".join(sorted(reasons)) or "error"),
        parameters={"iterations": [whole(row.get("iterations")) or 0 for row in good]},
        marks=(*marks, *((f"{bad} of {len(rows)} repetitions failed",) if bad else ())),
    )
