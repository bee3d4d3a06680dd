"""Which site a spec runs on.

What it does: takes ``--site``, else ``LEDGER_SITE``, else what the spec names; loads both files with every check that needs the
instruments and backends that are installed. What it does not do: plan. Rules kept: ``--site`` and ``LEDGER_SITE`` are relative
to where the program was started, the spec's own ``site`` to the spec; what a spec names is not followed out of its folder, for
it may be a stranger's, and a message about a wrong file shows lines of it.
"""

import os
from collections.abc import Callable
from pathlib import Path

from attrs import frozen

from ledger.backends import registry as backends
from ledger.core.errors import Problem, SpecError, did_you_mean
from ledger.run.measures import check_measures, check_scales
from ledger.spec.load import Loaded, load_site, load_spec, read_site, read_spec
from ledger.spec.model import Site, Spec
from ledger.spec.values import Complain

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
    loaded = load_spec(spec, also=check_measures)
    given = site or (Path(os.environ[VARIABLE]) if os.environ.get(VARIABLE) else None)
    return SpecAndSite(spec=loaded, site=load_site(given or _own_site(loaded, spec.parent), also=_checks(loaded.value)))


def read_for(spec: bytes, spec_file: str, site: bytes, site_file: str) -> SpecAndSite:
    """As :func:`load_for`, from texts; the files are what messages call them.

    Raises:
        SpecError: with every mistake of the text that is wrong.
    """
    loaded = read_spec(spec, spec_file, also=check_measures)
    return SpecAndSite(spec=loaded, site=read_site(site, site_file, also=_checks(loaded.value)))


def _checks(spec: Spec) -> Callable[[Site, Complain], None]:
    def also(value: Site, complain: Complain) -> None:
        check_scales(spec)(value, complain)
        _check_backend(value, complain)

    return also


def _own_site(spec: Loaded[Spec], folder: Path) -> Path:
    """The site that the spec names.

    Raises:
        SpecError: it is no file, or outside ``folder``, by its path or through a symbolic link.
    """
    named = folder / spec.value.site
    if not Path(os.path.realpath(named)).is_relative_to(os.path.realpath(folder)):
        what, hint = "a site outside the folder of the spec", "give it with --site where you trust it"
    elif not named.is_file():
        what, hint = "no such site file", "write it, name another, or give one with --site"
    else:
        return named
    raise SpecError(Problem(what=what, place=spec.place("site"), value=spec.value.site, hint=hint))


def _check_backend(site: Site, complain: Complain) -> None:
    known = backends.names()
    if site.backend.strip() and site.backend not in known:
        complain("unknown backend", path=("backend",), value=site.backend, hint=did_you_mean(site.backend, known))
