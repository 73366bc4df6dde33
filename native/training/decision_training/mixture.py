"""The sets for training and their weights: the parameters of an experiment. `sets.tsv` describes each set."""

import math
from collections.abc import Mapping

# A set whose licence forbids the use of the weights.
NON_COMMERCIAL = {"airline_tweets"}

# Sets from which a small model learns little. `--without-hard` leaves them out.
HARD = {
    "add_one_rte", "aqua", "arc_obqa_siqa", "arct", "bbq", "clariq", "codah", "cola", "com2sense", "complex_lcp",
    "comve", "copa", "creak", "debian_packages", "defeasible_nli", "dnc", "emobank", "folio", "gap", "help_nli",
    "legalbench_fewshot", "logiqa", "mctaco", "med_monotonicity", "natinst", "nli4ct", "openapi_operations",
    "package_tables", "pararule", "piqa", "query_wellformed", "reuters21578", "semantic_fragments",
    "short_answer_grading", "silicone_maptask", "strategyqa", "tabfact", "taskbench", "tatqa", "wikitq", "winogender",
    "winogrande_dev", "wsc",
}  # fmt: skip

# Factors of the square root of a set's size; 1 by default.
WEIGHT = {
    "amazon_stars": 1.4, "aqua": 0.2, "arc_obqa_siqa": 0.8, "bbq": 0.6, "bitext_cs": 1.4, "cola": 0.5,
    "complex_lcp": 0.4, "debian_packages": 0.5, "dnc": 0.6, "email_intent": 1.4, "help_nli": 0.3, "infotabs": 1.2,
    "med_monotonicity": 0.3, "mnli": 1.4, "multidogo": 1.2, "openapi_operations": 0.7, "package_tables": 0.4,
    "pararule": 0.4, "query_wellformed": 0.5, "reuters21578": 0.7, "semantic_fragments": 0.4,
    "semeval2017_sentiment": 1.3, "semeval2017_topic": 1.2, "sgd": 1.3, "short_facts": 1.6, "silicone_dyda": 0.6,
    "silicone_maptask": 0.4, "silicone_oasis": 0.6, "snli": 1.2, "star_dialogs": 1.2, "synth_business": 2.5,
    "tabfact": 0.6, "taskbench": 0.7, "tau_records": 1.3, "wikitq": 0.5, "winogender": 0.3, "winogrande_dev": 0.4,
    "yelp_stars": 1.4,
}  # fmt: skip

# The share of records from our own cases for plain questions (`native/training/cases`): sets whose names begin so.
# Public sets alone left such questions at chance.
OWN_PREFIX = "own_"
OWN_SHARE = 0.5


def shares(sizes: dict[str, int]) -> dict[str, float]:
    """Returns each set's share of the records that are read, by its number of records. The shares sum to 1."""
    own, public = (
        {name: size for name, size in sizes.items() if name.startswith(OWN_PREFIX) == is_own}
        for is_own in (True, False)
    )
    own_share = (OWN_SHARE if public else 1.0) if own else 0.0
    weights = {name: math.sqrt(size) * WEIGHT.get(name, 1.0) for name, size in public.items()}
    return _scaled(weights, 1.0 - own_share) | _scaled(own, own_share)


def _scaled(weights: Mapping[str, float], total: float) -> dict[str, float]:
    summed = sum(weights.values())
    return {name: total * weight / summed for name, weight in weights.items()}
