"""From records to batches.

A record becomes documents: its tokens as a prefix, with a branch for each question. Documents of about the same length
make a batch. Everything follows from the seed and the number of a pool of records, so that a run that was stopped goes
on with the batch that it would have had next.
"""

import json
import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from .cases import Case, parse_case
from .errors import TrainingError
from .mixture import HARD, NON_COMMERCIAL, shares
from .network import MASKED
from .prompt import Encode, Prompt

# The indexes of `cases.KINDS`.
NOUL, CHOICE, SCORE = 0, 1, 2
# A level's neighbours also get a share of the target: that of a normal distribution with this deviation, in levels.
LEVEL_DEVIATION = 0.45
# The share of records that are read as JSON instead of rendered, of those that are no strings.
JSON_SHARE = 0.25
PADDING_BRANCH = -1


@dataclass(frozen=True)
class Target:
    """The target of a question: a share for each read (a noul has one, yes), and the index of the answer.

    labels are the shares of the classes (no and yes for a noul) among those who labelled it.
    """

    kind: int
    shares: list[float]
    answer: int
    labels: list[float]


class Document(NamedTuple):
    """A prefix (branch 0) and the branches of its questions, as one sequence. `reads` has each question's indexes."""

    tokens: np.ndarray
    positions: np.ndarray
    branches: np.ndarray
    reads: list[list[int]]
    targets: list[Target]


class Batch(NamedTuple):
    """Padded documents. reads are indexes into B x L; question says which question each read belongs to."""

    tokens: Tensor
    positions: Tensor
    branches: Tensor
    reads: Tensor
    question: Tensor
    shares: Tensor
    kinds: Tensor
    answers: Tensor

    def to(self, device: str) -> "Batch":
        """The batch on a device."""
        return Batch(*(tensor.to(device, non_blocking=True) for tensor in self))


@dataclass(frozen=True)
class DocumentRules:
    """Options of documents. `shorten` tells if long ones are left out or their records shortened."""

    tokens_max: int
    # Documents with more tokens for each question teach little for their cost.
    tokens_per_question_max: int = 10**9
    # The probability that a question gets its own document, and is also asked before the record.
    consistent: float = 0.0
    shuffle: bool = True
    shorten: bool = False


def target_of(question: dict[str, Any]) -> Target:
    """Returns the target of a question, for its options in their order."""
    kind, answer, soft = question["type"], question["answer"], question.get("soft")
    if kind == "noul":
        labels = _normalized(soft or [1 - answer, int(answer)])
        return Target(NOUL, labels[1:], int(answer), labels)
    if kind == "choice":
        options = list(question["criteria"])
        labels = _normalized([soft.get(o, 0) for o in options] if soft else [int(o == answer) for o in options])
        return Target(CHOICE, labels, options.index(answer), labels)
    levels = range(len(question["criteria"]))
    labels = _normalized(soft or [int(level == answer) for level in levels])
    near = [math.exp(-0.5 * ((level - answer) / LEVEL_DEVIATION) ** 2) for level in levels]
    return Target(SCORE, labels if soft else _normalized(near), int(answer), labels)


def _normalized(values: Sequence[float]) -> list[float]:
    total = sum(values)
    return [value / total for value in values]


def _shuffled_options(question: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    """Shuffles a choice's options, because the model must not learn an order."""
    if question["type"] != "choice":
        return question
    options = list(question["criteria"].items())
    rng.shuffle(options)
    return {**question, "criteria": dict(options)}


def documents_of(case: Case, prompt: Prompt, rng: random.Random, rules: DocumentRules) -> list[Document]:
    """Returns the documents of a record within the rules; none if all are too long."""
    state, questions = case.state, list(case.questions)
    if rules.shuffle:
        if not isinstance(state, str) and rng.random() < JSON_SHARE:
            state = json.dumps(state, ensure_ascii=False, separators=(",", ":"))
        rng.shuffle(questions)
        questions = [_shuffled_options(question, rng) for question in questions]
    record, shared, documents = prompt.record(state), [], []
    for question in questions:
        if rules.consistent > 0 and rng.random() < rules.consistent:
            asked = prompt.question(question, answered=False)[0]
            documents.append(_document(asked, record, [question], prompt, rules))
        else:
            shared.append(question)
    if shared:
        documents.append(_document([], record, shared, prompt, rules))
    return [
        document
        for document in documents
        if len(document.tokens) <= min(rules.tokens_max, rules.tokens_per_question_max * len(document.reads))
    ]


def _document(
    asked: list[int], record: list[int], questions: list[dict[str, Any]], prompt: Prompt, rules: DocumentRules
) -> Document:
    branches = [prompt.question(question) for question in questions]
    if rules.shorten:
        room = rules.tokens_max - len(asked) - sum(len(tokens) for tokens, _ in branches)
        record = _shortened(record, max(2, room))
    prefix = asked + record
    tokens, positions, numbers = list(prefix), list(range(len(prefix))), [0] * len(prefix)
    reads = []
    for number, (added, indexes) in enumerate(branches, 1):
        reads.append([len(tokens) + index for index in indexes])
        tokens += added
        positions += range(len(prefix), len(prefix) + len(added))
        numbers += [number] * len(added)
    arrays = (np.array(values, np.int64) for values in (tokens, positions, numbers))
    return Document(*arrays, reads, [target_of(question) for question in questions])


def _shortened(record: list[int], room: int) -> list[int]:
    """Shortens a record as the service does: the first and the last half of the room stay."""
    if len(record) <= room:
        return record
    first = room // 2
    return record[:first] + record[len(record) - (room - first) :]


def grouped(documents: list[Document], batch_tokens: int) -> list[list[Document]]:
    """Groups documents by length, with at most about `batch_tokens` in a group, padding included."""
    groups: list[list[Document]] = []
    for document in sorted(documents, key=lambda one: len(one.tokens)):
        if groups and len(document.tokens) * (len(groups[-1]) + 1) <= batch_tokens:
            groups[-1].append(document)
        else:
            groups.append([document])
    return groups


def collate(documents: list[Document], multiple: int = 1) -> Batch:
    """Makes a batch of documents, padded to a multiple of `multiple`."""
    length = -(-max(len(document.tokens) for document in documents) // multiple) * multiple
    shape = (len(documents), length)
    tokens, positions, branches = np.zeros(shape, np.int64), np.zeros(shape, np.int64), np.full(shape, PADDING_BRANCH)
    reads, question, targets = [], [], []
    for row, document in enumerate(documents):
        used = len(document.tokens)
        tokens[row, :used], positions[row, :used] = document.tokens, document.positions
        branches[row, :used] = document.branches
        for indexes, target in zip(document.reads, document.targets, strict=True):
            reads += [row * length + index for index in indexes]
            question += [len(targets)] * len(indexes)
            targets.append(target)
    return Batch(
        *(torch.from_numpy(array) for array in (tokens, positions, branches)),
        torch.tensor(reads),
        torch.tensor(question),
        torch.tensor([share for target in targets for share in target.shares], dtype=torch.float32),
        torch.tensor([target.kind for target in targets]),
        torch.tensor([target.answer for target in targets]),
    )


def attention_mask(branches: Tensor) -> Tensor:
    """Makes a mask [B, 1, L, L] of branches [B, L]: a token sees the prefix and its own branch, up to itself."""
    length = branches.shape[1]
    earlier = torch.ones(length, length, dtype=torch.bool, device=branches.device).tril()
    related = (branches[:, None, :] == 0) | (branches[:, None, :] == branches[:, :, None])
    # Padding sees itself, so that its softmax has something to sum.
    itself = torch.eye(length, dtype=torch.bool, device=branches.device)
    seen = (earlier & related) | itself
    return torch.zeros(seen.shape, device=branches.device).masked_fill_(~seen, MASKED)[:, None]


@dataclass(frozen=True)
class RecordFile:
    """The offsets of each set's lines in a prepared file. The records stay on the disk."""

    path: Path
    offsets: dict[str, np.ndarray]

    @staticmethod
    def open(path: Path, line_bytes_max: int, without_hard: bool, seed: int) -> "RecordFile":
        """Finds the lines of all sets of the mixture, in an order that the seed fixes."""
        found: dict[str, list[int]] = {}
        offset = 0
        try:
            with path.open("rb") as file:
                for line in file:
                    if len(line) < line_bytes_max:
                        found.setdefault(_set_name(line), []).append(offset)
                    offset += len(line)
        except OSError as error:
            raise TrainingError(f"{path} cannot be read ({error.strerror}): make it by `prepare`.") from error
        left_out = NON_COMMERCIAL | (HARD if without_hard else set())
        rng = np.random.default_rng(seed)
        offsets = {name: rng.permutation(np.array(found[name])) for name in sorted(found) if name not in left_out}
        if not offsets:
            raise TrainingError(f"{path} has no record that can be trained on.")
        return RecordFile(path, offsets)

    def read(self, offset: int) -> Case:
        """Reads the record at an offset."""
        with self.path.open("rb") as file:
            file.seek(offset)
            line = file.readline().decode("utf-8", errors="replace")
        try:
            return parse_case(line, offset, self.path)
        except TrainingError as error:
            raise TrainingError(f"{self.path} was changed since it was prepared: prepare it again.") from error


def _set_name(line: bytes) -> str:
    """Returns the set of a prepared line, which begins with it: `{"src":"name",…`."""
    return line[8 : line.index(b'"', 8)].decode("utf-8")


@dataclass(frozen=True)
class Pools(Dataset):
    """Makes batches by the number of their pool, the same ones for the same seed.

    Each set is walked in its order from pool to pool, by its share of the mixture.
    """

    records: RecordFile
    encode: Encode
    rules: DocumentRules
    batch_tokens: int
    pool_records: int
    seed: int
    own_share: float
    multiple: int = 1
    first: int = 0
    shares: dict[str, float] = field(init=False)

    def __post_init__(self) -> None:
        sizes = {name: len(offsets) for name, offsets in self.records.offsets.items()}
        object.__setattr__(self, "shares", shares(sizes, self.own_share))

    def __len__(self) -> int:
        return 10**9

    def __getitem__(self, index: int) -> list[Batch]:
        """Returns the batches of pool `first` + `index`."""
        pool = self.first + index
        rng = random.Random(f"{self.seed} {pool}")
        prompt = Prompt(self.encode)
        documents = [
            document
            for offset in self._offsets(pool)
            for document in documents_of(self.records.read(offset), prompt, rng, self.rules)
        ]
        groups = grouped(documents, self.batch_tokens)
        rng.shuffle(groups)
        return [collate(group, self.multiple) for group in groups]

    def _offsets(self, pool: int) -> Iterator[int]:
        phases = random.Random(self.seed)
        for name, share in self.shares.items():
            offsets, each, phase = self.records.offsets[name], share * self.pool_records, phases.random()
            start, end = math.floor(pool * each + phase), math.floor((pool + 1) * each + phase)
            yield from (int(offsets[number % len(offsets)]) for number in range(start, end))


def stream(pools: Pools, batches_taken: int, workers: int) -> Iterator[tuple[int, int, Batch]]:
    """Yields endless batches from the pool `pools.first` on, without its first ones, with pool and number."""
    loader = DataLoader(
        pools, batch_size=None, shuffle=False, num_workers=workers, collate_fn=_as_it_is,
        prefetch_factor=2 if workers else None,
    )  # fmt: skip
    empty = 0
    for number, batches in enumerate(loader, pools.first):
        empty = 0 if batches else empty + 1
        if empty > 100:
            raise TrainingError("No record is short enough for --document-tokens and --tokens-per-question.")
        for index, batch in enumerate(batches):
            if number > pools.first or index >= batches_taken:
                yield number, index + 1, batch


def _as_it_is(value: list[Batch]) -> list[Batch]:
    return value
