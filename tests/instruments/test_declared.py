"""A format that a table describes: where each figure is found, what is absent, and tables and patterns that are wrong."""

import pytest

from ledger.core.errors import UsageError
from ledger.instruments.extract.base import Extraction
from ledger.instruments.extract.declared import read_declared
from ledger.instruments.extract.document import read_document
from ledger.instruments.pattern import MAX_PATTERN


def table(source: str) -> bytes:
    return f'tool = "mine"\n[figures.speed]\n{source}\nunit = "tok/s"\n'.encode()


def extracted(source: str, name: str, text: str) -> Extraction:
    return read_declared(table(source), "mine.toml").extract(read_document(name, text.encode()))


def value(found: Extraction) -> float | None:
    return found.trials[0].figures["mine.speed"].value


def test_a_path_a_column_and_a_pattern_find_the_same_number() -> None:
    assert value(extracted("path = 'runs[].speed'", "x.json", '{"runs": [{"speed": 1}, {"speed": 3}]}')) == 2
    assert value(extracted('column = "speed"', "x.csv", "speed,other\n1,9\n3,9\n")) == 2
    assert value(extracted("pattern = 'speed (?P<value>[0-9.]+)'", "x.txt", "speed 1 now\nspeed 3\nslow 9\n")) == 2


def test_a_table_that_finds_nothing_is_no_import() -> None:
    found = extracted("path = 'runs[].speed'", "x.json", "{}").trials[0].figures["mine.speed"]
    assert (found.value, found.absent) == (None, "nothing at runs[].speed")


def test_a_pattern_that_elsewhere_takes_exponential_time_takes_linear_time_here() -> None:
    found = extracted("pattern = '(?P<value>(.*?,){25}P)'", "x.txt", ",".join("1" * 60)).trials[0].figures["mine.speed"]
    assert found.absent == "nothing at (?P<value>(.*?,){25}P)"


@pytest.mark.parametrize(
    ("source", "told"),
    [
        ("pattern = '[0-9]+'", "a group"),
        ("pattern = '(?P<value>'", r"a regular expression as RE2 has them: missing \)"),
        ("pattern = '(?<=a)(?P<value>b)'", "as RE2 has them: invalid perl operator"),
        (f"pattern = '(?P<value>{'a' * MAX_PATTERN})'", "at most 500 characters"),
        ("path = 'a['", "a JMESPath"),
        ("path = 'a'\ncolumn = 'b'", "exactly one of path, column and pattern"),
    ],
)
def test_a_table_that_is_wrong_says_where(source: str, told: str) -> None:
    with pytest.raises(UsageError, match=told) as caught:
        read_declared(table(source), "mine.toml")
    assert "figures.speed" in str(caught.value)
    assert caught.value.problems[0].place is not None
    assert caught.value.problems[0].place.file == "mine.toml"
