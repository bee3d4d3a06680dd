"""Whether the instruments that a spec uses are there and take the parameters that spec and site give them.

What it does: checks the measures of a spec, and the scales of a site, through ``complain`` (see ``ledger.spec.load``), so that
their mistakes are told with all others of the file. What it does not do: run an instrument. Rule kept: a parameter is told
where it was written: the site's in the site, the spec's in the spec.
"""

from collections.abc import Callable, Mapping
from typing import Any

from ledger.core.errors import did_you_mean
from ledger.instruments import registry
from ledger.spec.model import Measure, Site, Spec
from ledger.spec.values import Complain


def check_measures(spec: Spec, complain: Complain) -> None:
    """Every unknown instrument and every wrong parameter of a spec."""
    known = registry.names()
    for measure in spec.measures.values():
        path = ("measures", measure.id)
        if not measure.uses.strip():
            continue  # told as an empty text
        if measure.uses not in known:
            hint = did_you_mean(measure.uses, known)
            complain("unknown instrument", path=(*path, "uses"), value=measure.uses, hint=hint)
            continue
        for wrong in registry.get(measure.uses).check(measure.parameters):
            complain(wrong.what, path=(*path, wrong.key), value=wrong.value, hint=wrong.hint)


def check_scales(spec: Spec) -> Callable[[Site, Complain], None]:
    """A check of every parameter that a site scales for a measure of ``spec``."""

    def check(site: Site, complain: Complain) -> None:
        known = registry.names()
        for name, scaled in site.scale.items():
            measure = spec.measures.get(name)
            if measure is not None and measure.uses in known:
                _scaled(measure, scaled, complain)

    return check


def _scaled(measure: Measure, scaled: Mapping[str, Any], complain: Complain) -> None:
    for wrong in registry.get(measure.uses).check({**measure.parameters, **scaled}):
        if wrong.key in scaled:
            complain(wrong.what, path=("scale", measure.id, wrong.key), value=wrong.value, hint=wrong.hint)
