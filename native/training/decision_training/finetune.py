"""Fine-tunes decision-1 on cases of one's own.

Records are split into three parts: training, validation (for early stopping) and test (for the report). A record that
occurs twice is in one part only. The best weights on the validation part are kept; where none are better than those
before, nothing is written. A checkpoint in `FOLDER.unfinished` lets the same command go on after a stop.
"""

import contextlib
import hashlib
import json
import random
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TextIO

from torch import Tensor

from .cases import Case
from .checkpoint import INTERVAL_SECONDS, Interruption, Interval, read_checkpoint, write_checkpoint
from .data import Batch, Document, DocumentRules, collate, documents_of, grouped
from .errors import TrainingError
from .evaluation import Measured, mean_nll, measured_by_kind, predictions_of
from .export import new_folder, write_parts
from .network import Compute, build_network, load_weights
from .prompt import Prompt
from .restore import Model, read_model
from .training import CHECKPOINT, OptimizerSettings, ProgressLine, Trainer

RECORDS_MIN = 20
WARMUP_STEPS = 10


@dataclass(frozen=True)
class FinetuneSettings:
    """Options of `finetune`. `test_share` is of all records, `validation_share` of the rest."""

    epochs: int
    patience: int
    learning_rate: float
    batch_tokens: int
    document_tokens: int
    test_share: float
    validation_share: float
    seed: int


@dataclass(frozen=True)
class Split:
    """The three parts of the cases."""

    training: list[Case]
    validation: list[Case]
    test: list[Case]


def split_cases(cases: list[Case], test: list[Case] | None, settings: FinetuneSettings) -> Split:
    """Splits by record, by the seed. A given `test` is the test part, and its records are in no other part."""
    apart = {_digest(case) for case in test or []}
    groups: dict[str, list[Case]] = {}
    for case in cases:
        if _digest(case) not in apart:
            groups.setdefault(_digest(case), []).append(case)
    if len(groups) < RECORDS_MIN:
        raise TrainingError(f"{len(groups)} different records are too few to train on: give at least {RECORDS_MIN}.")
    drawn = sorted(groups)
    random.Random(settings.seed).shuffle(drawn)
    tested = 0 if test else max(1, round(len(drawn) * settings.test_share))
    validated = tested + max(1, round((len(drawn) - tested) * settings.validation_share))
    if validated >= len(drawn):
        raise TrainingError("No record is left to train on: give a smaller --test-share or --validation-share.")

    def part(digests: list[str]) -> list[Case]:
        return [case for digest in digests for case in groups[digest]]

    return Split(part(drawn[validated:]), part(drawn[tested:validated]), test or part(drawn[:tested]))


def _digest(case: Case) -> str:
    return hashlib.sha256(json.dumps(case.state, sort_keys=True).encode()).hexdigest()


def finetune(
    split: Split, model_path: Path, folder: Path, name: str, settings: FinetuneSettings, compute: Compute, out: TextIO
) -> None:
    """Writes GGUF parts and `report.json` into a new folder. Raises `TrainingError` if nothing improved."""
    model = read_model(model_path)
    if "control" not in model.weights:
        raise TrainingError(f"{model_path} is not decision-1 or made of it: it lacks the control tokens.")
    run = _Finetuning(split, model, settings, compute, out)
    unfinished = folder.with_name(folder.name + ".unfinished")
    if run.train(unfinished / CHECKPOINT):
        out.write("Stopped; the same command goes on.\n")
        return
    if run.best is None:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise TrainingError(
            "The validation records are answered no better than before, so nothing was written: give more cases, or "
            "another --learning-rate."
        )
    try:
        report = run.report()
        temporary = new_folder(folder)
        write_parts(model, {key: tensor.numpy() for key, tensor in run.best.items()}, temporary, name)
        (temporary / "report.json").write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
        temporary.rename(folder)
    except BaseException:
        # The same command goes on from a checkpoint. It is larger than the results, so it may fail where they did.
        with contextlib.suppress(OSError, RuntimeError):
            write_checkpoint(unfinished / CHECKPOINT, run._kept())
        raise
    shutil.rmtree(unfinished, ignore_errors=True)
    out.write(_table(run.before, run.after) + f"\nThe weights are {min(folder.glob('*.gguf'))}\n")


class _Finetuning:
    """The state of fine-tuning. `_kept` is the part that a checkpoint keeps."""

    def __init__(self, split: Split, model: Model, settings: FinetuneSettings, compute: Compute, out: TextIO) -> None:
        self.split, self.model, self.settings, self.out = split, model, settings, out
        network = build_network(model.shape, model.weights, model.encode)
        optimizer = OptimizerSettings(settings.learning_rate, warmup_steps=WARMUP_STEPS)
        self.trainer = Trainer(network, optimizer, compute)
        self.prompt = Prompt(model.encode)
        self.best: dict[str, Tensor] | None = None
        self.best_nll = float("inf")
        self.epochs_without_gain = 0
        self.before: dict[str, Measured] = {}
        self.after: dict[str, Measured] = {}

    def train(self, checkpoint: Path) -> bool:
        """Trains until the validation part stops improving, or until an interruption. Returns true for the latter."""
        interruption, interval, line = Interruption(), Interval(INTERVAL_SECONDS), ProgressLine(self.trainer, self.out)
        if checkpoint.exists():
            self._restore(read_checkpoint(checkpoint), checkpoint)
        else:
            self._measure_before()
        progress = self.trainer.progress
        while progress.pool < self.settings.epochs and self.epochs_without_gain < self.settings.patience:
            batches = self._epoch(progress.pool)
            for batch in batches[progress.batches_taken :]:
                done = (progress.pool + progress.batches_taken / len(batches)) / self.settings.epochs
                line.add(*self.trainer.step([batch], done), done)
                progress.batches_taken += 1
                if interruption.asked or interval.is_over():
                    write_checkpoint(checkpoint, self._kept())
                if interruption.asked:
                    return True
            progress.pool, progress.batches_taken = progress.pool + 1, 0
            self._judge_epoch()
        return False

    def report(self) -> dict[str, Any]:
        """Evaluates the best weights on the test part."""
        if self.best is not None:
            load_weights(self.trainer.network, {name: tensor.numpy() for name, tensor in self.best.items()})
        self.after = measured_by_kind(predictions_of(self.trainer, *self._documents(self.split.test)))
        records = {part: len(cases) for part, cases in vars(self.split).items()}
        parts = {"before": self.before, "after": self.after}
        metrics = {part: {kind: asdict(own) for kind, own in found.items()} for part, found in parts.items()}
        return {"model": str(self.model.path), "settings": asdict(self.settings), "records": records, **metrics}

    def _measure_before(self) -> None:
        split = self.split
        self.out.write(
            f"{len(split.training)} cases to train, {len(split.validation)} to stop early, {len(split.test)} to judge\n"
        )
        self.before = measured_by_kind(predictions_of(self.trainer, *self._documents(split.test)))
        self.best_nll = self._validation_nll()
        self.out.write(f"before: validation NLL {self.best_nll:.4f}\n")
        self.out.flush()

    def _judge_epoch(self) -> None:
        nll = self._validation_nll()
        is_better = nll < self.best_nll
        self.epochs_without_gain = 0 if is_better else self.epochs_without_gain + 1
        if is_better:
            self.best_nll, self.best = nll, self.trainer.weights()
        self.out.write(
            f"epoch {self.trainer.progress.pool}: validation NLL {nll:.4f}{' (best)' if is_better else ''}\n"
        )
        self.out.flush()

    def _validation_nll(self) -> float:
        return mean_nll(predictions_of(self.trainer, *self._documents(self.split.validation)))

    def _rules(self, shuffle: bool) -> DocumentRules:
        return DocumentRules(self.settings.document_tokens, shuffle=shuffle, shorten=True)

    def _documents(self, cases: Sequence[Case]) -> tuple[list[Document], int]:
        """Returns documents for an evaluation, as the service asks them in fast mode."""
        rules, rng = self._rules(shuffle=False), random.Random(0)
        documents = [document for case in cases for document in documents_of(case, self.prompt, rng, rules)]
        if not documents:
            raise TrainingError("The questions of all cases are longer than --document-tokens.")
        return documents, self.settings.batch_tokens

    def _epoch(self, epoch: int) -> list[Batch]:
        """Returns the batches of an epoch: all cases, with newly shuffled options and questions."""
        rng, rules = random.Random(f"{self.settings.seed} {epoch}"), self._rules(shuffle=True)
        documents = [one for case in self.split.training for one in documents_of(case, self.prompt, rng, rules)]
        groups = grouped(documents, self.settings.batch_tokens)
        rng.shuffle(groups)
        return [collate(group) for group in groups]

    def _identity(self) -> str:
        """Returns the hash of a checkpoint's settings, weights and cases."""
        lines = [json.dumps([case.state, case.questions]) for part in vars(self.split).values() for case in part]
        told = [str(self.model.path), json.dumps(asdict(self.settings)), *lines]
        return hashlib.sha256("\n".join(told).encode()).hexdigest()

    def _kept(self) -> dict[str, Any]:
        return {
            "identity": self._identity(),
            "best": self.best,
            "best_nll": self.best_nll,
            "epochs_without_gain": self.epochs_without_gain,
            "before": {kind: asdict(own) for kind, own in self.before.items()},
            **self.trainer.state(),
        }

    def _restore(self, state: dict[str, Any], path: Path) -> None:
        if state.get("identity") != self._identity():
            raise TrainingError(
                f"{path} belongs to other cases, weights or settings: remove {path.parent} to begin anew."
            )
        self.trainer.restore(state)
        self.best, self.best_nll = state["best"], state["best_nll"]
        self.epochs_without_gain = state["epochs_without_gain"]
        self.before = {kind: Measured(**own) for kind, own in state["before"].items()}
        self.out.write(f"goes on in epoch {self.trainer.progress.pool + 1}\n")


def _table(before: dict[str, Measured], after: dict[str, Measured]) -> str:
    def row(kind: str) -> Iterator[str]:
        yield f"{kind:7}{before[kind].questions:10}"
        for metric in ("accuracy", "nll", "ece"):
            yield f"{getattr(before[kind], metric):10.3f} -> {getattr(after[kind], metric):.3f}"

    header = f"{'type':7}{'questions':>10}{'accuracy':>19}{'NLL':>19}{'ECE':>19}"
    return "\n".join([header, *("".join(row(kind)) for kind in before)])
