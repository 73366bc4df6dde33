"""Rules that the OpenAPI document cannot express, for Schemathesis."""

import json

import schemathesis


@schemathesis.serializer("application/x-ndjson")
def one_line(context, value):
    """A batch of one line."""
    return json.dumps(value).encode() + b"\n"


@schemathesis.deserializer("application/x-ndjson")
def its_answer(context, response):
    return json.loads(response.content)


def is_answered_line(case):
    """A broken line has an error line in a 200, and a header has no answer: neither can be told from a status."""
    is_broken = case.meta is not None and case.meta.generation.mode.is_negative
    return not is_broken and isinstance(case.body, dict) and "state" in case.body


def fits_openai(body):
    """Returns true if a body of OpenAI's shape has one shape only, known calls for its outputs, and no choice twice."""
    items = body["input"] if isinstance(body.get("input"), list) else []
    has_output = any(isinstance(item, dict) and str(item.get("type")).endswith("_output") for item in items)
    return "state" not in body and not has_output and not any(has_equal_choices(one) for one in body["questions"])


def has_equal_choices(question):
    choices = question.get("choices") if isinstance(question, dict) else None
    values = [repr(one.get("value")) for one in choices or [] if isinstance(one, dict)]
    return len(set(values)) < len(values)


@schemathesis.hook
def filter_case(context, case):
    """The body's mode wins, so a query's mode beside it may be anything."""
    if case.path == "/v1/decisions/batch":
        return is_answered_line(case)
    body = case.body if isinstance(case.body, dict) else {}
    query = case.query or {}
    if "input" in body and isinstance(body.get("questions"), list) and not fits_openai(body):
        return False
    return not ("mode" in query and body.get("mode") is not None)
