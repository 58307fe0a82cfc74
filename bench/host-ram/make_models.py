"""Writes what the measured runs read: models with random weights, adapters, tokenised rows.

    python make_models.py '{"models": [...], "adapters": [...], "rows": [...]}' FOLDER
"""

import json
import os
import sys

import numpy
import torch
from datasets import Dataset
from peft import LoraConfig, get_peft_model
from transformers import AutoConfig, AutoModelForCausalLM

WANTED, FOLDER = json.loads(sys.argv[1]), sys.argv[2]

for wanted in WANTED["models"]:
    path = os.path.join(FOLDER, wanted["name"])
    if os.path.isdir(path):
        continue
    config = AutoConfig.for_model(**wanted["config"])
    model = AutoModelForCausalLM.from_config(config, dtype=getattr(torch, wanted["stored"]))
    model.save_pretrained(path, max_shard_size=wanted.get("shard", "50GB"))
    del model

for wanted in WANTED["adapters"]:
    path = os.path.join(FOLDER, f"{wanted['model']}-adapter-{wanted['rank']}")
    if os.path.isdir(path):
        continue
    model = AutoModelForCausalLM.from_pretrained(os.path.join(FOLDER, wanted["model"]))
    get_peft_model(model, LoraConfig(r=wanted["rank"], target_modules="all-linear")).save_pretrained(path)
    del model

for wanted in WANTED["rows"]:
    path = os.path.join(FOLDER, f"rows-{wanted['rows']}-{wanted['tokens']}")
    if os.path.isdir(path):
        continue

    def generate(count=wanted["rows"], length=wanted["tokens"], vocabulary=wanted["vocabulary"]):
        random = numpy.random.default_rng(7)
        for _ in range(count):
            row = random.integers(1, vocabulary, length).tolist()
            yield {"input_ids": row, "labels": row}

    Dataset.from_generator(generate, cache_dir=os.path.join(FOLDER, "cache")).save_to_disk(path)
