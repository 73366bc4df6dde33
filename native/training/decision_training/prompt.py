"""The prompt profile "markers-v1", which makes tokens of a record and a typed question.

The record is a shared prefix. Every question is a branch that attends to the prefix and to itself only.

  mode        prefix                                            branch
  fast        RECORD text                                       QUESTION instructions (OPTION text ANSWER)*
  consistent  QUESTION instructions (OPTION text)* RECORD text  QUESTION instructions (OPTION text ANSWER)*

The score of an option is logit(YES) - logit(NO) at the ANSWER token that closes it. A noul has its criteria as options
without an ANSWER, and one ANSWER at the end: its probability is the sigmoid of its score. Choice and score are a
softmax over their options. `native/plan/markers-v1.ts` is the product's side; tests hold the two equal.
"""

from collections.abc import Callable
from typing import Any

Json = Any
Encode = Callable[[str], list[int]]

# Ids of the control tokens: unused special tokens of SmolLM2, which no text becomes.
RECORD, QUESTION, OPTION, ANSWER, YES, NO = 3, 4, 5, 6, 7, 8
EXACT_INTEGER_MAX = 2**53
CONTROL_TOKENS = {
    RECORD: "<|record|>",
    QUESTION: "<|question|>",
    OPTION: "<|option|>",
    ANSWER: "<|answer|>",
    YES: "<|yes|>",
    NO: "<|no|>",
}


def scalar_text(value: Json) -> str:
    """Returns a JSON scalar as text. 19.0 is "19"."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int) and abs(value) > EXACT_INTEGER_MAX:
        # The service reads numbers as JavaScript does.
        value = float(value)
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def is_scalar(value: Json) -> bool:
    """Returns true if the value is neither an array nor an object."""
    return not isinstance(value, (dict, list))


def _object_lines(value: dict[str, Json], indent: int) -> list[str]:
    pad = " " * indent
    lines = []
    for key, item in value.items():
        if is_scalar(item) or not item:
            lines.append(f"{pad}{key}: {scalar_text(item) if is_scalar(item) else ''}".rstrip())
        elif isinstance(item, list) and all(is_scalar(one) for one in item):
            lines.append(f"{pad}{key}: " + ", ".join(scalar_text(one) for one in item))
        else:
            lines += [f"{pad}{key}:", render(item, indent + 1)]
    return lines


def _list_lines(value: list[Json], indent: int) -> list[str]:
    pad = " " * indent
    # The dash replaces the first line's indentation.
    return [
        f"{pad}- {scalar_text(item)}" if is_scalar(item) else f"{pad}- {render(item, indent + 1)[indent + 1 :]}"
        for item in value
    ]


def render(value: Json, indent: int = 0) -> str:
    """Returns a JSON value as compact text: `key: value` lines, one space of indentation a level, lists of scalars on
    one."""
    if isinstance(value, dict):
        return "\n".join(_object_lines(value, indent))
    if isinstance(value, list):
        return "\n".join(_list_lines(value, indent))
    return scalar_text(value)


def text_of(value: Json) -> str:
    """Returns instructions or a description as text: nothing for null, a trimmed string, or the rendered value."""
    if value is None:
        return ""
    return value.strip() if isinstance(value, str) else render(value)


def _plain(value: str) -> str:
    return value.lower().replace(" ", "_").replace("-", "_")


def option_text(option_id: str, description: Json) -> str:
    """Returns an option's id, with its description if that adds anything."""
    option, described = option_id.strip(), text_of(description)
    return option if not described or _plain(described) == _plain(option) else f"{option}: {described}"


def _noul_criteria(criteria: dict[str, Json] | None) -> list[str]:
    given = criteria or {}
    sides = {"yes": given.get("true", given.get("yes")), "no": given.get("false", given.get("no"))}
    return [f"{side}: {text_of(said)}" for side, said in sides.items() if text_of(said)]


class Prompt:
    """Makes tokens of requests. `encode` turns a text into token ids, and no text into a control token."""

    def __init__(self, encode: Encode) -> None:
        self.encode = encode

    def record(self, state: Json) -> list[int]:
        """Returns the tokens of a record: a string as it is, any other value rendered."""
        return [RECORD, *self.encode(state if isinstance(state, str) else render(state))]

    def question(self, question: dict[str, Json], answered: bool = True) -> tuple[list[int], list[int]]:
        """Returns a question's tokens, and the indexes of its ANSWER tokens: one for each option, or one for a noul."""
        criteria, kind = question.get("criteria"), question["type"]
        tokens = [QUESTION, *self.encode(text_of(question.get("instructions")))]
        reads: list[int] = []

        def answer() -> None:
            if answered:
                reads.append(len(tokens))
                tokens.append(ANSWER)

        if kind == "noul":
            for criterion in _noul_criteria(criteria):
                tokens.extend([OPTION, *self.encode(criterion)])
            answer()
            return tokens, reads
        options = (
            [option_text(key, said) for key, said in criteria.items()]
            if kind == "choice"
            else [text_of(level) for level in criteria]
        )
        for option in options:
            tokens.extend([OPTION, *self.encode(option)])
            answer()
        return tokens, reads

    def plans(self, state: Json, questions: dict[str, dict[str, Json]], mode: str) -> list[dict[str, Json]]:
        """Returns a request's plans: one in fast mode, one for each question in consistent mode."""
        record = self.record(state)
        branches = []
        for name, question in questions.items():
            tokens, reads = self.question(question)
            branches.append({"question": name, "ids": tokens, "reads": reads})
        if mode == "fast":
            return [{"prefix": record, "branches": branches}]
        return [
            {"prefix": self.question(question, answered=False)[0] + record, "branches": [branch]}
            for question, branch in zip(questions.values(), branches, strict=True)
        ]
