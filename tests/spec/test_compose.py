"""A service of a Compose file as a lane: the same as its ``docker run``, and every way in which a file is refused."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ledger.core.errors import LedgerError, SpecError
from ledger.spec.compose import read_service
from ledger.spec.docker_run import Launch, read
from ledger.spec.yaml_text import MAX_BYTES

WHOLE = """\
x-shared: &shared
  network_mode: host
  ipc: host
services:
  llm:
    <<: *shared
    image: ${REGISTRY:-local}/vllm:1
    container_name: vllm_node
    restart: unless-stopped
    shm_size: 16g
    mem_limit: 112g
    cap_add: [IPC_LOCK]
    security_opt:
      - label=disable
    devices:
      - /dev/infiniband:/dev/infiniband
    ulimits:
      memlock: -1
      stack: {soft: 67108864, hard: 67108864}
    labels:
      owner: tuning
    volumes:
      - /models:/models:ro
    environment:
      MAX_JOBS: 2
      PRICE: "$$5"
    deploy:
      resources:
        reservations:
          devices:
            - driver: nvidia
              count: all
              capabilities: [gpu]
    healthcheck: {disable: true}
    command: serve /models --port 8002 --name "a b"
"""
DOCKER_RUN = (
    "docker run --network=host --ipc=host --name vllm_node --restart unless-stopped --shm-size 16g --memory 112g --cap-add "
    "IPC_LOCK --security-opt label=disable "
    "--device /dev/infiniband:/dev/infiniband --ulimit memlock=-1 --ulimit stack=67108864:67108864 "
    "--label owner=tuning -v /models:/models:ro -e MAX_JOBS=2 -e 'PRICE=$5' --gpus all local/vllm:1 serve /models --port 8002 "
    "--name 'a b'"
)

BOMB = "a: &a [x,x,x,x,x,x,x,x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{below}'] * 8)}]\n" for below, name in pairwise("abcdefghi")
)


def lane(launch: Launch) -> dict[str, object]:
    return launch.as_lane(engine="e", model="m")


def one(body: str) -> str:
    """A file with one service of these lines, the first of which is line 4."""
    return "services:\n  llm:\n    image: x:1\n" + "".join(f"    {line}\n" for line in body.splitlines())


def told(text: str, **how: object) -> str:
    with pytest.raises(SpecError) as caught:
        read_service(text, "compose.yaml", **how)  # type: ignore[arg-type]  # one call for every way
    return str(caught.value)


def test_a_service_is_the_lane_that_its_docker_run_is() -> None:
    found = read_service(WHOLE, "compose.yaml")
    assert lane(found.launch) == lane(read(DOCKER_RUN))
    assert [remark.partition(":")[2] for remark in found.remarks] == [
        "34: healthcheck is not taken over: the runner does this in its own way"
    ]


@pytest.mark.parametrize(
    ("written", "given", "value"),
    [
        ("${A}", {"A": "1"}, "1"),
        ("$A-x", {"A": "1"}, "1-x"),
        ("${A:-d}", {"A": ""}, "d"),
        ("${A-d}", {"A": ""}, ""),
        ("${A:+set}", {"A": "1"}, "set"),
        ("${A+set}", {}, ""),
        ("$$A", {"A": "1"}, "$A"),
    ],
)
def test_variables_are_those_of_compose(written: str, given: dict[str, str], value: str) -> None:
    launch = read_service(one(f'environment: {{V: "{written}"}}'), "compose.yaml", given=given).launch
    assert launch.env == {"V": value}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a: [", ["compose.yaml:", "no YAML"]),
        ("- 1\n", ["no services"]),
        ("services: {}\n", ["no services"]),
        ("include: [b.yaml]\n" + one(""), ["compose.yaml:1", "other files are not read", "docker compose config"]),
        ("services:\n  a: {image: x}\n  b: {image: y}\n", ["several services", "a, b", "--service NAME"]),
        ("services:\n  a: 3\n", ["compose.yaml:2", "no mapping"]),
        ("services:\n  a: {command: x}\n", ["without an image"]),
        (one("imag: y"), ["compose.yaml:4", "imag", "did you mean 'image'?"]),
        (one("image: y"), ["compose.yaml:4", "a second 'image'"]),
        (one("env_file: .env"), ["compose.yaml:4", "env_file"]),
        (one("extends: {file: a.yaml}"), ["compose.yaml:4", "extends"]),
        (one("environment: [HOME]"), ["compose.yaml:4", "taken from the shell", "HOME"]),
        (one("environment: {HOME: }"), ["compose.yaml:4", "taken from the shell"]),
        (one("hostname: ${NOPE}"), ["compose.yaml:4", "NOPE is not in the file", "--var NOPE=VALUE"]),
        (one("hostname: ${NOPE:?say it}"), ["say it"]),
        (one("hostname: a$"), ["begins no variable"]),
        (one("volumes: [data:/data]"), ["compose.yaml:4", "whole path"]),
        (one("volumes: [./data:/data]"), ["whole path"]),
        (one("volumes: [{type: tmpfs, target: /x}]"), ["no bind mount"]),
        (one("volumes: [{type: bind, source: /a, target: /b, bind: {}}]"), ["not read here"]),
        (one("ports: ['80:80']"), ["publishes no ports", "network_mode: host"]),
        (one("privileged: perhaps"), ["true or false"]),
        (one("cap_add: IPC_LOCK"), ["expected a list"]),
        (one("ulimits: [1]"), ["expected a mapping"]),
        (one("hostname: [a]"), ["expected a text"]),
        (one('command: "a \'b"'), ["no command line"]),
        (one("deploy: {replicas: 2}"), ["deploy.replicas"]),
        (one("deploy: {resources: {reservations: {devices: [{driver: amd}]}}}"), ["no GPUs of NVIDIA"]),
        (one("hostname: !!python/object/apply:os.system [id]"), ["a tag"]),
        (one("hostname: !mine x"), ["a tag, which would name an object"]),
        (one("labels: &a\n  x: *a"), ["an anchor inside of itself"]),
        ("---\na: 1\n---\nb: 2\n", ["no YAML"]),
        ("? [a]\n: b\n" + one(""), ["a key that is no text"]),
        ("x" * (MAX_BYTES + 1), ["more than"]),
        ("[" * 5000, ["compose.yaml"]),
        (BOMB + one(""), ["expand"]),
    ],
)
def test_what_is_not_understood_is_refused_with_its_line(text: str, words: list[str]) -> None:
    said = told(text)
    assert [word for word in words if word not in said] == [], said


def test_a_service_that_is_not_there_is_told_with_the_nearest() -> None:
    assert "did you mean 'llm'?" in told(WHOLE, name="lm")


@given(st.text("services:llmage -x{}[]&*!?|>'\"#$\n ,%@`", max_size=60))
def test_any_text_is_a_service_or_is_refused(text: str) -> None:
    for whole in (text, one(text)):
        try:
            launch = read_service(whole, "compose.yaml").launch
        except LedgerError:
            continue
        assert launch.image
