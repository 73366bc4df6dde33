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

# Factors of the square root of a set's size; 1 by default. These are the fourth to the eighth version's: sets that were
# answered well already, or of which little was learned, are read less. The eighth read sets of scores half as often again.
WEIGHT = {
    "absa_semeval14": 0.8, "add_one_rte": 0.3, "amazon_stars": 1.8, "api_bank": 0.6, "aqua": 0.2, "arc_obqa_siqa": 0.6,
    "atis": 0.5, "bbc_news": 0.4, "bbq": 0.8, "begin": 0.6, "bfcl": 1.3, "bitext_cs": 0.4, "clariq": 0.4,
    "climate_fever": 1.2, "clinc150": 0.5, "codah": 0.8, "cola": 0.5, "com2sense": 0.4, "complex_lcp": 0.4,
    "comve": 0.5, "convarg": 0.9, "covidfact": 1.3, "creak": 0.6, "dbpedia": 0.3, "debian_packages": 0.5,
    "defeasible_nli": 0.6, "dnc": 0.6, "doc_questions": 1.3, "edos": 1.2, "email_intent": 1.2, "emobank": 0.6,
    "fnc1": 1.2, "folio": 0.4, "fool_me_twice": 1.3, "gap": 0.6, "halueval": 1.2, "healthver": 1.4, "help_nli": 0.3,
    "hwu64": 0.7, "imdb": 0.7, "infotabs": 1.2, "logiqa": 0.3, "long_facts": 1.3, "mams": 1.2, "mctaco": 0.6,
    "med_monotonicity": 0.3, "medical_qp": 1.2, "mediqa_answers": 1.2, "meld": 1.1, "metatool": 0.5, "mnli": 2.0,
    "msrp_pan": 1.3, "multidogo": 0.5, "multirc": 1.6, "natinst": 0.6, "newsgroups20": 0.5, "nli4ct": 0.6,
    "onestop": 1.2, "openapi_operations": 0.7, "package_tables": 0.4, "pararule": 0.3, "qags": 1.5, "qed": 1.2,
    "qnli": 1.3, "qqp": 1.6, "query_wellformed": 0.5, "reuters21578": 0.5, "rte": 1.3, "scitail": 1.2,
    "semantic_fragments": 0.4, "semeval2017_sentiment": 1.3, "semeval2017_topic": 1.4, "semeval2018_intensity": 1.3,
    "sgd": 1.1, "short_answer_grading": 0.9, "short_facts": 0.6, "silicone_dyda": 0.6, "silicone_maptask": 0.4,
    "silicone_oasis": 0.6, "sim_dialogue": 0.4, "sms_spam": 0.7, "snips": 0.4, "snli": 1.5, "spam_assassin": 0.6,
    "stackoverflow_titles": 0.3, "star_dialogs": 0.3, "strategyqa": 0.7, "sts_semeval": 1.8, "synth_business": 1.3,
    "tabfact": 0.6, "taskbench": 0.7, "tatqa": 0.6, "tau_records": 1.5, "toolbench": 1.3, "toxic_spans": 0.5,
    "trec": 0.7, "wang_answer_sentence": 1.2, "wice": 1.4, "wikitq": 0.4, "winogender": 0.3, "winogrande_dev": 0.4,
    "yelp_stars": 1.6,
}  # fmt: skip

# Our own cases for plain questions (`native/training/cases`) are the sets whose names begin so.
OWN_PREFIX = "own_"


def shares(sizes: dict[str, int], own_share: float) -> dict[str, float]:
    """Returns each set's share of the records that are read, by its number of records. The shares sum to 1.

    Our own sets together have `own_share`, if there are others.
    """
    own, public = (
        {name: size for name, size in sizes.items() if name.startswith(OWN_PREFIX) == is_own}
        for is_own in (True, False)
    )
    own_share = (own_share if public else 1.0) if own else 0.0
    weights = {name: math.sqrt(size) * WEIGHT.get(name, 1.0) for name, size in public.items()}
    return _scaled(weights, 1.0 - own_share) | _scaled(own, own_share)


def _scaled(weights: Mapping[str, float], total: float) -> dict[str, float]:
    summed = sum(weights.values())
    return {name: total * weight / summed for name, weight in weights.items()}
