"""The documentation's own programs: pages made from the code, the example ledger, and the examples that are run."""
