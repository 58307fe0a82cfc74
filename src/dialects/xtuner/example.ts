import type { Example } from '../dialect.ts';

export const XTUNER_EXAMPLES: readonly Example[] = [
  {
    command: 'xtuner train qlora.py --deepspeed deepspeed_zero2',
    files: {
      'qlora.py': `pretrained_model_name_or_path = 'internlm/internlm2-chat-7b'
max_length = 2048
pack_to_max_length = True
batch_size = 1  # per device
accumulative_counts = 16
optim_type = AdamW
max_norm = 1
model = dict(
    type=SupervisedFinetune,
    llm=dict(
        type=AutoModelForCausalLM.from_pretrained,
        torch_dtype=torch.float16,
        quantization_config=dict(type=BitsAndBytesConfig, load_in_4bit=True, bnb_4bit_quant_type='nf4',
                                 bnb_4bit_use_double_quant=True, bnb_4bit_compute_dtype=torch.float16)),
    lora=dict(type=LoraConfig, r=64, lora_alpha=16, lora_dropout=0.1))
optim_wrapper = dict(type=AmpOptimWrapper, dtype='float16')
`,
    },
  },
  {
    command:
      'torchrun --nproc-per-node 2 xtuner/v1/train/cli/sft.py --load-from Qwen/Qwen3-8B --chat-template qwen3 --dataset a.jsonl --pack-max-length 8192 --global-batch-size 16',
  },
];
