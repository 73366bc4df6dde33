"""The one error whose message is for the person at the terminal."""


class TrainingError(Exception):
    """An input cannot be used. The message is one sentence that names it and its place."""
