"""Vectors on standard input: token ids must be the pinned ones, and scores in 32 bits within TOLERANCE.

Arguments: the first part of decision-1. Prints the largest distance of a score.
"""

import json
import sys
from pathlib import Path

import torch

from decision_training.data import attention_mask
from decision_training.network import Compute, build_network
from decision_training.prompt import Prompt
from decision_training.restore import read_model

# The service keeps keys and values in 16 bits, which moves a score of the sixth version by .0052 at most.
TOLERANCE = 8e-3

torch.set_num_threads(1)
model = read_model(Path(sys.argv[1]))
network = Compute("cpu", bfloat16=False).place(build_network(model.shape, model.weights, model.encode))
prompt = Prompt(model.encode)
largest = 0.0
for line in sys.stdin:
    vector = json.loads(line)
    plans = prompt.plans(vector["state"], vector["questions"], vector["mode"])
    for plan, pinned in zip(plans, vector["plans"], strict=True):
        expected = [score for branch in pinned["branches"] for score in branch.pop("scores")]
        assert plan == pinned, f"{vector['name']}, {vector['mode']}: {plan} is not {pinned}"
        tokens, positions, branches, reads = list(plan["prefix"]), list(range(len(plan["prefix"]))), [], []
        branches += [0] * len(tokens)
        for number, branch in enumerate(plan["branches"], 1):
            reads += [len(tokens) + read for read in branch["reads"]]
            positions += range(len(plan["prefix"]), len(plan["prefix"]) + len(branch["ids"]))
            branches += [number] * len(branch["ids"])
            tokens += branch["ids"]
        with torch.no_grad():
            mask = attention_mask(torch.tensor([branches]))
            scores = network(torch.tensor([tokens]), torch.tensor([positions]), mask, torch.tensor(reads))
        distance = (scores - torch.tensor(expected)).abs().max().item()
        assert distance <= TOLERANCE, f"{vector['name']}, {vector['mode']}: a score is off by {distance}"
        largest = max(largest, distance)
print(largest)
