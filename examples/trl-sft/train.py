"""Supervised fine-tuning with TRL: LoRA, QLoRA or full, by what the config says.

    python train.py --config sft-lora.yaml
    accelerate launch train.py --config sft-full.yaml

Needs: pip install trl peft (and bitsandbytes for sft-qlora.yaml).
"""

from datasets import load_dataset
from trl import ModelConfig, ScriptArguments, SFTConfig, SFTTrainer, TrlParser, get_peft_config, get_quantization_config


def main(script: ScriptArguments, training: SFTConfig, model: ModelConfig):
    training.model_init_kwargs = {
        "revision": model.model_revision,
        "attn_implementation": model.attn_implementation,
        "dtype": model.dtype,
    }
    dataset = load_dataset(script.dataset_name, name=script.dataset_config)
    trainer = SFTTrainer(
        model=model.model_name_or_path,
        args=training,
        train_dataset=dataset[script.dataset_train_split],
        eval_dataset=dataset[script.dataset_test_split] if training.eval_strategy != "no" else None,
        quantization_config=get_quantization_config(model),
        peft_config=get_peft_config(model),
    )
    # Without this argument a retry would start over: the `trl sft` command has no way to say it.
    trainer.train(resume_from_checkpoint=training.resume_from_checkpoint)
    trainer.save_model(training.output_dir)
    trainer.save_state()


if __name__ == "__main__":
    parser = TrlParser((ScriptArguments, SFTConfig, ModelConfig))
    main(*parser.parse_args_and_config())
