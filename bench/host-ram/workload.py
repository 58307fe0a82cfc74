"""One measured run: does what its case says and names each phase as it enters it.

    python workload.py '{"kind": "load", ...}' PHASES_FILE WORK_FOLDER

Phases go to PHASES_FILE as lines `seconds rank name`. measure.py starts this and watches it from outside.
"""

import json
import os
import sys
import time

CASE = json.loads(sys.argv[1])
PHASES, WORK = sys.argv[2], sys.argv[3]
RANK = int(os.environ.get("LOCAL_RANK", "0"))
# Long enough for the watcher to see the level of a phase that takes no time.
STAY = 0.6


def enter(name):
    with open(PHASES, "a", encoding="utf-8") as file:
        file.write(f"{time.time()} {RANK} {name}\n")


def stay():
    time.sleep(STAY)


def tokens(count, length, vocabulary):
    import numpy

    return numpy.random.default_rng(7).integers(1, vocabulary, (count, length))


def rows_of(case, vocabulary):
    """Tokenised rows: a list in memory, a Dataset in memory, or a memory-mapped arrow file."""
    from datasets import Dataset, load_from_disk

    count, length = case.get("rows", 64), case["tokens"]
    if case.get("dataset") == "arrow":
        return load_from_disk(os.path.join(WORK, f"rows-{count}-{length}"))
    columns = tokens(count, length, vocabulary)
    if case.get("dataset") == "list":
        return [{"input_ids": row.tolist(), "labels": row.tolist()} for row in columns]
    return Dataset.from_dict({"input_ids": columns, "labels": columns})


def load(case):
    import torch
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(
        os.path.join(WORK, case["model"]), dtype=getattr(torch, case["dtype"]), attn_implementation="sdpa"
    )
    model.config.use_cache = False
    return model


def touch(model):
    """Reads every weight once, as a copy to a device does."""
    for parameter in model.parameters():
        parameter.detach().view(-1).sum()


def leave(model):
    """What a move to a GPU does to host memory: each weight is read, copied through a small buffer and let go."""
    import torch

    staging = torch.empty(2**20, dtype=torch.uint8)
    for parameter in model.parameters():
        for piece in parameter.detach().reshape(-1).view(torch.uint8).split(len(staging)):
            staging[: len(piece)].copy_(piece)
        parameter.data = torch.empty(0, dtype=parameter.dtype)


def collate(rows):
    """A worker that lives for long has seen a full collection, which writes to the header of every object."""
    import gc

    from torch.utils.data import get_worker_info
    from transformers import default_data_collator

    if get_worker_info() is not None:
        gc.collect()
    return default_data_collator(rows)


def adapted(model, case):
    from peft import LoraConfig, get_peft_model

    return get_peft_model(model, LoraConfig(r=case["rank"], target_modules="all-linear", task_type="CAUSAL_LM"))


def train(case):
    from transformers import Trainer, TrainerCallback, TrainingArguments

    enter("data")
    rows = rows_of(case, case["vocabulary"])
    stay()
    enter("load")
    model = load(case)
    if case["method"] == "lora":
        model = adapted(model, case)
    touch(model)
    stay()

    class Phases(TrainerCallback):
        def on_step_begin(self, args, state, control, **kwargs):
            enter("train")

        def on_step_end(self, args, state, control, **kwargs):
            stay()
            enter("between")

        def on_save(self, args, state, control, **kwargs):
            enter("between")

    class Saver(Trainer):
        def _save_checkpoint(self, *arguments, **named):
            enter("save")
            super()._save_checkpoint(*arguments, **named)
            stay()

    workers = case.get("workers", 0)
    arguments = TrainingArguments(
        output_dir=os.path.join(WORK, "out"),
        per_device_train_batch_size=case["batch"],
        max_steps=case["steps"],
        save_strategy="steps" if case.get("save") else "no",
        save_steps=case["steps"],
        optim="adamw_torch_fused",
        max_grad_norm=1.0,
        gradient_checkpointing=case.get("checkpointing", False),
        dataloader_num_workers=workers,
        dataloader_prefetch_factor=case.get("prefetch") if workers else None,
        dataloader_pin_memory=case.get("pin", False),
        use_cpu=True,
        report_to=[],
        disable_tqdm=True,
        logging_strategy="no",
    )
    trainer = Saver(model=model, args=arguments, train_dataset=rows, data_collator=collate, callbacks=[Phases()])
    enter("start")
    trainer.train()
    enter("end")


def merge(case):
    from peft import PeftModel

    enter("load")
    model = load(case)
    touch(model)
    model = PeftModel.from_pretrained(model, os.path.join(WORK, f"{case['model']}-adapter-{case['rank']}"))
    stay()
    enter("merge")
    model = model.merge_and_unload()
    stay()
    enter("save")
    model.save_pretrained(os.path.join(WORK, "merged"))
    stay()
    enter("end")


def main():
    kind = CASE["kind"]
    enter("python")
    stay()
    if kind == "python":
        return
    enter("import")
    import torch

    torch.manual_seed(0)
    if kind == "torch":
        stay()
        return
    import accelerate  # noqa: F401
    import datasets  # noqa: F401
    from peft import LoraConfig  # noqa: F401
    from transformers import Trainer  # noqa: F401
    from trl import SFTTrainer  # noqa: F401

    stay()
    if kind == "load":
        if int(os.environ.get("WORLD_SIZE", "1")) > 1:
            torch.distributed.init_process_group("gloo")
        enter("load")
        model = load(CASE)
        touch(model)
        stay()
        if CASE.get("leave"):
            enter("move")
            leave(model)
            stay()
            enter("moved")
            stay()
        enter("end")
    elif kind == "train":
        train(CASE)
    elif kind == "merge":
        merge(CASE)


if __name__ == "__main__":
    main()
