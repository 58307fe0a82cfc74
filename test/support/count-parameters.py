"""Parameters of the real classes of transformers, made on the meta device.

Reads one JSON object a line ({"id": ..., "config": {...}}) and writes one for each: {"id", "counts": {auto class: parameters}},
or {"id", "error"} where the type has no class or the class refuses the config.
"""

import json
import os
import sys

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch
import transformers

transformers.logging.set_verbosity_error()

AUTO_CLASSES = [
    "AutoModelForCausalLM",
    "AutoModelForImageTextToText",
    "AutoModelForSeq2SeqLM",
    "AutoModelForMaskedLM",
    "AutoModelForSpeechSeq2Seq",
    "AutoModelForMultimodalLM",
    "AutoModel",
]


def count(config):
    values = dict(config)
    made = transformers.AutoConfig.for_model(values.pop("model_type"), **values)
    counts = {}
    for name in AUTO_CLASSES:
        auto = getattr(transformers, name)
        if type(made) not in auto._model_mapping.keys():
            continue
        with torch.device("meta"):
            model = auto.from_config(made)
        counts[name] = sum(parameter.numel() for parameter in model.parameters())
    return counts


for line in sys.stdin:
    case = json.loads(line)
    try:
        answer = {"id": case["id"], "counts": count(case["config"])}
    except Exception as error:  # noqa: BLE001
        answer = {"id": case["id"], "error": f"{type(error).__name__}: {error}"[:300]}
    print(json.dumps(answer), flush=True)
