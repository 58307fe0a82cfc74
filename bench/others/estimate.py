"""What other estimators say of traced steps. JSON lines of steps on stdin, JSON lines {id, tool, version, bytes | refused} on stdout.

Every tool is called through its own functions and given what its users would have: config.json, the hub's parameter count where it
asks for one, its own words for the method. Its allowance for the CUDA context and fragmentation is taken off where it states one as
a term, since a traced step has neither.
"""

import contextlib
import io
import json
import os
import sys
import tempfile
import warnings
from importlib.metadata import version
from pathlib import Path

os.environ["HF_HUB_OFFLINE"] = "1"
warnings.simplefilter("ignore")

GIB = 2**30
MIB = 2**20
ATTENTION = ["q_proj", "k_proj", "v_proj", "o_proj"]
LINEAR = [*ATTENTION, "gate_proj", "up_proj", "down_proj"]


class Refused(Exception):
    """The tool does not claim to estimate such a step, or says no."""


def precision_of(row):
    return row.get("amp") or row["dtype"]


def optimizer_of(row, names):
    """The tool's own word for the step's optimizer; `names` by transformers' name for it, less how torch runs it."""
    name = row["optim"].removesuffix("_fused").removesuffix("_torch")
    if name not in names:
        raise Refused(f"optimizer {row['optim']}")
    return names[name]


def targets_of(row):
    targets = row.get("targets", "all-linear")
    if targets == "all-linear":
        return LINEAR
    if targets and set(targets) <= set(LINEAR):
        return list(targets)
    raise Refused(f"LoRA on {targets}")


def fitcheck_llm(row):
    from fitcheck import config_parser
    from fitcheck.estimator import TrainingConfig, estimate
    from fitcheck.gpu_db import get_gpu

    optimizer = optimizer_of(row, {"adamw": "adamw", "adamw_8bit": "adam8bit", "sgd": "sgd"})
    if row.get("peft") or row.get("class", "causal") != "causal":
        raise Refused("not a LoRA or full fine-tune of a causal language model")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "config.json")
        path.write_text(json.dumps(row["config"]))
        config_parser.hf_hub_download = lambda **_: str(path)
        config_parser._reported_param_count = lambda *_: row["params"]
        model = config_parser.fetch_model_config(row["arch"])
    report = estimate(
        model,
        TrainingConfig(
            precision=precision_of(row),
            quantization="nf4" if row["method"] == "qlora" else "none",
            double_quant=bool(row.get("double_quant")) and row["method"] == "qlora",
            optimizer=optimizer,
            # States have the parameters' dtype in PyTorch: fp32 under autocast and for adapters.
            optimizer_dtype="bf16" if row["method"] == "full" and row["dtype"] != "fp32" else "fp32",
            batch_size=row["batch"],
            seq_len=row["seq"],
            lora_rank=None if row["method"] == "full" else row["rank"],
            lora_targets=LINEAR if row["method"] == "full" else targets_of(row),
            grad_checkpoint=row["ckpt"],
            flash_attn=row.get("attn", "sdpa") != "eager",
        ),
        get_gpu("a100-80"),
    )
    return (report.total_mib - report.overhead_mib) * MIB


def ftuneai(row):
    from ftuneai import hub
    from ftuneai.core.memory import MemoryEstimator
    from ftuneai.core.models import FineTuneMethod, LoRATarget, OptimizerType, Quantization, TrainingConfig

    names = {kind.value: kind for kind in OptimizerType}
    optimizer = optimizer_of(row, {**names, "adamw_8bit": OptimizerType.ADAM_8BIT})
    if row.get("peft") or row.get("class", "causal") != "causal":
        raise Refused("not a LoRA, QLoRA or full fine-tune of a causal language model")
    hub.fetch_model_config = lambda _: row["config"]
    target = LoRATarget.ATTENTION
    if row["method"] != "full":
        names = set(targets_of(row))
        kinds = {
            frozenset(["q_proj", "v_proj"]): LoRATarget.ATTENTION,
            frozenset(ATTENTION): LoRATarget.ATTENTION_ALL,
            frozenset(LINEAR): LoRATarget.ALL_LINEAR,
        }
        if frozenset(names) not in kinds:
            raise Refused(f"LoRA on {sorted(names)}")
        target = kinds[frozenset(names)]
    breakdown = MemoryEstimator(
        hub.resolve_model_from_hub(f"models/{row['arch']}"),
        TrainingConfig(
            model=row["arch"],
            method=FineTuneMethod(row["method"]),
            quantization=Quantization.INT4 if row["method"] == "qlora" else Quantization.NONE,
            batch_size=row["batch"],
            seq_length=row["seq"],
            gradient_checkpointing=row["ckpt"],
            optimizer=optimizer,
            lora_rank=row.get("rank") or 16,
            lora_target=target,
            flash_attention=row.get("attn", "sdpa") != "eager",
        ),
    ).estimate()
    return (breakdown.total_gb - breakdown.overhead_gb) * GIB


def gpu_estimator(row):
    from gpu_estimator.estimator import GPUEstimator

    optimizer = optimizer_of(row, {"adamw": "adamw", "sgd": "sgd"})
    if row["method"] != "full" or row.get("peft"):
        raise Refused("full fine-tuning only")
    result = GPUEstimator().estimate(
        row["params"],
        batch_size=row["batch"],
        sequence_length=row["seq"],
        precision=precision_of(row),
        optimizer=optimizer,
        gpu_memory_gb=10_000,
        gradient_checkpointing=row["ckpt"],
    )
    # Its factor of 1.2 is for "framework and other memory usage".
    return result.total_memory_gb / 1.2 * GIB


def accelerate_estimate(row):
    from accelerate.commands.estimate import estimate_training_usage

    optimizer_of(row, {"adamw": "adamw"})
    if row["method"] != "full" or row.get("peft"):
        raise Refused("full fine-tuning only")
    names = {"fp32": "float32", "bf16": "bfloat16", "fp16": "float16"}
    # The command hands the size in fp32 over, whatever the precision asked for.
    usage = estimate_training_usage(row["params"] * 4, names[precision_of(row)])
    return max(usage.values())


TOOLS = {
    "accelerate": ("accelerate estimate-memory", accelerate_estimate),
    "fitcheck-llm": ("fitcheck-llm", fitcheck_llm),
    "ftuneai": ("ftuneai", ftuneai),
    "gpu-estimator": ("gpu-estimator", gpu_estimator),
}


def main():
    rows = [json.loads(line) for line in sys.stdin if line.strip()]
    for package, (tool, estimate) in TOOLS.items():
        for row in rows:
            answer = {"id": row["id"], "tool": tool, "version": version(package)}
            try:
                with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
                    answer["bytes"] = round(estimate(row))
            except (Refused, ValueError, RuntimeError) as error:
                answer["refused"] = str(error).splitlines()[0]
            print(json.dumps(answer))


if __name__ == "__main__":
    main()
