#!/usr/bin/env python3
"""A trainer for the pocket: Python's standard library only. Nothing is learned, nothing is allocated, no GPU is touched.

It takes Hugging Face's flags, prints what the Trainer prints, writes checkpoints laid out as the Trainer lays them out, and
dies as PyTorch dies when its micro batch would need more memory than the card it is told to have. That makes it a stand-in for
trying snug, and for testing anything that stands around a trainer, in seconds and on any machine.

What a step needs, in bytes (the whole formula):

    states       16 x parameters                 fp32 weights, gradients and AdamW's two moments
    a token      checkpointing off:  34 x hidden x layers   (what a layer keeps of a token in 16-bit autocast)
                 checkpointing on:   4 x hidden x layers + 34 x hidden   (each layer's input, one layer in full)
                 the loss, both:     10 x vocabulary        (16-bit logits, their fp32 copy, its gradient)
    step         states + micro batch x row length x a token + 512 MiB CUDA context

Rows are `--max_length` tokens long, but for the sample of `--pocket_long_sample_at`: a row that max_length did not cut (image
tokens, a chat template that adds some), `--pocket_long_sample_factor` times as long; the rest of its micro batch is padded to it.
"""

import argparse
import json
import os
import pickle
import random
import re
import shutil
import struct
import sys
import time
import zipfile

GIB = 1024**3
MIB = 1024**2
CONTEXT_BYTES = 512 * MIB

# Where `--model_name_or_path` is not a folder with a config.json: the shape in snug.yaml.
SHAPE = {
    "hidden_size": 960,
    "num_hidden_layers": 32,
    "intermediate_size": 2560,
    "num_attention_heads": 15,
    "num_key_value_heads": 5,
    "vocab_size": 49152,
}


class OutOfMemoryError(RuntimeError):
    """Printed as PyTorch's own class is, `torch.OutOfMemoryError`."""


OutOfMemoryError.__module__ = "torch"


def read_size(text):
    match = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]i?B)\s*", text)
    if not match:
        raise argparse.ArgumentTypeError(f"not a size: {text!r} (write 10GiB, 600MiB, 24GB)")
    base = 1024 if "i" in match[2] else 1000
    return int(float(match[1]) * base ** ("KMGT".index(match[2][0]) + 1))


def show_size(count):
    """As the allocator prints sizes: two decimals, 1024-based."""
    for unit, name in ((GIB, "GiB"), (MIB, "MiB"), (1024, "KiB")):
        if count >= unit:
            return f"{count / unit:.2f} {name}"
    return f"{count} bytes"


def read_bool(text):
    if text.lower() in ("true", "yes", "1"):
        return True
    if text.lower() in ("false", "no", "0"):
        return False
    raise argparse.ArgumentTypeError(f"not true or false: {text!r}")


def parse_flags(argv):
    # Hugging Face's parser takes `--max-length` for `--max_length`.
    argv = [re.sub(r"^--[\w-]+", lambda flag: "--" + flag[0][2:].replace("-", "_"), token) for token in argv]
    parser = argparse.ArgumentParser(allow_abbrev=False, description=__doc__.split("\n")[0])

    def flag(name, **options):
        parser.add_argument(f"--{name}", **options)

    def switch(name):
        flag(name, type=read_bool, nargs="?", const=True, default=False)

    flag("model_name_or_path", default="pocket-360m")
    flag("per_device_train_batch_size", type=int, default=8)
    flag("gradient_accumulation_steps", type=int, default=1)
    switch("gradient_checkpointing")
    flag("max_length", type=int, default=1024)
    flag("max_steps", type=int, default=40)
    flag("save_steps", type=int, default=10)
    flag("save_total_limit", type=int, default=None)
    flag("logging_steps", type=int, default=10)
    flag("learning_rate", type=float, default=5e-5)
    flag("seed", type=int, default=42)
    flag("output_dir", default="trainer_output")
    flag("resume_from_checkpoint", default=None)
    flag("pocket_vram", type=read_size, default=os.environ.get("POCKET_VRAM", "80GiB"))
    flag("pocket_long_sample_at", type=int, default=0)
    flag("pocket_long_sample_factor", type=float, default=1.6)
    flag("pocket_step_seconds", type=float, default=0.05)
    return parser.parse_args(argv)


class Model:
    def __init__(self, path):
        config = os.path.join(path, "config.json")
        shape = SHAPE
        if os.path.isfile(config):
            with open(config, encoding="utf-8") as file:
                shape = {**SHAPE, **json.load(file)}
        self.hidden, self.layers, self.vocab = (
            shape[key] for key in ("hidden_size", "num_hidden_layers", "vocab_size")
        )
        kept = shape["num_key_value_heads"] / shape["num_attention_heads"]
        attention = self.hidden**2 * (2 + 2 * kept)
        self.parameters = int(
            self.layers * (attention + 3 * self.hidden * shape["intermediate_size"] + 2 * self.hidden)
            + self.vocab * self.hidden
            + self.hidden
        )

    def bytes_per_token(self, checkpointing):
        kept = 4 * self.hidden * self.layers + 34 * self.hidden if checkpointing else 34 * self.hidden * self.layers
        return kept + 10 * self.vocab


class Card:
    """Counts the bytes of one step the way the caching allocator would, and says no as it does."""

    def __init__(self, total):
        self.total = total
        self.allocated = 0

    def allocate(self, count):
        # The allocator asks the driver for segments of whole 2 MiB.
        asked = -(-count // (2 * MIB)) * 2 * MIB
        room = self.total - CONTEXT_BYTES - self.allocated
        if asked <= room:
            self.allocated += asked
            return
        stranded = min(max(room, 0) // 2, self.allocated // 100)
        free = max(room, 0) - stranded
        raise OutOfMemoryError(
            f"CUDA out of memory. Tried to allocate {show_size(asked)}. GPU 0 has a total capacity of "
            f"{show_size(self.total)} of which {show_size(free)} is free. Including non-PyTorch memory, this process has "
            f"{show_size(self.total - free)} memory in use. Of the allocated memory {show_size(self.allocated)} is allocated by "
            f"PyTorch, and {show_size(stranded)} is reserved by PyTorch but unallocated. If reserved but unallocated memory is "
            "large try setting PYTORCH_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  See documentation for "
            "Memory Management  (https://pytorch.org/docs/stable/notes/cuda.html#environment-variables)"
        )


class Trainer:
    def __init__(self, args):
        self.args = args
        self.model = Model(args.model_name_or_path)
        self.card = Card(args.pocket_vram)
        self.global_batch = args.per_device_train_batch_size * args.gradient_accumulation_steps
        self.random = random.Random(args.seed)
        self.step = 0
        self.started_at = 0
        self.samples = 0
        self.history = []

    def load_model(self):
        self.card.allocate(4 * self.model.parameters)

    def row_length(self, step):
        long = step == self.args.pocket_long_sample_at
        return int(self.args.max_length * (self.args.pocket_long_sample_factor if long else 1))

    def training_step(self, step):
        held = self.card.allocated
        for _ in range(self.args.gradient_accumulation_steps):
            self.compute_loss(self.args.per_device_train_batch_size * self.row_length(step))
            self.backward()
            self.card.allocated = held
        if self.states_missing():
            self.optimizer_step()

    def compute_loss(self, tokens):
        self.forward(tokens)
        return self.cross_entropy(tokens)

    def forward(self, tokens):
        per_token = self.model.bytes_per_token(self.args.gradient_checkpointing) - 10 * self.model.vocab
        layers = self.model.layers
        for _ in range(layers):
            self.card.allocate(tokens * per_token // layers)

    def cross_entropy(self, tokens):
        self.card.allocate(tokens * 2 * self.model.vocab)
        self.card.allocate(tokens * 4 * self.model.vocab)
        self.card.allocate(tokens * 4 * self.model.vocab)
        return 2.0

    def backward(self):
        if self.states_missing():
            self.card.allocate(4 * self.model.parameters)

    def states_missing(self):
        """Gradients and moments appear in the first step of a fresh or a resumed process, as in PyTorch."""
        return self.step == self.started_at

    def optimizer_step(self):
        self._init_group()

    def _init_group(self):
        self.card.allocate(4 * self.model.parameters)  # the gradients, kept from here on
        self.card.allocate(8 * self.model.parameters)

    def train(self):
        args = self.args
        say(f"***** Running training *****\n  Instantaneous batch size per device = {args.per_device_train_batch_size}")
        say(f"  Total train batch size (w. parallel, distributed & accumulation) = {self.global_batch}")
        say(f"  Gradient Accumulation steps = {args.gradient_accumulation_steps}")
        say(f"  Total optimization steps = {args.max_steps:,}\n  Number of trainable parameters = {self.model.parameters:,}")
        if args.resume_from_checkpoint not in (None, "", "None", "False", "false"):
            self.resume(args.resume_from_checkpoint)
        self.started_at = self.step
        self.load_model()
        begun = time.monotonic()
        while self.step < args.max_steps:
            self.training_step(self.step + 1)
            time.sleep(args.pocket_step_seconds)
            self.step += 1
            self.samples += self.global_batch
            self.show_progress(time.monotonic() - begun)
            if self.step % args.logging_steps == 0:
                self.log()
            if self.step % args.save_steps == 0 or self.step == args.max_steps:
                self.save_checkpoint()
        sys.stderr.write("\n")
        self.write_results()

    def show_progress(self, seconds):
        done, total = self.step, self.args.max_steps
        rate = (done - self.started_at) / max(seconds, 1e-6)
        filled = 10 * done // total
        left = (total - done) / max(rate, 1e-6)
        sys.stderr.write(
            f"\r{100 * done // total:3d}%|{'█' * filled}{' ' * (10 - filled)}| {done}/{total} "
            f"[{seconds // 60:02.0f}:{seconds % 60:02.0f}<{left // 60:02.0f}:{left % 60:02.0f}, {rate:5.2f}it/s]"
        )
        sys.stderr.flush()

    def log(self):
        entry = {
            "loss": round(2.5 / (1 + self.step / 40) + self.random.random() / 50, 4),
            "grad_norm": round(0.8 + self.random.random() / 10, 4),
            "learning_rate": self.args.learning_rate * (1 - self.step / self.args.max_steps),
            "epoch": round(self.step / self.args.max_steps, 2),
        }
        self.history.append({**entry, "step": self.step})
        print(entry, flush=True)

    def state(self):
        return {
            "best_global_step": None,
            "best_metric": None,
            "best_model_checkpoint": None,
            "epoch": self.step / self.args.max_steps,
            "eval_steps": 500,
            "global_step": self.step,
            "is_hyper_param_search": False,
            "is_local_process_zero": True,
            "is_world_process_zero": True,
            "log_history": self.history,
            "logging_steps": self.args.logging_steps,
            "max_steps": self.args.max_steps,
            "num_input_tokens_seen": 0,
            "num_train_epochs": 1,
            "save_steps": self.args.save_steps,
            "stateful_callbacks": {"PocketSamples": {"samples_seen": self.samples}},
            "total_flos": 0.0,
            "train_batch_size": self.args.per_device_train_batch_size,
            "trial_name": None,
            "trial_params": None,
        }

    def save_checkpoint(self):
        folder = os.path.join(self.args.output_dir, f"checkpoint-{self.step}")
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        write_safetensors(os.path.join(folder, "model.safetensors"), {"model.norm.weight": [1.0] * 8})
        for name in ("optimizer.pt", "scheduler.pt", "rng_state.pth", "training_args.bin"):
            write_torch_zip(os.path.join(folder, name), {"step": self.step})
        with open(os.path.join(folder, "trainer_state.json"), "w", encoding="utf-8") as file:
            json.dump(self.state(), file, indent=2)
        if self.args.save_total_limit:
            for _, old in checkpoints_in(self.args.output_dir)[: -self.args.save_total_limit]:
                shutil.rmtree(old)

    def resume(self, path):
        if path in ("True", "true"):
            found = checkpoints_in(self.args.output_dir)
            if not found:
                raise ValueError(f"No valid checkpoint found in output directory ({self.args.output_dir})")
            path = found[-1][1]
        try:
            with open(os.path.join(path, "trainer_state.json"), encoding="utf-8") as file:
                state = json.load(file)
        except OSError:
            raise ValueError(f"Can't find a valid checkpoint at {path}") from None
        self.step = state["global_step"]
        self.samples = state["stateful_callbacks"]["PocketSamples"]["samples_seen"]
        self.history = state["log_history"]
        say("  Continuing training from checkpoint, will skip to saved global_step")
        say(f"  Continuing training from global step {self.step}")

    def write_results(self):
        results = {
            "global_step": self.step,
            "resumed_from_step": self.started_at,
            "per_device_train_batch_size": self.args.per_device_train_batch_size,
            "gradient_accumulation_steps": self.args.gradient_accumulation_steps,
            "gradient_checkpointing": self.args.gradient_checkpointing,
            "global_batch": self.global_batch,
            "samples_seen": self.samples,
        }
        with open(os.path.join(self.args.output_dir, "train_results.json"), "w", encoding="utf-8") as file:
            json.dump(results, file, indent=2)
        print(f"***** train metrics *****\n{json.dumps(results)}", flush=True)


def say(text):
    """The Trainer's own log goes to stderr."""
    print(text, file=sys.stderr, flush=True)


def checkpoints_in(folder):
    names = os.listdir(folder) if os.path.isdir(folder) else []
    found = (re.fullmatch(r"checkpoint-(\d+)", name) for name in names)
    return sorted((int(match[1]), os.path.join(folder, match[0])) for match in found if match)


def write_safetensors(path, tensors):
    """Length of the header (8 bytes, little-endian), the header as JSON, the tensors."""
    header, data = {"__metadata__": {"format": "pt"}}, b""
    for name, values in tensors.items():
        packed = struct.pack(f"<{len(values)}f", *values)
        header[name] = {"dtype": "F32", "shape": [len(values)], "data_offsets": [len(data), len(data) + len(packed)]}
        data += packed
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def write_torch_zip(path, value):
    """torch.save's container: a zip with the pickle and the format's version."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        stem = os.path.splitext(os.path.basename(path))[0]
        archive.writestr(f"{stem}/data.pkl", pickle.dumps(value, protocol=2))
        archive.writestr(f"{stem}/byteorder", "little")
        archive.writestr(f"{stem}/version", "3\n")


def main():
    args = parse_flags(sys.argv[1:])
    print("pocket trainer: Python standard library only, nothing is learned", flush=True)
    os.makedirs(args.output_dir, exist_ok=True)
    trainer = Trainer(args)
    trainer.train()


if __name__ == "__main__":
    main()
