"""The one error whose message is for the person at the terminal."""


class TrainingError(Exception):
    """Something that was given cannot be used. The message is one sentence that says what, and where."""
