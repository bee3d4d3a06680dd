"""``ledger import``: other tools' figures become receipts that are never taken for measured ones."""

import json
import zipfile
from pathlib import Path
from typing import Any

import orjson
import pytest

from ledger.cli.main import run
from ledger.receipt.model import Boot, Trial
from ledger.store.ledger import Ledger
from ledger.store.verify import Checked, verify
from tests.golden.rebuild_imports import SAMPLES

V41 = str(SAMPLES / "v41bench.json")
AIPERF = str(SAMPLES / "aiperf-0.13.0.json")


def ask(ledger: Ledger, capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    capsys.readouterr()
    run(["-C", str(ledger.root), *arguments, "--json"])
    return orjson.loads(capsys.readouterr().out)


def bodies(ledger: Ledger, kind: type) -> list[Any]:
    return [body for item in ledger.walk() if isinstance(body := ledger.read(item.digest).body, kind)]


def test_figures_are_found_with_their_evidence_and_marks(ledger: Ledger, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["-C", str(ledger.root), "import", V41, "--lane", "C"]) == 0
    (row,) = ask(ledger, capsys, "query", "C6 by arm")
    assert row["evidence"] == "imported"
    assert {"n=1 boot", "unverified"} <= set(row["marks"])
    assert list(verify(ledger, Checked())) == []
    (boot,) = bodies(ledger, Boot)
    assert boot.agreement.state == "unverified"
    assert (boot.subject.lane, boot.subject.arm) == ("C", "smollm2-llamacpp")


def test_the_file_is_kept_and_the_tools_words_with_it(ledger: Ledger, capsys: pytest.CaptureFixture[str]) -> None:
    run(["-C", str(ledger.root), "import", AIPERF])
    (trial,) = bodies(ledger, Trial)
    session = next(item.session for item in ledger.walk())
    assert ledger.read_blob(session, trial.samples[0]) == Path(AIPERF).read_bytes()
    parameters = trial.instrument.parameters
    assert (parameters["tool"], parameters["tool_version"]) == ("aiperf", "0.13.0")
    assert "aiperf profile" in parameters["command"]
    assert "ttft" in parameters["definitions"]


def test_a_cached_prompt_stays_apart_from_a_cold_one(ledger: Ledger, capsys: pytest.CaptureFixture[str]) -> None:
    run(["-C", str(ledger.root), "import", V41])
    rows = ask(ledger, capsys, "query", "prefill@827 by arm")
    assert [row["value"] for row in rows if "hit" not in row["marks"]] == [208.2]


@pytest.mark.parametrize(("option", "boots"), [([], 1), (["--each-a-boot"], 2)])
def test_files_of_one_boot_or_of_several(
    ledger: Ledger, capsys: pytest.CaptureFixture[str], tmp_path: Path, option: list[str], boots: int
) -> None:
    other = tmp_path / "second.json"
    other.write_text(Path(V41).read_text().replace("83", "84"))
    assert run(["-C", str(ledger.root), "import", V41, str(other), "--arm", "x", *option]) == 0
    (row,) = ask(ledger, capsys, "query", "C6 by arm")
    assert row["n_boots"] == boots


def test_a_dry_run_writes_nothing(ledger: Ledger, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["-C", str(ledger.root), "import", V41, "--dry-run"]) == 0
    assert "89.96" in capsys.readouterr().out
    assert list(ledger.walk()) == []


def test_what_is_said_of_the_server_is_in_the_boot(ledger: Ledger) -> None:
    said = ["--identity", "engine=vLLM 0.12", "--identity", "HF_TOKEN=hf_abcdefghijklmnopqrstuv", "--condition", "jit=warm"]
    run(["-C", str(ledger.root), "import", AIPERF, "--arm", "a", *said])
    (boot,) = bodies(ledger, Boot)
    assert boot.factors.identity["engine"] == "vLLM 0.12"
    assert boot.conditions == {"jit": "warm"}
    assert "hf_abc" not in boot.factors.identity["HF_TOKEN"]
    assert not [path for path in ledger.receipts.rglob("*") if path.is_file() and b"hf_abc" in path.read_bytes()]


SECRET = "sk-abcdefghijklmnop0123"


def with_secret(folder: Path) -> Path:
    text = json.loads((SAMPLES / "guidellm-0.8.1.json").read_text())
    text["config"]["spec"]["backend"]["api_key"] = "hunter2hunter2"
    text["config"]["spec"]["backend"]["target"] = f"http://127.0.0.1/?key={SECRET}"
    path = folder / "with-a-secret.json"
    path.write_text(json.dumps(text))
    return path


def test_a_file_with_secrets_is_refused(ledger: Ledger, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert run(["-C", str(ledger.root), "import", str(with_secret(tmp_path))]) == 2
    said = capsys.readouterr().err
    assert "$.config.spec.backend.api_key" in said
    assert "--conceal" in said
    assert not {SECRET, "hunter2"} & set(said.split())
    assert list(ledger.walk()) == []


def test_a_file_with_secrets_is_kept_without_them(ledger: Ledger, tmp_path: Path) -> None:
    assert run(["-C", str(ledger.root), "import", str(with_secret(tmp_path)), "--conceal"]) == 0
    kept = b"".join(path.read_bytes() for path in ledger.receipts.rglob("*") if path.is_file())
    assert SECRET.encode() not in kept
    assert b"hunter2" not in kept
    assert list(verify(ledger, Checked())) == []


def test_an_archive_with_a_secret_is_refused_always(ledger: Ledger, tmp_path: Path) -> None:
    path = tmp_path / "log.eval"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("header.json", json.dumps({"api_key": "hunter2"}))
    assert run(["-C", str(ledger.root), "import", str(path), "--conceal"]) == 2


TABLE = """
tool = "mybench"
[figures.speed]
path = "runs[].rate"
unit = "tok/s"
better = "higher"
definition = "tokens over time"
[figures.wait]
pattern = 'wait: (?P<value>[0-9.]+) ms'
unit = "ms"
"""


def test_a_format_that_a_table_describes(ledger: Ledger, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    table, result = tmp_path / "mybench.toml", tmp_path / "out.txt"
    table.write_text(TABLE)
    result.write_text('wait: 12.5 ms\n{"runs": [{"rate": 10}, {"rate": 14}, {"rate": 11}]}\n')
    assert run(["-C", str(ledger.root), "import", str(result), "--with", str(table), "--arm", "a"]) == 0
    assert [row["value"] for row in ask(ledger, capsys, "query", "mybench.speed by arm")] == [11.0]
    assert [row["value"] for row in ask(ledger, capsys, "query", "mybench.wait by arm")] == [12.5]


def test_every_mistake_of_a_table_is_told_at_once(ledger: Ledger, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    table = tmp_path / "t.toml"
    table.write_text('tol = "x"\n[figures.a]\npath = "["\nunit = "s"\n[figures.b]\npath = "x"\ncolumn = "y"\nbeter = "up"\n')
    assert run(["-C", str(ledger.root), "import", V41, "--with", str(table)]) == 2
    said = capsys.readouterr().err
    for word in ("tol", "did you mean 'tool'", "figures.a.path", "exactly one", "figures.b.unit", "did you mean 'better'"):
        assert word in said


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["nowhere.json"], "no such file"),
        ([V41, "--format", "vllm"], "did you mean 'vllm-bench'"),
        ([V41, "--identity", "engine"], "KEY=VALUE"),
        ([V41, "--format", "aiperf"], "without a single figure"),
        ([str(Path(__file__).parents[2] / "pyproject.toml")], "not known here"),
    ],
)
def test_mistakes_are_told_with_a_way_out(
    ledger: Ledger, capsys: pytest.CaptureFixture[str], arguments: list[str], word: str
) -> None:
    assert run(["-C", str(ledger.root), "import", *arguments]) == 2
    assert word in capsys.readouterr().err
    assert list(ledger.walk()) == []


def test_the_formats_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["import", "--formats"]) == 0
    assert "llama-bench" in capsys.readouterr().out
