"""Checkpoints: whole or not there. A run writes one every ten minutes, and one when it is told to stop."""

import os
import signal
import time
from pathlib import Path
from typing import Any

import torch

from .errors import TrainingError

INTERVAL_SECONDS = 600


def write_checkpoint(path: Path, content: dict[str, Any]) -> None:
    """Writes under a temporary name, and renames when all is on the disk. A stop in between leaves the previous one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(path.name + ".new")
    with temporary.open("wb") as file:
        torch.save(content, file)
        file.flush()
        os.fsync(file.fileno())
    temporary.replace(path)


def read_checkpoint(path: Path) -> dict[str, Any]:
    """Reads a checkpoint of `write_checkpoint`, and executes nothing of it. Raises `TrainingError` if it cannot be
    read."""
    try:
        return torch.load(path, map_location="cpu", weights_only=True, mmap=True)
    except OSError as error:
        raise TrainingError(f"{path} cannot be read ({error.strerror or error}).") from error
    except Exception as error:  # torch.load raises RuntimeError, UnpicklingError, ValueError and others for damage
        raise TrainingError(f"{path} is no checkpoint, or is damaged.") from error


class Interruption:
    """Knows if SIGTERM or SIGINT has asked this process to stop. A second SIGINT ends it at once."""

    def __init__(self) -> None:
        self.asked = False
        signal.signal(signal.SIGTERM, self._ask)
        signal.signal(signal.SIGINT, self._ask)

    def _ask(self, *_: object) -> None:
        self.asked = True
        signal.signal(signal.SIGINT, signal.default_int_handler)


class Interval:
    """A timer of equal intervals."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.last = time.monotonic()

    def is_over(self) -> bool:
        """Returns true if the interval is over, and then begins the next one."""
        if time.monotonic() - self.last < self.seconds:
            return False
        self.last = time.monotonic()
        return True
