"""Asks a running service through OpenAI's own Python client; exits with an AssertionError where it is not understood.

python client.py BASE_URL KEY RATE_LIMITED_KEY
"""

import sys

import openai

BASE_URL, KEY, RATE_LIMITED_KEY = sys.argv[1:]
STATE = "I was charged twice for order 8812. Please give the second payment back."
QUESTIONS = [
    {"type": "predicate", "name": "refund", "instructions": "Does the customer ask for money back?"},
    {
        "type": "choice",
        "instructions": "Which team should handle this message?",
        "choices": [{"value": "billing", "description": "payments"}, {"value": True}],
    },
    {
        "type": "score",
        "name": "urgency",
        "instructions": "How urgent is this?",
        "levels": [{"label": "can wait"}, {"label": "today"}],
    },
]


def decide(key: str, **changes):
    client = openai.OpenAI(api_key=key, base_url=BASE_URL)
    return client.decisions.create(**{"model": "decision-1", "input": STATE, "questions": QUESTIONS, **changes})


def check_answers() -> None:
    decision = decide(KEY, extra_query={"mode": "consistent"})
    refund, team, urgency = decision.answers
    assert (refund.type, refund.name) == ("predicate", "refund") and 0 <= refund.probability <= 1
    assert team.name is None and team.choice in ("billing", True)
    assert [one.value for one in team.probabilities] == ["billing", True]
    assert abs(sum(one.probability for one in team.probabilities) - 1) < 1e-9
    assert [(one.label, one.value) for one in urgency.probabilities] == [("can wait", 0), ("today", 1)]
    assert decision.usage.total_tokens == decision.usage.input_tokens > 0


def check_error() -> None:
    try:
        decide(KEY, questions=[{"type": "noul", "instructions": "Is it so?"}])
    except openai.UnprocessableEntityError as error:
        assert (error.code, error.param) == ("invalid_question_type", "questions[0].type"), error
    else:
        raise AssertionError("the question was taken")


check_answers()
check_error()
# Refused with a 429 once: the client waits for as long as Retry-After says.
assert len(decide(RATE_LIMITED_KEY).answers) == len(QUESTIONS)
