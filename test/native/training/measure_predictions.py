"""Lists of predictions on standard input: prints what the training code measures on each.

Metrics need no network: without torch, names are enough for what the import asks for.
"""

import json
import sys
from dataclasses import asdict
from unittest.mock import MagicMock

from decision_training.cases import KINDS

sys.modules["torch"] = MagicMock()
sys.modules["decision_training.data"] = MagicMock(NOUL=KINDS.index("noul"))
sys.modules["decision_training.training"] = MagicMock()

from decision_training.evaluation import Prediction, measured_by_kind  # noqa: E402

for line in sys.stdin:
    predictions = [
        Prediction(KINDS.index(one["type"]), one["probabilities"], one["target"], one["answer"])
        for one in json.loads(line)
    ]
    print(json.dumps({kind: asdict(measured) for kind, measured in measured_by_kind(predictions).items()}))
