"""Metrics of a network's answers: accuracy, negative log-likelihood and calibration, defined as in `tds eval`."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from .cases import KINDS
from .data import NOUL, Document, collate, grouped
from .training import Trainer

CALIBRATION_BINS = 10
_PROBABILITY_MIN = 1e-12


@dataclass(frozen=True)
class Measured:
    """The metrics of the questions of one type. NLL is in nats."""

    questions: int
    accuracy: float
    nll: float
    ece: float


@dataclass(frozen=True)
class Prediction:
    """The probabilities of a question's classes (no and yes for a noul), the target, and the right class."""

    kind: int
    probabilities: list[float]
    target: list[float]
    answer: int

    @property
    def nll(self) -> float:
        """The expected negative logarithm of the probability of the target."""
        pairs = zip(self.target, self.probabilities, strict=True)
        return -sum(share * math.log(max(_PROBABILITY_MIN, p)) for share, p in pairs if share > 0)

    @property
    def is_right(self) -> bool:
        """True if the likeliest class is the answer: yes of a noul at one half, otherwise the first of equal ones."""
        if self.kind == NOUL:
            return int(self.probabilities[1] >= 0.5) == self.answer
        return self.probabilities.index(max(self.probabilities)) == self.answer

    @property
    def claim(self) -> tuple[float, float]:
        """A predicted probability, and whether it was right: of yes for a noul, of the predicted answer otherwise."""
        if self.kind == NOUL:
            return self.probabilities[1], float(self.answer)
        return max(self.probabilities), float(self.is_right)


def predictions_of(trainer: Trainer, documents: Sequence[Document], batch_tokens: int) -> list[Prediction]:
    """Answers every question of the documents by the network."""
    trainer.network.eval()
    found: list[Prediction] = []
    with torch.no_grad():
        for group in grouped(list(documents), batch_tokens):
            batch = collate(group)
            scores = trainer.scores(batch.to(trainer.compute.device)).cpu()
            for index, target in enumerate(target for document in group for target in document.targets):
                own = scores[batch.question == index]
                found.append(Prediction(target.kind, _probabilities(target.kind, own), target.labels, target.answer))
    trainer.network.train()
    return found


def _probabilities(kind: int, scores: Tensor) -> list[float]:
    if kind == NOUL:
        yes = torch.sigmoid(scores.double()[0]).item()
        return [1 - yes, yes]
    return torch.softmax(scores.double(), 0).tolist()


def mean_nll(predictions: Sequence[Prediction]) -> float:
    """Returns the mean over all questions."""
    return sum(prediction.nll for prediction in predictions) / len(predictions)


def measured_by_kind(predictions: Sequence[Prediction]) -> dict[str, Measured]:
    """Returns the metrics of each question type that has questions."""
    by_kind = {kind: [p for p in predictions if p.kind == index] for index, kind in enumerate(KINDS)}
    return {kind: _measured(own) for kind, own in by_kind.items() if own}


def _measured(predictions: list[Prediction]) -> Measured:
    bins = [[0.0, 0.0] for _ in range(CALIBRATION_BINS)]
    for probability, outcome in (prediction.claim for prediction in predictions):
        own = bins[min(CALIBRATION_BINS - 1, int(probability * CALIBRATION_BINS))]
        own[0] += probability
        own[1] += outcome
    count = len(predictions)
    return Measured(
        questions=count,
        accuracy=sum(prediction.is_right for prediction in predictions) / count,
        nll=mean_nll(predictions),
        ece=sum(abs(predicted - observed) for predicted, observed in bins) / count,
    )
