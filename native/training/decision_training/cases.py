"""Reads cases: JSON lines, each a record with questions whose answers are known.

The form is that of `tds eval` (src/eval/README.md), and the training data has the same. Whatever cannot be used is a
`TrainingError` of one sentence that names the line; no line is left out silently. Needs the standard library only.
"""

import gzip
import json
import lzma
import math
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from .errors import TrainingError

OPTIONS_MIN, OPTIONS_MAX = 2, 255
# As in a request: 64 in a record, and the line around it.
LEVELS_MAX = 65
KINDS = ("noul", "choice", "score")
_OPENERS = {".gz": gzip.open, ".xz": lzma.open}


@dataclass(frozen=True)
class Case:
    """A record and its questions, as in `line`."""

    line: int
    source: str
    state: Any
    questions: list[dict[str, Any]]
    split: Any


def read_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yields the non-empty lines of a file with their numbers from 1. Decompresses `.gz` and `.xz`."""
    number = 0
    try:
        with _OPENERS.get(path.suffix, open)(path, "rt", encoding="utf-8-sig") as file:
            for number, line in enumerate(file, 1):
                if line.strip():
                    yield number, line
    except (EOFError, lzma.LZMAError, zlib.error, gzip.BadGzipFile) as error:
        raise TrainingError(
            f"{path} is damaged or ends in the middle, after line {number}: give a complete file."
        ) from error
    except UnicodeDecodeError as error:
        raise TrainingError(f"{path} is not UTF-8 after line {number}.") from error
    except OSError as error:
        raise TrainingError(f"{path} cannot be read ({error.strerror or error}).") from error


def read_cases(path: Path) -> list[Case]:
    """Reads all cases of a file. Raises `TrainingError` for the first invalid line, and for an empty file."""
    cases = [parse_case(line, number, path) for number, line in read_lines(path)]
    if not cases:
        raise TrainingError(f"{path} has no case.")
    return cases


def parse_case(line: str, number: int, path: Path) -> Case:
    """Reads the case in a line. Raises `TrainingError` with the line's number."""

    def fail(reason: str) -> NoReturn:
        raise TrainingError(f"Line {number} of {path} is not usable: {reason}.")

    value = _json_value(line, fail)
    if not isinstance(value, dict):
        fail("it is no JSON object")
    source, state, questions = value.get("src"), value.get("state"), value.get("questions")
    if not isinstance(source, str):
        fail('"src", the name of its set, is not a string')
    if not isinstance(state, (str, dict, list)):
        fail('"state", the record, is not a string, an object or an array')
    if not isinstance(questions, list) or not questions:
        fail('"questions" is no list with a question')
    for index, question in enumerate(questions):
        reason = _fault(question)
        if reason is not None:
            fail(f"questions[{index}]{reason}")
    return Case(number, source, state, questions, value.get("split", "train"))


def _json_value(line: str, fail: Callable[[str], NoReturn]) -> Any:
    def no_number(name: str) -> NoReturn:
        fail(f"{name} is no number of JSON")

    try:
        value = json.loads(line, parse_constant=no_number, parse_int=_integer, parse_float=_double)
        is_deep = _levels(value) > LEVELS_MAX
        json.dumps(value, ensure_ascii=False).encode()
    except json.JSONDecodeError:
        fail("it is not JSON" if line.endswith("\n") else "the file ends in the middle of it")
    except UnicodeEncodeError:
        fail("a text has half of a surrogate pair")
    except RecursionError:
        is_deep = True
    if is_deep:
        fail(f"objects and arrays are nested in more than {LEVELS_MAX} levels")
    return value


def _integer(written: str) -> int | str:
    """Returns an integer; one that a double would round is the text of its digits, as in the service."""
    double = _double(written)
    return written if isinstance(double, str) or int(double) != int(written) else int(written)


def _double(written: str) -> float | str:
    double = float(written)
    return double if math.isfinite(double) else written


def _levels(value: Any) -> int:
    if not isinstance(value, (dict, list)):
        return 0
    return 1 + max(map(_levels, value.values() if isinstance(value, dict) else value), default=0)


def _fault(question: Any) -> str | None:
    """Returns the reason why a question cannot be used; None if it can."""
    if not isinstance(question, dict) or question.get("type") not in KINDS:
        return f' has no "type" that is one of {", ".join(KINDS)}'
    if "answer" not in question:
        return " has no answer"
    kind, criteria = question["type"], question.get("criteria")
    if kind == "noul":
        if not isinstance(criteria, (dict, type(None))):
            return ": the criteria of a noul are an object"
    elif not isinstance(criteria, dict if kind == "choice" else list):
        return f": the criteria of a {kind} are {'an object of options' if kind == 'choice' else 'a list of levels'}"
    elif not OPTIONS_MIN <= len(criteria) <= OPTIONS_MAX:
        return f" has {len(criteria)} options: from {OPTIONS_MIN} to {OPTIONS_MAX} are possible"
    return _answer_fault(kind, criteria, question["answer"]) or _soft_fault(kind, criteria, question.get("soft"))


def _answer_fault(kind: str, criteria: Any, answer: Any) -> str | None:
    said = json.dumps(answer, ensure_ascii=False)
    if kind == "noul":
        return None if isinstance(answer, bool) else f": the answer {said} is neither true nor false"
    if kind == "choice":
        found = isinstance(answer, str) and answer in criteria
        return None if found else f": the answer {said} is none of its options ({', '.join(map(json.dumps, criteria))})"
    # A level may be written 1.0.
    is_level = isinstance(answer, (int, float)) and not isinstance(answer, bool) and answer in range(len(criteria))
    return None if is_level else f": the answer {said} is no level from 0 to {len(criteria) - 1}"


def _soft_fault(kind: str, criteria: Any, soft: Any) -> str | None:
    if soft is None:
        return None
    if not isinstance(soft, dict if kind == "choice" else list):
        return f': "soft" of a {kind} is {"an object" if kind == "choice" else "a list"}'
    shares = [soft.get(option, 0) for option in criteria] if kind == "choice" else soft
    if len(shares) != (2 if kind == "noul" else len(criteria)):
        return ': "soft" has not a share for each answer'
    numbers = all(isinstance(share, (int, float)) and not isinstance(share, bool) and share >= 0 for share in shares)
    if numbers and 0 < sum(map(float, shares)) < math.inf:
        return None
    return ': the shares of "soft" are not numbers from 0 with a positive sum'
