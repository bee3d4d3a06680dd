"""Which site a spec runs on.

What it does: takes ``--site``, else ``LEDGER_SITE``, else what the spec names, and loads both files. What it does not do: plan.
Rule kept: ``--site`` and ``LEDGER_SITE`` are relative to where the program was started, the spec's own ``site`` to the spec.
"""

import os
from pathlib import Path

from attrs import frozen

from ledger.spec.load import Loaded, load_site, load_spec
from ledger.spec.model import Site, Spec

VARIABLE = "LEDGER_SITE"


@frozen(kw_only=True)
class SpecAndSite:
    """Both files, read and checked by themselves."""

    spec: Loaded[Spec]
    site: Loaded[Site]


def load_for(spec: Path, site: Path | None) -> SpecAndSite:
    """Load a spec and the site it runs on.

    Raises:
        SpecError: with every mistake of the file that is wrong.
    """
    loaded = load_spec(spec)
    chosen = site or (Path(os.environ[VARIABLE]) if os.environ.get(VARIABLE) else spec.parent / loaded.value.site)
    return SpecAndSite(spec=loaded, site=load_site(chosen))
