"""``python -m ledger``."""

from ledger.cli.main import main

main()
