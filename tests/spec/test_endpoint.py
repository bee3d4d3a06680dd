"""Endpoints in a site: what is refused, where, and without telling a secret."""

from pathlib import Path

import pytest

from ledger.core.errors import SpecError
from ledger.spec.load import load_site, load_spec, read_site
from ledger.spec.plan import make_plan

ROOT = Path(__file__).resolve().parents[2]
TOP = 'ledger = 1\nname = "cloud"\nbackend = "endpoint"\n'
GOOD = TOP + '[endpoints.L]\nurl = "http://h:1"\n'


@pytest.mark.parametrize(
    ("text", "line", "told"),
    [
        (TOP, 1, "no endpoints"),
        (TOP + '[endpoints.L]\nurl = "h:1"\n', 5, "not the base URL"),
        (TOP + '[endpoints.L]\nurl = "http://h:99999"\n', 5, "not the base URL"),
        (TOP + '[endpoints.L]\nurl = "http://[h"\n', 5, "not the base URL"),
        (TOP + '[endpoints.L]\nurl = "http://me:sesame@h:1"\n', 5, "api_key_env"),
        (TOP + '[endpoints.L]\nurl = "http://h:1/?key=sesame"\n', 5, "api_key_env"),
        (GOOD + 'api_key_env = "A B"\n', 6, "not the name of a variable"),
        (GOOD + 'arms = { B = "ftp://h" }\n', 6, "not the base URL"),
        (GOOD + '[[nodes]]\nname = "n"\n', 6, "has no nodes"),
        (GOOD.replace('backend = "endpoint"\n', "") + '[[nodes]]\nname = "n"\n', 3, "starts servers itself"),
    ],
)
def test_a_mistake_is_told_where_it_stands(text: str, line: int, told: str) -> None:
    with pytest.raises(SpecError) as caught:
        read_site(text.encode(), "site.toml")
    (problem,) = caught.value.problems
    assert told in f"{problem.what} {problem.hint}"
    assert problem.place is not None
    assert (problem.place.file, problem.place.line) == ("site.toml", line)
    assert "sesame" not in f"{problem.what} {problem.value} {problem.hint}"


@pytest.mark.parametrize(
    ("site", "spec", "arm"),
    [
        ("endpoint", "smollm2", "control"),
        ("sparks", "kv-capacity", "C0ctrl"),
        ("laptop", "smollm2", "control"),
        ("docker", "smollm2", "control"),
    ],
)
def test_a_site_of_the_repository_plans_a_spec_of_it(site: str, spec: str, arm: str) -> None:
    folder = ROOT / "specs"
    loaded = load_spec(folder / f"{spec}.toml")
    only = [arm] if arm in [each.id for each in loaded.value.arms] else []
    plan = make_plan(loaded, load_site(folder / "sites" / f"{site}.toml"), only=only)
    assert plan.boots


def test_a_key_over_http_to_another_machine_is_remarked(tmp_path: Path) -> None:
    spec = load_spec(ROOT / "specs" / "smollm2.toml")
    text = TOP + '[endpoints.smol]\nurl = "http://10.0.0.7:8002/v1"\napi_key_env = "KEY"\n'
    (told,) = [each for each in make_plan(spec, read_site(text.encode(), "s"), only=["control"]).remarks if "clear text" in each]
    assert "10.0.0.7" in told
