"""Result files of other tools: every sample by its own text, every trap that their formats have, and files that were cut."""

import csv
import io
import json
import zipfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.core.errors import LedgerError
from ledger.core.words import Better
from ledger.instruments.extract import registry
from ledger.instruments.extract.base import Extraction, distribution, number, samples
from ledger.instruments.extract.document import ExtractError, read_document
from ledger.receipt.model import Figure
from tests.golden.rebuild_imports import FOLDER, SAMPLES, extraction_of, golden

FILES = sorted(SAMPLES.iterdir())
REBUILT = golden()


def extract(name: str, data: bytes | str | Any) -> Extraction:
    """What the file of this name and content gives; a plain value is written as JSON."""
    if not isinstance(data, bytes | str):
        data = json.dumps(data)
    document = read_document(name, data if isinstance(data, bytes) else data.encode())
    return registry.find(document).extract(document)


def figures(found: Extraction) -> dict[str, Figure]:
    """Every figure of every run by its name."""
    return {name: figure for trial in found.trials for name, figure in trial.figures.items()}


def values(found: Extraction) -> dict[str, float | None]:
    return {name: figure.value for name, figure in figures(found).items()}


# --- the samples --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_sample_gives_its_golden_import(path: Path) -> None:
    name = f"{path.name}.golden.json"
    assert (FOLDER / name).read_bytes() == REBUILT[name], "python tests/golden/rebuild_imports.py, if it was meant to change"


def test_there_is_no_golden_import_without_a_sample() -> None:
    assert {path.name for path in FOLDER.iterdir()} == set(REBUILT)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_one_format_alone_takes_a_sample(path: Path) -> None:
    document = read_document(path.name, path.read_bytes())
    assert sum(registry.get(name).recognises(document) for name in registry.names()) == 1


def raw(name: str) -> Any:
    return json.loads((SAMPLES / name).read_text())


def sample(name: str) -> Extraction:
    return extraction_of(SAMPLES / name)[1]


def test_aiperf_by_its_own_text() -> None:
    text, found = raw("aiperf-0.13.0.json"), figures(sample("aiperf-0.13.0.json"))
    assert found["aiperf.ttft@C2"].value == text["time_to_first_token"]["p50"]
    assert (found["aiperf.ttft@C2"].unit, found["aiperf.ttft@C2"].n) == ("ms", 6)
    assert found["aiperf.output_throughput@C2"].value == text["output_token_throughput"]["avg"]
    assert found["aiperf.output_throughput@C2"].unit == "tok/s"
    assert found["aiperf.itl@C2"].value == pytest.approx(7.3285, abs=1e-3)


def test_b85_records_of_the_warm_up_are_left_out_and_the_rest_is_the_summary() -> None:
    records, summary = sample("aiperf-0.13.0.jsonl"), sample("aiperf-0.13.0.json")
    rows = [json.loads(line) for line in (SAMPLES / "aiperf-0.13.0.jsonl").read_text().splitlines()]
    assert records.trials[0].requests.launched == 6 < len(rows)
    for name in ("ttft", "itl", "e2e", "output_tokens"):
        assert figures(records)[f"aiperf.{name}"].value == pytest.approx(figures(summary)[f"aiperf.{name}@C2"].value)


def test_guidellm_takes_what_succeeded_and_no_artefact_of_a_rate() -> None:
    text, found = raw("guidellm-0.8.1.json"), figures(sample("guidellm-0.8.1.json"))
    metrics = text["benchmarks"][0]["metrics"]
    assert found["guidellm.ttft@C2"].value == metrics["time_to_first_token_ms"]["successful"]["median"]
    rate = found["guidellm.request_throughput@C2"]
    assert (rate.value, rate.low, rate.high) == (metrics["requests_per_second"]["successful"]["mean"], None, None)  # B111
    assert "delay" in sample("guidellm-0.8.1.json").warnings[0]


def test_llama_benchy_keeps_both_times_and_names_the_prompt_speed_after_its_event() -> None:
    text, found = raw("llama-benchy-0.4.0.json"), values(sample("llama-benchy-0.4.0.json"))
    first = text["benchmarks"][0]
    assert found["llama-benchy.pp_by_first_event64@C1"] == pytest.approx(first["pp_throughput"]["mean"])  # B38
    assert found["llama-benchy.ttfr64@C1"] < found["llama-benchy.ttft64@C1"]  # type: ignore[operator]  # both are there
    assert not any(name.startswith("prefill@") for name in found)


def test_quality_by_its_own_text() -> None:
    found = figures(sample("lm-eval-0.4.13-results.json"))["lm-eval.arith_smoke.exact_match"]
    assert (found.value, found.n, found.low, found.high, found.better) == (0.5, 2, 0.0, 1.0, Better.HIGHER)
    assert figures(sample("lm-eval-0.4.13-samples.jsonl"))["lm-eval.items.exact_match"].value == 0.5
    assert sample("inspect_ai-0.3.145.json").trials == sample("inspect_ai-0.3.145.eval").trials
    assert values(sample("inspect_ai-0.3.145.json"))["inspect_ai.arith_smoke.match.accuracy"] == 0.5


def test_timings_by_their_own_text() -> None:
    assert values(sample("hyperfine-1.15.0.json"))["hyperfine.time@seq-100000.n-1"] == 0.001260955
    real = figures(sample("google-benchmark-1.9.5.json"))["google-benchmark.real_time@sum_million-repeats-3"]
    assert (real.value, real.n, real.unit) == (pytest.approx(40606.178), 3, "ns")
    text = raw("pytest-benchmark-5.3.1.json")["benchmarks"][0]["stats"]
    name = "pytest-benchmark.time@test_x.py-test_sum-10"
    assert values(sample("pytest-benchmark-5.3.1.json"))[name] == pytest.approx(text["median"])


def test_v41bench_by_the_definitions_of_this_ledger() -> None:
    text, extraction = raw("v41bench.json"), sample("v41bench.json")
    found = figures(extraction)
    for line in text["headline"]:
        assert found[line["level"]].value == pytest.approx(line["agg_tok_s"], abs=0.01)
        assert found[f"ttft@{line['level']}"].value == pytest.approx(line["ttft_mean_s"], abs=0.001)
    assert not any("ceiling_count" in name for name in found)
    assert (found["C6"].n, found["C6"].unit) == (8, "tok/s")


def test_b83_a_prompt_that_the_cache_answered_is_no_prefill() -> None:
    trials = {trial.measure: trial for trial in sample("v41bench.json").trials}
    assert trials["v41bench.prefill"].figures["prefill@827"].value == 208.2
    repeat = trials["v41bench.prefill-repeat"]
    assert (repeat.figures["prefill@827"].value, repeat.conditions) == (17665.9, {"prefix_cache": "hit"})


def test_a_headline_that_its_batches_do_not_give_is_told() -> None:
    text = raw("v41bench.json")
    text["headline"][0]["agg_tok_s"] *= 1.1
    assert "headline of C1" in extract("bench.json", text).warnings[0]


def test_a_v41bench_request_without_usage_is_a_failed_one() -> None:
    text = raw("v41bench.json")
    text["batches"][0]["requests"][0]["completion_tokens"] = 0
    found = extract("bench.json", text)
    (level,) = (trial for trial in found.trials if trial.measure == "v41bench@C1")
    assert (level.requests.failed, level.figures["C1"].n) == (1, 7)
    assert level.marks


# --- vLLM and SGLang ------------------------------------------------------------------------------------------------------------

VLLM: Mapping[str, Any] = {
    "date": "20261201-101112",
    "endpoint_type": "openai-chat",
    "model_id": "a-model",
    "num_prompts": 200,
    "request_rate": "inf",
    "max_concurrency": 8,
    "duration": 20.0,
    "completed": 200,
    "failed": 0,
    "total_input_tokens": 20_000,
    "total_output_tokens": 10_000,
    "request_throughput": 10.0,
    "output_throughput": 500.0,
    "total_token_throughput": 1500.0,
    "max_output_tokens_per_s": 480.0,
    "mean_ttft_ms": 40.0,
    "median_ttft_ms": 38.0,
    "std_ttft_ms": 4.0,
    "p99_ttft_ms": 60.0,
    "mean_tpot_ms": 14.5,
    "median_tpot_ms": 14.0,
    "std_tpot_ms": 1.0,
    "p99_tpot_ms": 20.0,
    "mean_itl_ms": 45.7,
    "median_itl_ms": 45.0,
    "std_itl_ms": 3.0,
    "p99_itl_ms": 80.0,
    "spec_decode_acceptance_length": 3.16,
}
SGLANG: Mapping[str, Any] = {
    "backend": "sglang",
    "request_rate": 4.0,
    "max_concurrency": None,
    "completed": 6,
    "total_output_tokens": 96,
    "total_output_tokens_retokenized": 92,
    "input_throughput": 50.0,
    "output_throughput": 30.0,
    "request_throughput": 2.0,
    "mean_ttft_ms": 100.0,
    "median_ttft_ms": 90.0,
    "p99_ttft_ms": 140.0,
    "mean_e2e_latency_ms": 400.0,
}


def test_vllm_and_its_words() -> None:
    found = figures(extract("run.json", VLLM))
    assert found["vllm-bench.output_throughput@C8"].value == 500.0
    assert (found["vllm-bench.ttft@C8"].value, found["vllm-bench.ttft@C8"].statistic) == (38.0, "median")
    assert found["vllm-bench.ttft@C8/mean"].value == 40.0
    assert found["vllm-bench.ttft@C8/p99"].marks == ()
    assert found["vllm-bench.chunk_gap@C8"].value == 45.0  # B62: a gap of chunks is no token's
    assert found["vllm-bench.acceptance_length@C8"].value == 3.16
    assert not any("max_output" in name or "itl" in name for name in found)  # B70


def test_b28_where_every_request_failed_the_zeros_are_absent() -> None:
    failed = {key: 0 if isinstance(value, float) else value for key, value in VLLM.items()} | {"completed": 0, "failed": 200}
    found = extract("run.json", failed)
    assert {figure.absent for name, figure in figures(found).items() if "acceptance" not in name} == {"no request succeeded"}
    assert found.trials[0].requests.failed == 200
    assert "200 requests failed" in found.trials[0].marks


def test_b109_appended_results_and_a_sweep_are_runs_of_their_own() -> None:
    second = {**VLLM, "output_throughput": 510.0}
    appended = extract("run.json", json.dumps(VLLM) + json.dumps(second) + "\n")
    swept = extract("sweep.json", [{**VLLM, "run_number": 0}, {**second, "run_number": 1}])
    for found in (appended, swept):
        rates = [trial.figures["vllm-bench.output_throughput@C8"].value for trial in found.trials]
        assert rates == [500.0, 510.0]


def test_failures_that_an_old_file_does_not_count_are_counted() -> None:
    old = {key: value for key, value in VLLM.items() if key not in ("failed", "endpoint_type")} | {"completed": 190}
    (trial,) = extract("run.json", old).trials
    assert (trial.requests.launched, trial.requests.failed) == (200, 10)


def test_sglang_and_its_two_counts_of_tokens() -> None:
    found = extract("out.jsonl", json.dumps(SGLANG) + "\n" + json.dumps(SGLANG) + "\n")
    assert len(found.trials) == 2
    assert values(found)["sglang-bench.output_throughput@4rps"] == 30.0
    assert any("96" in warning and "92" in warning for warning in found.warnings)
    assert figures(found)["sglang-bench.ttft@4rps/p99"].marks == ("p99 of 6 samples",)  # B101


def test_b105_nan_and_infinity_are_absent_and_counted() -> None:
    text = json.dumps(SGLANG).replace("30.0", "Infinity").replace("90.0", "NaN").replace("400.0", "1e999")
    found = extract("out.jsonl", text + "\n")
    assert values(found)["sglang-bench.output_throughput@4rps"] is None
    assert values(found)["sglang-bench.ttft@4rps"] == 100.0
    assert "3 numbers were NaN or infinite" in found.warnings[0]


# --- llama-bench ---------------------------------------------------------------------------------------------------------------


def bench(prompt: int, made: int, depth: int = 0, speed: float = 100.0) -> dict[str, Any]:
    return {
        "build_commit": "b10c",
        "model_filename": "m.gguf",
        "n_prompt": prompt,
        "n_gen": made,
        "n_depth": depth,
        "flash_attn": "auto",
        "avg_ts": speed,
        "stddev_ts": 1.0,
        "samples_ts": [speed - 1, speed, speed + 1],
    }


TESTS = [bench(512, 0, speed=900.0), bench(0, 128), bench(0, 128, depth=4096, speed=60.0), bench(512, 128, speed=300.0)]
NAMES = {
    "llama-bench.pp512": 900.0,
    "llama-bench.tg128": 100.0,
    "llama-bench.tg128-d4096": 60.0,
    "llama-bench.pp512-tg128": 300.0,
}


def as_csv(rows: list[dict[str, Any]]) -> str:
    file = io.StringIO()
    writer = csv.DictWriter(file, rows[0].keys())
    writer.writeheader()
    writer.writerows({key: json.dumps(value) if isinstance(value, list) else value for key, value in row.items()} for row in rows)
    return file.getvalue()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("out.json", json.dumps(TESTS, indent=2)),
        ("out.jsonl", "".join(json.dumps(row) + "\n" for row in TESTS)),
        ("out.csv", as_csv(TESTS)),
    ],
)
def test_llama_bench_in_each_of_its_forms(name: str, text: str) -> None:
    found = extract(name, text)
    assert values(found) == NAMES
    assert figures(found)["llama-bench.tg128"].values == (99.0, 100.0, 101.0)
    assert (found.version, found.model) == ("b10c", "m.gguf")


def test_b106_log_lines_around_the_json() -> None:
    noise = "ggml_init: found 1 device\n[INFO] loading {model}\n" + json.dumps(TESTS, indent=2) + "\nllama_perf: done\n"
    assert values(extract("stdout.txt", noise)) == NAMES


def test_one_test_twice_is_refused() -> None:
    with pytest.raises(ExtractError, match="twice"):
        extract("out.json", [bench(512, 0), bench(512, 0)])


# --- the others that no sample is at hand of -----------------------------------------------------------------------------------


def test_genai_perf() -> None:
    text = {
        "input_config": {},
        "request_throughput": {"unit": "requests/sec", "avg": 2.0},
        "time_to_first_token": {"unit": "ms", "avg": 50.0, "p50": 48.0, "p99": 70.0},
    }
    found = extract("profile_export_genai_perf.json", text)
    assert values(found)["genai-perf.ttft"] == 48.0  # B46: another tool's first token is another metric
    assert found.definitions["ttft"] != sample("aiperf-0.13.0.json").definitions["ttft"]


def test_rigmark() -> None:
    spread = {"median": 55.0, "minimum": 50.0, "maximum": 60.0, "p90": 59.0}
    level = {"aggregate_end_to_end_tokens_per_second": spread, "per_stream_ttft_seconds": {"median": 0.2}}
    depth = {
        "cold": {"effective_prefill_tokens_per_second": 900.0},
        "warm_replay": {"effective_prefill_tokens_per_second": 9000.0},
    }
    found = extract("receipt.json", {"protocol": "1", "concurrency": {"6": level}, "prefill": {"2000": depth}})
    assert figures(found)["rigmark.aggregate@C6"].low == 50.0
    states = {trial.measure: trial.conditions for trial in found.trials if "prefill" in trial.measure}
    assert states == {"rigmark.prefill.cold": {}, "rigmark.prefill.warm_replay": {"prefix_cache": "hit"}}


def task(name: str, category: str, passed: bool, **more: Any) -> dict[str, Any]:
    return {"id": name, "category": category, "pass": passed, "finish_reason": "stop", **more}


def test_b123_a_request_that_failed_is_no_wrong_answer() -> None:
    rows = [
        task("a", "code", True),
        task("b", "code", False),
        task("c", "math", True, finish_reason="length"),
        {"id": "d", "category": "math", "pass": False, "why": "request failed: timed out"},
    ]
    found = extract("qeval.json", {"label": "C", "results": rows, "median_tok_s": 50.0, "concurrency": 4})
    rates = values(found)
    assert (rates["qeval.pass_rate"], rates["qeval.pass_rate_of_completed"]) == (0.5, pytest.approx(2 / 3))
    assert (rates["qeval.pass_rate/code"], found.trials[0].requests.failed) == (0.5, 1)
    assert any("cut" in mark for mark in found.trials[0].marks)


def test_b125_no_task_passed_says_look_at_the_harness() -> None:
    found = extract("qeval.json", {"label": "C", "results": [task("a", "code", False), task("b", "json", False)]})
    assert "harness" in found.trials[0].marks[0]


def test_a_hyperfine_run_whose_command_failed() -> None:
    run = {"command": "false", "mean": 0.1, "min": 0.1, "max": 0.1, "median": 0.1, "times": [0.1, 0.1], "exit_codes": [0, 1]}
    (trial,) = extract("h.json", {"results": [run]}).trials
    assert (trial.requests.failed, bool(trial.marks)) == (1, True)


def test_a_google_benchmark_that_failed_has_no_time() -> None:
    row = {"name": "x", "run_name": "x", "run_type": "iteration", "error_occurred": True, "error_message": "no device"}
    found = extract("g.json", {"context": {}, "benchmarks": [row]})
    assert all(figure.absent == "failed: no device" for figure in figures(found).values())


def test_an_evaluation_that_was_cancelled_says_so() -> None:
    text = raw("inspect_ai-0.3.145.json") | {"status": "cancelled"}
    assert extract("log.json", text).trials[0].marks == ("the log's status is cancelled",)


# --- files that are not whole --------------------------------------------------------------------------------------------------


def zeros(found: Mapping[str, float | None]) -> set[str]:
    return {name for name, value in found.items() if value == 0}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_a_cut_file_is_an_error_or_says_so_and_never_a_zero(path: Path) -> None:
    data = path.read_bytes()
    whole = values(extraction_of(path)[1])
    step = max(1, len(data) // 400)
    for end in [*range(0, len(data) - 1, step), *range(len(data) - 40, len(data) - 1)]:
        piece = data[:end]
        try:
            document = read_document(path.name, piece)
            found = registry.find(document).extract(document)
        except LedgerError:
            continue
        # Lines that are all whole are a shorter file of the same form: it says how many requests it has.
        shorter = path.suffix == ".jsonl" and piece.rstrip().endswith(b"}")
        told = document.notes or shorter
        assert told or values(found) == whole
        assert told or zeros(values(found)) <= zeros(whole)


@given(st.binary(max_size=300))
def test_any_bytes_are_a_result_or_an_error(data: bytes) -> None:
    for name in ("x.json", "x.csv", "x.jsonl"):
        with suppress(LedgerError):  # any other exception fails this test
            extract(name, data)


@given(
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    [
                        "results",
                        "benchmarks",
                        "metrics",
                        "completed",
                        "output_throughput",
                        "mean_ttft_ms",
                        "context",
                        "protocol",
                        "concurrency",
                        "avg",
                        "request_throughput",
                        "input_config",
                    ]
                ),
                inner,
                max_size=4,
            )
        ),
        max_leaves=12,
    )
)
def test_any_table_with_known_keys_is_a_result_or_an_error(value: Any) -> None:
    with suppress(LedgerError):  # any other exception fails this test
        extract("x.json", value)


def test_numbers_that_are_none_do_not_make_a_cut_file() -> None:
    text = (SAMPLES / "lm-eval-0.4.13-samples.jsonl").read_text()
    odd = text.replace('"exact_match": 1.0', '"exact_match": NaN')
    assert odd != text
    found = extract("samples.jsonl", odd)
    assert (found.warnings, found.trials[0].marks) == (("1 numbers were NaN or infinite and are absent",), ())
    assert extract("samples.jsonl", odd[:-20]).trials[0].marks == ("cut file",)


def test_log_lines_that_begin_like_json_are_no_values() -> None:
    log = "[2026-01-02 10:00:00] loaded NaN\n[NaN, or so] 1\n{ready}\n[12\n"
    document = read_document("x.json", f'{log}{{\n "a": [NaN,\n 1]}}\nend\n'.encode())
    assert document.values == ({"a": [None, 1]},)
    assert document.text == f"{log}\nend\n"
    assert document.notes == ("1 numbers were NaN or infinite and are absent",)


def test_repetitions_that_differ_in_number_are_all_counted() -> None:
    row = {"build_commit": "c", "avg_ts": 1.0, "n_gen": 0}
    rows = [{**row, "n_prompt": 8, "samples_ts": [1.0, 2.0, 3.0]}, {**row, "n_prompt": 16, "samples_ts": [4.0]}]
    assert extract("b.json", rows).trials[0].requests.ok == 4


def test_a_zip_that_would_not_fit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("header.json", b" " * 10_000_000)
    monkeypatch.setattr("ledger.instruments.extract.document.MAX_UNPACKED", 1_000_000)
    with pytest.raises(ExtractError, match="unpack"):
        read_document("log.eval", file.getvalue())


def test_json_that_is_nested_for_ever_is_refused() -> None:
    with pytest.raises(LedgerError):
        extract("x.json", b"[" * 200_000)


# --- figures -------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [True, None, "x", float("nan"), float("inf"), [], {}])
def test_what_is_no_number(value: Any) -> None:
    assert number(value) is None


def test_no_samples_are_absent() -> None:
    assert samples([], "s").absent
    assert samples([None, "x"], "s").value is None
    assert distribution("x", {}, "s", Better.LOWER, n=3)["x"].absent
