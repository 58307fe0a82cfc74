"""Makes FOLDER/model (a random Llama of 0.3 million parameters with its own tokenizer) and FOLDER/data/train.jsonl, no network.

    python tiny-model.py FOLDER [--rows 64]
"""

import argparse
import json
import os
import random

os.environ.setdefault("HF_HUB_OFFLINE", "1")

CHAT_TEMPLATE = (
    "{% for message in messages %}<|{{ message['role'] }}|> {{ message['content'] }}</s>\n{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|> {% endif %}"
)
WORDS = "river stone lantern quiet harbor seven maple letter window bridge copper morning travel cloud garden echo".split()


def make_rows(count):
    rng = random.Random(7)
    return [{"text": " ".join(rng.choices(WORDS, k=rng.randint(8, 24))) + "."} for _ in range(count)]


def make_tokenizer(rows):
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import PreTrainedTokenizerFast

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=["<pad>", "<s>", "</s>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator((row["text"] for row in rows), trainer)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token="<s>",
        eos_token="</s>",
        pad_token="<pad>",
        chat_template=CHAT_TEMPLATE,
        model_max_length=2048,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("folder")
    parser.add_argument("--rows", type=int, default=64)
    # A large vocabulary makes logits, hence the batch, matter to memory while the model stays small.
    parser.add_argument("--vocab_size", type=int, default=4096)
    args = parser.parse_args()

    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    rows = make_rows(args.rows)
    model_folder = os.path.join(args.folder, "model")
    make_tokenizer(rows).save_pretrained(model_folder)
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=args.vocab_size,
        hidden_size=64,
        intermediate_size=176,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=2048,
        tie_word_embeddings=True,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
    )
    LlamaForCausalLM(config).save_pretrained(model_folder)
    data = os.path.join(args.folder, "data")
    os.makedirs(data, exist_ok=True)
    with open(os.path.join(data, "train.jsonl"), "w", encoding="utf-8") as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)


if __name__ == "__main__":
    main()
