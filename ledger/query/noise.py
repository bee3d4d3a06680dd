"""What the ledger has seen of some configurations, for whoever has no connection to the index.

What it does: opens the index, asks, and closes it. What it does not do: judge. Rules kept: an index that turns out to be damaged
is built anew and asked once more; whatever goes wrong is an error with its reason, so that a session can go on without.
"""

from collections.abc import Sequence

import duckdb
from attrs import frozen

from ledger.core.errors import AgainError, StoreError
from ledger.query.index import open_index
from ledger.query.stood import noise_of
from ledger.store.ledger import Ledger


@frozen
class SeenInLedger:
    """The boot-level values that a ledger holds, by configuration."""

    ledger: Ledger

    def __call__(self, configs: Sequence[str], evidence: str, state: str | None) -> dict[str, list[list[float]]]:
        """By metric, the values of each of ``configs`` (fingerprints) over all boots that count; see ``stood.noise_of``.

        Raises:
            StoreError: the index cannot be opened or read.
        """
        try:
            return self._asked(configs, evidence, state)
        except AgainError:
            return self._asked(configs, evidence, state)

    def _asked(self, configs: Sequence[str], evidence: str, state: str | None) -> dict[str, list[list[float]]]:
        try:
            with open_index(self.ledger) as connection:
                return noise_of(connection, configs, evidence, state)
        except (duckdb.Error, OSError) as error:
            raise StoreError(f"the index cannot be read: {error}") from error
