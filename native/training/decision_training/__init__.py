"""Trains and fine-tunes the weights of decision-1. `python -m decision_training --help` lists the commands."""
