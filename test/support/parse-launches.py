"""Parses launches with the real tools' own parsers, one JSON object a line in and out; nothing is trained."""

import json
import os
import sys
from dataclasses import dataclass, field
from typing import Optional


@dataclass
class ModelArguments:
    """The fields a script of somebody's declares beside TrainingArguments."""

    model_name_or_path: Optional[str] = field(default=None)
    dtype: Optional[str] = field(default=None)
    attn_implementation: Optional[str] = field(default=None)
    block_size: Optional[int] = field(default=None)
    use_lora: bool = field(default=False)
    lora_r: int = field(default=8)


def plain(values):
    return {key: value for key, value in values.items() if isinstance(value, (str, int, float, bool, list, dict, type(None)))}


def parse_accelerate(argv):
    from accelerate.commands.launch import _validate_launch_command, launch_command_parser

    args = launch_command_parser().parse_args(argv)
    args, _, _ = _validate_launch_command(args)
    return plain(vars(args)), [args.training_script, *args.training_script_args]


def parse_torchrun(argv):
    from torch.distributed.run import get_args_parser

    args = get_args_parser().parse_args(argv)
    return plain(vars(args)), [args.training_script, *args.training_script_args]


def parse_trl(command, argv, strict):
    from trl import DPOConfig, GRPOConfig, ModelConfig, SFTConfig, ScriptArguments, TrlParser, get_peft_config

    config = {"sft": SFTConfig, "dpo": DPOConfig, "grpo": GRPOConfig}[command]
    parser = TrlParser((ScriptArguments, config, ModelConfig))
    # On a machine without a GPU bf16 is taken only where the CPU is asked for.
    parsed = parser.parse_args_and_config([*argv, "--use_cpu", "true"], fail_with_unknown_args=strict)
    _, training, model = parsed[:3]
    out = {**plain(vars(model)), **plain(training.to_dict())}
    peft = get_peft_config(model)
    out["peft"] = None if peft is None else plain({"r": peft.r, "lora_alpha": peft.lora_alpha})
    return out


def parse_hf(argv):
    from transformers import HfArgumentParser, TrainingArguments

    parser = HfArgumentParser((ModelArguments, TrainingArguments))
    if len(argv) == 1 and argv[0].endswith(".json"):
        with open(argv[0]) as file:
            values = {**json.load(file), "use_cpu": True, "fsdp": False}
        model, training = parser.parse_dict(values, allow_extra_keys=False)
    else:
        model, training = parser.parse_args_into_dataclasses([*argv, "--use_cpu", "true"])
    return {**plain(vars(model)), **plain(training.to_dict())}


def parse(argv):
    """The values of the launcher and those of the trainer."""
    launcher = {}
    if argv[0] == "accelerate":
        launcher, argv = parse_accelerate(argv[2:])
    elif argv[0] == "torchrun":
        launcher, argv = parse_torchrun(argv[1:])
    elif argv[0] == "python":
        argv = argv[1:]
    if argv[0] == "trl":
        return launcher, parse_trl(argv[1], argv[2:], False)
    name = os.path.basename(argv[0]).removesuffix(".py")
    if name in ("sft", "dpo", "grpo"):
        # A recipe may be written for a release that spelled its keys otherwise.
        return launcher, parse_trl(name, argv[1:], "trl/scripts/" in argv[0])
    return launcher, parse_hf(argv[1:])


def main():
    real, sys.stdout = sys.stdout, sys.stderr
    for line in sys.stdin:
        job = json.loads(line)
        os.chdir(job["cwd"])
        try:
            launcher, trainer = parse(job["argv"])
            answer = {"id": job["id"], "launcher": launcher, "trainer": trainer}
        except (Exception, SystemExit) as failure:
            answer = {"id": job["id"], "error": f"{type(failure).__name__}: {failure}"}
        real.write(json.dumps(answer, default=str) + "\n")
        real.flush()


main()
