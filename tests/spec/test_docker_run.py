"""``docker run`` read and rendered: the launches people publish, any mix of options, and what is refused."""

import json
import shlex
from pathlib import Path

import pytest
import tomli_w
from hypothesis import given
from hypothesis import strategies as st

from ledger.core.errors import SpecError
from ledger.spec.docker_run import BY_NAME, OPTIONS, Launch, read, render, with_texts
from ledger.spec.interpolate import interpolate
from ledger.spec.load import load_site, load_spec
from ledger.spec.plan import BootPlan, RankLaunch, launch, make_plan

LAUNCHES = Path(__file__).resolve().parents[1] / "golden" / "launch"
REST = {
    "ledger": 1,
    "name": "x",
    "question": "does it come back?",
    "arms": [{"id": "A", "lane": "A", "role": "baseline"}],
    "measures": {"d": {"uses": "openai/decode"}},
}
SITE = 'ledger = 1\nname = "s"\nbackend = "docker"\n[[nodes]]\nname = "n"\n'


def booted(read_launch: Launch, folder: Path) -> BootPlan:
    """The plan of a spec whose lane is the launch, written as TOML and read again."""
    lane = read_launch.as_lane(engine="e", model="m")
    (folder / "spec.toml").write_text(tomli_w.dumps({**REST, "lanes": {"A": lane}}))
    (folder / "site.toml").write_text(SITE)
    return make_plan(load_spec(folder / "spec.toml"), load_site(folder / "site.toml")).boots[0]


def rendered(boot: BootPlan) -> list[str]:
    (rank,) = launch(boot, {"port": "1", "python": "p"})
    if rank.container is None:
        return [*(f"{name}={value}" for name, value in rank.env.items()), *rank.argv]
    return list(render(boot.lane.image or "", rank.container, rank.argv, rank.env))


@pytest.mark.parametrize("name", ["vllm", "tensorfold"])
def test_a_published_launch_comes_back_word_for_word(name: str, tmp_path: Path) -> None:
    text = (LAUNCHES / f"{name}.txt").read_text()
    words = shlex.split(text.replace("\\\n", " "))
    assert len(words) > 20
    assert rendered(booted(read(text), tmp_path)) == words


WORD = st.text(st.characters(blacklist_categories=("Cs", "Cc")), min_size=1, max_size=12).filter(
    lambda text: text.strip() == text
)
NAME = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,8}", fullmatch=True)


@st.composite
def command_lines(draw: st.DrawFn) -> str:
    words = ["docker", "run", *draw(st.sampled_from([[], ["-d"], ["-it", "--rm"]]))]
    for key in draw(st.lists(st.sampled_from(sorted(OPTIONS)), unique=True)):
        option = OPTIONS[key]
        name = draw(st.sampled_from([each for each in option.names if each.startswith("--")]))
        if option.kind == "switch":
            words.append(name)
            continue
        value = draw(WORD)
        value = f"{draw(NAME)}={value}" if option.kind == "pairs" else value
        words += [name, value] if draw(st.booleans()) else [f"{name}={value}"]
    return " ".join(shlex.quote(word) for word in [*words, "image:1", *draw(st.lists(WORD, max_size=3)), "end"])


@given(command_lines())
def test_what_is_rendered_reads_the_same(text: str) -> None:
    found = read(text)
    assert found.container is not None
    assert found.image == "image:1"
    assert found.command[-1] == "end"
    plain = with_texts(found.container, lambda text: interpolate(text, {}))
    assert read(shlex.join(render(found.image, plain, found.command, found.env))) == found


@given(st.text(max_size=80))
def test_any_text_is_read_or_told(text: str) -> None:
    try:
        found = read("docker run " + text)
    except SpecError as error:
        told = error.problems
        found = None
    assert found.image if found is not None else told


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("docker run --gpu=all image", "an option that is not read here"),
        ("docker run -e HOME image", "a variable taken from the shell"),
        ("docker run -v $HOME:/x image", "the shell would act on '$'"),
        ('docker run -v "$HOME":/x image', "the shell would act on '$'"),
        ("docker run image | tee log", "the shell would act on '|'"),
        ("docker run --name a --name b image", "--name stands twice"),
        ("docker run --name", "an option without its value"),
        ("docker run -d", "a container without an image"),
        ("docker run 'image", "no command line"),
        ("", "without a program"),
        ("A=1", "without a program"),
    ],
)
def test_what_is_not_understood_is_told(text: str, told: str) -> None:
    with pytest.raises(SpecError) as caught:
        read(text)
    assert told in str(caught.value)


def test_a_mistyped_option_names_the_nearest() -> None:
    with pytest.raises(SpecError) as caught:
        read("docker run --cpuset-cpu=1 image")
    assert "--cpuset-cpus" in str(caught.value)
    assert "--cpuset-cpus" in BY_NAME


def test_dollars_that_the_shell_leaves_alone_stay_as_they_are(tmp_path: Path) -> None:
    boot = booted(read("docker run -e 'A=${port}' -v '/a$b:/c' i:1 '$x' \\$y"), tmp_path)
    assert rendered(boot) == ["docker", "run", "-d", "--env", "A=${port}", "--volume", "/a$b:/c", "i:1", "$x", "$y"]


def test_containers_are_identity_but_for_their_name_and_labels(tmp_path: Path) -> None:
    boot = booted(read("docker run --name n --label a=b --shm-size 1g i:1 x"), tmp_path)
    assert boot.identity["container.shm_size"] == "1g"
    assert {"container.name", "container.labels"} <= set(boot.provenance)


SPECS = Path(__file__).resolve().parents[2] / "specs"


@pytest.mark.parametrize(("arm", "published"), [("A", "tensorfold"), ("C0", "vllm")])
def test_the_worked_example_is_launched_as_its_post_prints_it(arm: str, published: str) -> None:
    words = shlex.split((LAUNCHES / f"{published}.txt").read_text().replace("\\\n", " "))
    head, *workers = launched(arm)
    if arm == "A":  # the post prints the variables beside the command
        assert words == [*head.argv]
        assert len(head.env) == 7
    else:
        assert rendering(head) == words
    assert [len(rendering(worker)) for worker in workers] == [len(rendering(head))] * 3


def test_ranks_of_the_worked_example_differ_only_where_they_must() -> None:
    head, *workers = launched("C0")
    for rank, worker in enumerate(workers, start=1):
        other = {name: value for name, value in worker.env.items() if value != head.env[name]}
        peers = {name: ["rocep1s0f0", "roceP2p1s0f0"] for name in "0123" if name != str(rank)}
        assert other.pop("VLLM_HOST_IP") == f"192.168.1.5{5 + rank}"
        assert json.loads(other.pop("SPARKNET_ROCE_PEER_HCAS")) == peers
        assert not other
        at = [index for index, (one, two) in enumerate(zip(head.argv, worker.argv, strict=True)) if one != two]
        assert [head.argv[index - 1] for index in at] == ["--node-rank"]
        assert worker.container == head.container


def launched(arm: str) -> list[RankLaunch]:
    spec = "october18" if arm == "A" else "vllm-ladder"
    plan = make_plan(load_spec(SPECS / f"{spec}.toml"), load_site(SPECS / "sites" / "sparks.toml"), only=(arm,))
    return list(launch(plan.boots[0], {"python": "p"}))


def rendering(rank: RankLaunch) -> list[str]:
    if rank.container is None:
        return [*rank.argv]
    return list(render("vllm-ds41f-kkref:19f2c20ed4d6-r6x", rank.container, rank.argv, rank.env))
