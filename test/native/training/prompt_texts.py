"""Requests on standard input, a JSON line each, to their plans, in which texts stand for their tokens."""

import json
import sys

from decision_training.prompt import Prompt

prompt = Prompt(lambda text: [text])
for line in sys.stdin:
    request = json.loads(line)
    print(json.dumps(prompt.plans(request["state"], request["questions"], request["mode"])))
