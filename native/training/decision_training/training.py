"""Training: the loss, one step of the optimizer, and a run that can stop and continue from its checkpoint."""

import math
import time
from collections import deque
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TextIO

import torch
import torch.nn.functional as F
from torch import Tensor

from .cases import KINDS
from .checkpoint import INTERVAL_SECONDS, Interruption, Interval, read_checkpoint, write_checkpoint
from .data import NOUL, Batch, DocumentRules, Pools, RecordFile, attention_mask, stream
from .errors import TrainingError
from .network import Compute, Network, build_network, load_weights, weights_of
from .restore import Model, read_model

CHECKPOINT = "checkpoint.pt"
SMOOTHING = {"noul": 0.04, "options": 0.02}
GRADIENT_NORM_MAX = 1.0
# Vectors (norms, control tokens, readout) learn faster than matrices, and do not decay.
VECTOR_RATE = 4.0
# The cosine ends at this share of the learning rate.
LAST_RATE = 0.03
# The spread of the first scores of a base, whose readout is not trained yet.
FIRST_SCORE_DEVIATION = 0.3
REPORT_SECONDS = 15.0


@dataclass(frozen=True)
class OptimizerSettings:
    """Options of AdamW, and the rate at which the average of the weights follows them."""

    learning_rate: float
    weight_decay: float = 0.05
    warmup_steps: int = 100
    average: float = 0.998


@dataclass
class Progress:
    """The progress of a run: the tokens read, and the position in the data."""

    steps: int = 0
    tokens: int = 0
    questions: int = 0
    pool: int = 0
    batches_taken: int = 0


def log_probabilities(scores: Tensor, question: Tensor, questions: int) -> Tensor:
    """Returns the logarithm of each score's softmax among those of its question."""
    largest = torch.full((questions,), -math.inf, device=scores.device)
    largest = largest.scatter_reduce(0, question, scores.detach(), "amax")
    shifted = scores - largest[question]
    total = torch.zeros(questions, device=scores.device).index_add(0, question, shifted.exp())
    return shifted - total.log()[question]


def question_losses(scores: Tensor, batch: Batch) -> Tensor:
    """Returns each question's loss in nats: cross-entropy with its smoothed target; of yes and no for a noul."""
    questions = len(batch.kinds)
    zero = torch.zeros(questions, device=scores.device)
    options = zero.index_add(0, batch.question, torch.ones_like(scores))
    smoothing = SMOOTHING["options"]
    shares = batch.shares * (1 - smoothing) + smoothing / options[batch.question]
    among_options = zero.index_add(0, batch.question, -shares * log_probabilities(scores, batch.question, questions))
    smoothing = SMOOTHING["noul"]
    yes = batch.shares * (1 - smoothing) + smoothing / 2
    of_yes = F.binary_cross_entropy_with_logits(scores, yes, reduction="none")
    return torch.where(batch.kinds == NOUL, zero.index_add(0, batch.question, of_yes), among_options)


class Trainer:
    """A network, its optimizer, the average of its weights, and their progress."""

    def __init__(self, network: Network, settings: OptimizerSettings, compute: Compute) -> None:
        self.compute, self.settings, self.progress = compute, settings, Progress()
        self.network = compute.place(network)
        self.trained = [parameter for parameter in network.parameters() if parameter.requires_grad]
        matrices = [p for p in self.trained if p.ndim == 2 and p is not network.control]
        vectors = [p for p in self.trained if p.ndim == 1 or p is network.control]
        groups = [
            {"params": matrices, "weight_decay": settings.weight_decay, "rate": 1.0},
            {"params": vectors, "weight_decay": 0.0, "rate": VECTOR_RATE},
        ]
        self.optimizer = torch.optim.AdamW(groups, lr=settings.learning_rate, betas=(0.9, 0.98), fused=True)
        self.average = [parameter.detach().clone() for parameter in self.trained]
        network.train()

    def scores(self, batch: Batch) -> Tensor:
        """Returns the network's score at each read of a batch on its device."""
        with self.compute.products():
            scores = self.network(batch.tokens, batch.positions, attention_mask(batch.branches), batch.reads)
        return scores.float()

    def step(self, batches: list[Batch], share_done: float) -> tuple[Tensor, Tensor]:
        """Makes one step of the optimizer over all batches. `share_done` of the run is over.

        Returns the sum of losses and the number of questions, by type.
        """
        warmup = min(1.0, (self.progress.steps + 1) / max(1, self.settings.warmup_steps))
        cosine = LAST_RATE + (1 - LAST_RATE) * 0.5 * (1 + math.cos(math.pi * min(1.0, share_done)))
        for group in self.optimizer.param_groups:
            group["lr"] = self.settings.learning_rate * warmup * cosine * group["rate"]
        questions = sum(len(batch.kinds) for batch in batches)
        losses, counts = torch.zeros(len(KINDS)), torch.zeros(len(KINDS))
        for batch in batches:
            placed = batch.to(self.compute.device)
            each = question_losses(self.scores(placed), placed)
            (each.sum() / questions).backward()
            losses.index_add_(0, batch.kinds, each.detach().cpu())
            counts.index_add_(0, batch.kinds, torch.ones(len(batch.kinds)))
            self.progress.tokens += batch.tokens.numel()
        torch.nn.utils.clip_grad_norm_(self.trained, GRADIENT_NORM_MAX)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        self.progress.steps += 1
        self.progress.questions += questions
        # The average moves faster in the first steps than `average` tells.
        kept = min(self.settings.average, self.progress.steps / (self.progress.steps + 9))
        torch._foreach_lerp_(self.average, [parameter.detach() for parameter in self.trained], 1 - kept)
        return losses, counts

    def average_weights(self) -> dict[str, Any]:
        """Returns the average of the weights, by their names in GGUF."""
        own = [parameter.detach().clone() for parameter in self.trained]
        self._set_trained(self.average)
        weights = weights_of(self.network)
        self._set_trained(own)
        return weights

    def _set_trained(self, values: list[Tensor]) -> None:
        with torch.no_grad():
            for parameter, value in zip(self.trained, values, strict=True):
                parameter.copy_(value)

    def weights(self) -> dict[str, Tensor]:
        """Returns a copy of the weights, by their names in GGUF."""
        return _tensors(weights_of(self.network))

    def state(self) -> dict[str, Any]:
        """Returns all state that a continuation needs. An export takes the average of it."""
        return {
            "weights": self.weights(),
            "average": _tensors(self.average_weights()),
            "optimizer": self.optimizer.state_dict(),
            "progress": asdict(self.progress),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Continues from `state()`."""
        load_weights(self.network, _arrays(state["average"]))
        self.average = [parameter.detach().clone() for parameter in self.trained]
        load_weights(self.network, _arrays(state["weights"]))
        self.optimizer.load_state_dict(state["optimizer"])
        self.progress = Progress(**state["progress"])


def _tensors(weights: dict[str, Any]) -> dict[str, Tensor]:
    return {name: torch.from_numpy(array) for name, array in weights.items()}


def _arrays(tensors: dict[str, Tensor]) -> dict[str, Any]:
    return {name: tensor.numpy() for name, tensor in tensors.items()}


class ProgressLine:
    """Reports the progress of training: the loss of the last steps, also by type, the speed, and the time left."""

    def __init__(self, trainer: Trainer, out: TextIO) -> None:
        self.trainer, self.out, self.interval = trainer, out, Interval(REPORT_SECONDS)
        self.recent: deque[tuple[Tensor, Tensor]] = deque(maxlen=50)
        self.started, self.first_tokens = time.monotonic(), trainer.progress.tokens

    def add(self, losses: Tensor, counts: Tensor, share_done: float) -> None:
        """Takes the result of a step, and sometimes writes a line."""
        self.recent.append((losses, counts))
        if len(self.recent) == 1 or self.interval.is_over():
            self.write(share_done)

    def write(self, share_done: float) -> None:
        """Writes the line now."""
        losses, counts = (sum(part) for part in zip(*self.recent, strict=True))
        by_kind = " ".join(
            f"{kind} {loss / max(1, count):.3f}"
            for kind, loss, count in zip(KINDS, losses.tolist(), counts.tolist(), strict=True)
        )
        progress, elapsed = self.trainer.progress, time.monotonic() - self.started
        speed = (progress.tokens - self.first_tokens) / max(1e-9, elapsed)
        left = (1 - share_done) * progress.tokens / (share_done * speed) / 3600 if share_done > 0 else math.nan
        self.out.write(
            f"step {progress.steps}  {100 * share_done:.1f}%  loss {losses.sum() / counts.sum():.4f} ({by_kind})  "
            f"{progress.tokens / 1e6:.2f}M tokens  {progress.questions} questions  {speed:.0f} tokens/s  "
            f"{left:.1f} h left\n"
        )
        self.out.flush()


@dataclass(frozen=True)
class RunSettings:
    """Options of `train`, which a run keeps for `resume`."""

    start: str
    records: str
    layers: int
    frozen_layers: int
    million_tokens: float
    learning_rate: float
    warmup_steps: int
    batch_tokens: int
    batches_per_step: int
    document_tokens: int
    tokens_per_question: int
    line_bytes: int
    pool_records: int
    consistent: float
    own_share: float
    without_hard: bool
    seed: int

    def pools(self, model: Model, progress: Progress) -> Pools:
        """Returns the run's data from its position on."""
        return Pools(
            records=RecordFile.open(Path(self.records), self.line_bytes, self.without_hard, self.seed),
            encode=model.encode,
            rules=DocumentRules(self.document_tokens, self.tokens_per_question, self.consistent),
            batch_tokens=self.batch_tokens,
            pool_records=self.pool_records,
            seed=self.seed,
            own_share=self.own_share,
            multiple=64 if torch.cuda.is_available() else 1,
            first=progress.pool,
        )


def start_run(folder: Path, settings: RunSettings, compute: Compute, workers: int, out: TextIO) -> None:
    """Trains into a folder that has no checkpoint yet."""
    if (folder / CHECKPOINT).exists():
        raise TrainingError(f"{folder} has a run already: go on with `resume`, or name another folder.")
    _run(folder, settings, None, compute, workers, out)


def resume_run(folder: Path, compute: Compute, workers: int, out: TextIO) -> None:
    """Continues from a folder's checkpoint."""
    state = read_checkpoint(folder / CHECKPOINT)
    if "settings" not in state:
        raise TrainingError(f"{folder / CHECKPOINT} is no checkpoint of `train`.")
    try:
        settings = RunSettings(**state["settings"])
    except TypeError as error:
        raise TrainingError(f"{folder / CHECKPOINT} is of another version of this program.") from error
    _run(folder, settings, state, compute, workers, out)


def _run(
    folder: Path, settings: RunSettings, state: dict[str, Any] | None, compute: Compute, workers: int, out: TextIO
) -> None:
    model = read_model(Path(settings.start))
    if settings.layers > model.shape.block_count:
        raise TrainingError(f"{settings.start} has {model.shape.block_count} layers, not {settings.layers}.")
    if not 0 <= settings.frozen_layers <= settings.layers:
        raise TrainingError(f"--frozen-layers is between 0 and {settings.layers}, the layers of the run.")
    if settings.frozen_layers > 0 and "control" not in model.weights:
        raise TrainingError("--frozen-layers needs decision-1's weights: a base's control tokens are not trained yet.")
    torch.manual_seed(settings.seed)
    network = build_network(model.shape, model.weights, model.encode, settings.layers)
    network.freeze(settings.frozen_layers)
    trainer = Trainer(network, OptimizerSettings(settings.learning_rate, warmup_steps=settings.warmup_steps), compute)
    if state is not None:
        trainer.restore(state)
    batches = stream(settings.pools(model, trainer.progress), trainer.progress.batches_taken, workers)
    if state is None and "control" not in model.weights:
        _scale_readout(trainer, batches)
    stopped = _train(trainer, batches, settings, folder / CHECKPOINT, out)
    out.write(f"Stopped; `resume {folder}` goes on.\n" if stopped else f"Done; `export {folder} FOLDER` writes GGUF.\n")


def _scale_readout(trainer: Trainer, batches: Iterator[tuple[int, int, Batch]]) -> None:
    """Scales an untrained readout, whose scores are far too wide, by one batch that is not trained on."""
    trainer.progress.pool, trainer.progress.batches_taken, batch = next(batches)
    with torch.no_grad():
        spread = trainer.scores(batch.to(trainer.compute.device)).std()
        trainer.network.readout.mul_(FIRST_SCORE_DEVIATION / spread)


def _train(
    trainer: Trainer,
    batches: Iterator[tuple[int, int, Batch]],
    settings: RunSettings,
    checkpoint: Path,
    out: TextIO,
) -> bool:
    """Trains until the run's tokens are read, or an interruption; returns true for the latter. Both end with a
    checkpoint."""
    interruption, interval, line = Interruption(), Interval(INTERVAL_SECONDS), ProgressLine(trainer, out)
    kept = {"settings": asdict(settings)}
    compute = trainer.compute
    out.write(f"training on {compute.device} in {'bfloat16' if compute.bfloat16 else 'float32'}; a signal stops it\n")
    out.flush()
    progress = trainer.progress

    def share_done() -> float:
        return min(1.0, progress.tokens / 1e6 / settings.million_tokens)

    while share_done() < 1 and not interruption.asked:
        taken = [next(batches) for _ in range(settings.batches_per_step)]
        line.add(*trainer.step([batch for _, _, batch in taken], share_done()), share_done())
        progress.pool, progress.batches_taken = taken[-1][:2]
        if interval.is_over():
            write_checkpoint(checkpoint, {**kept, **trainer.state()})
    if line.recent:
        line.write(share_done())
    write_checkpoint(checkpoint, {**kept, **trainer.state()})
    return share_done() < 1
