"""The git program, asked without GitPython, which takes longer to load than a query takes to answer.

What it does: runs git in the ledger's own repository and returns what it prints. What it does not do: change anything; commits
are ``git``'s. Rules kept: argv only, never a shell; the caller's environment leads to no other repository; output is UTF-8, and
what is not is kept as surrogates.
"""

import os
import subprocess

from ledger.core.errors import Problem, StoreError
from ledger.store.ledger import Ledger

TIMEOUT_S = 600.0
# What a caller's environment may say of another repository; ours is found from the ledger's folder alone.
ELSEWHERE = (
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_COMMON_DIR",
    "GIT_NAMESPACE",
    "GIT_PREFIX",
)
# What a clone can lay over its history so that git shows another one.
AS_IT_IS = {"GIT_NO_REPLACE_OBJECTS": "1", "GIT_GRAFT_FILE": os.devnull, "LC_ALL": "C"}
# What a user may have set that would put more lines into git's answers.
SETTINGS = ("-c", "core.quotePath=false", "-c", "log.showSignature=false")


def git(ledger: Ledger, *arguments: str) -> str:
    """What ``git <arguments>`` prints.

    Raises:
        StoreError: git is not there, does not answer, or refuses; its first line says why.
    """
    return git_bytes(ledger, *arguments).decode("utf-8", "surrogateescape")


def git_bytes(ledger: Ledger, *arguments: str) -> bytes:
    """What ``git <arguments>`` prints, as it is; otherwise as :func:`git`."""
    environment = {name: value for name, value in os.environ.items() if name not in ELSEWHERE} | AS_IT_IS
    command = ["git", "-C", str(ledger.root), *SETTINGS, *arguments]
    try:
        done = subprocess.run(command, env=environment, capture_output=True, timeout=TIMEOUT_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise StoreError(f"git did not answer: {error}", hint="install git") from error
    if done.returncode:
        said = done.stderr.decode("utf-8", "replace").strip().splitlines()
        raise StoreError(Problem(what="git refused", value=said[0] if said else f"exit status {done.returncode}"))
    return done.stdout
