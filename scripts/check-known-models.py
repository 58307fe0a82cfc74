"""Checks src/model/known-models/*.json against the real transformers classes.

Builds every entry on the meta device (no memory, no download) and compares its parameter count, tied weights once,
with the published one in the table. Run with a Python that has torch and transformers:

    python scripts/check-known-models.py [part of a model name]

Prints a line for each entry that differs and exits with 1 if there is one.
"""

import json
import sys
from pathlib import Path

import torch
from transformers import AutoConfig, AutoModelForCausalLM

TABLE = Path(__file__).resolve().parent.parent / "src" / "model" / "known-models"
# Not part of the architecture: how the checkpoint is stored.
STORAGE_KEYS = {"torch_dtype", "quantization_config", "architectures", "model_type"}


def entries():
    """Yields (names, published parameters or None, whole config); an entry with `like` builds on an earlier one."""
    for path in sorted(TABLE.glob("*.json")):
        configs = {}
        for group in json.loads(path.read_text()):
            for model in group["models"]:
                base, parameters = configs.get(model.get("like"), (group["defaults"], None))
                config = {**base, **model["config"]}
                parameters = model.get("parameters", parameters)
                configs.update({name: (config, parameters) for name in model["names"]})
                yield model["names"], parameters, config


def count(config):
    settings = {key: value for key, value in config.items() if key not in STORAGE_KEYS}
    built = AutoConfig.for_model(config["model_type"], **settings)
    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(built)
    architecture = type(model).__name__
    if architecture not in config["architectures"]:
        raise ValueError(f"is a {architecture}, not {config['architectures']}")
    return sum(parameter.numel() for parameter in model.parameters())


def main():
    wanted = sys.argv[1] if len(sys.argv) > 1 else ""
    checked = 0
    wrong = 0
    for names, published, config in entries():
        if not any(wanted in name for name in names):
            continue
        checked += 1
        try:
            counted = count(config)
        except Exception as problem:  # every entry gets its line
            counted = f"{type(problem).__name__}: {problem}"
        if counted != published:
            wrong += 1
            print(f"{names[0]}: published {published}, counted {counted}")
    print(f"{checked} entries checked, {wrong} wrong")
    return 1 if wrong or not checked else 0


if __name__ == "__main__":
    sys.exit(main())
