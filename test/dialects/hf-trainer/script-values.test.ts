import { describe, expect, it } from 'vitest';
import { read, rewrite, said, words } from '../phrase-book.ts';

const own = `
import torch
from transformers import AutoModelForCausalLM, Trainer, TrainingArguments
# per_device_train_batch_size=99
MODEL = "acme/otter-3b"
BATCH = 6
model = AutoModelForCausalLM.from_pretrained(MODEL, torch_dtype=torch.bfloat16, attn_implementation="eager")
args = TrainingArguments(
    output_dir="runs/o#1",
    per_device_train_batch_size=BATCH,
    gradient_accumulation_steps=2 * 2,
    gradient_checkpointing=True,
    gradient_checkpointing_kwargs={"use_reentrant": True},
    optim="adafactor",  # small
    bf16=True,
    learning_rate=2e-4,
)
`;

describe('a script without flags', () => {
  const reading = read('python go.py', { files: { 'go.py': own }, gpus: 1 });

  it('says in its text what it trains', () => {
    expect(reading.stack.map((entry) => entry.dialect)).toEqual(['python', 'hf-trainer']);
    expect(
      said(
        reading,
        'modelNameOrPath',
        'dtype',
        'attnImplementation',
        'perDeviceTrainBatchSize',
        'gradientAccumulationSteps',
        'gradientCheckpointing',
        'optim',
        'mixedPrecision',
        'outputDir',
        'method',
      ),
    ).toEqual({
      modelNameOrPath: '"acme/otter-3b" <- go.py:7',
      dtype: '"bf16" <- go.py:7',
      attnImplementation: '"eager" <- go.py:7',
      perDeviceTrainBatchSize: '6 <- go.py:10',
      // An expression is not worked out, and the default would be a guess.
      gradientAccumulationSteps: 'null <- go.py:11',
      gradientCheckpointing: '{"everyNLayers":1,"offload":false,"enabled":true,"useReentrant":true} <- go.py:12',
      optim: '"adafactor" <- go.py:14',
      mixedPrecision: '"bf16" <- go.py:15',
      outputDir: '"runs/o#1" <- go.py:9',
      method: '"full" <- default transformers 5.17',
    });
  });

  it('is not rewritten, and takes no flags', () => {
    expect(reading.writable('perDeviceTrainBatchSize', 2)).toBe(
      'per_device_train_batch_size stands in go.py:10, and a script is not rewritten',
    );
    expect(reading.writable('perDeviceEvalBatchSize', 2)).toBe('go.py takes no flags');
    expect(reading.resume).toEqual({ kind: 'unsupported', reason: 'go.py takes no flags' });
  });

  it('goes on by itself where it says so', () => {
    const text = `${own}\ntrainer.train(resume_from_checkpoint=True)\n`;
    const again = read('python go.py', { files: { 'go.py': text }, gpus: 1 });
    expect(again.resume.kind).toBe('supported');
    expect(rewrite(again, {}, { resumeFrom: 'runs/o/checkpoint-3' }).argv).toEqual(words('python go.py'));
  });

  it('brings its adapter and quantization along', () => {
    const text = `${own}
from peft import LoraConfig, get_peft_model, prepare_model_for_kbit_training
bnb = BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_use_double_quant=True, bnb_4bit_compute_dtype=torch.float16)
config = LoraConfig(r=24, target_modules=["q_proj", "v_proj"])
`;
    const { spec } = read('python go.py', { files: { 'go.py': text }, gpus: 1 });
    expect([spec.method?.value, spec.lora?.value, spec.quantization?.value]).toEqual([
      'qlora',
      {
        r: 24,
        loraAlpha: 8,
        loraDropout: 0,
        targetModules: ['q_proj', 'v_proj'],
        adapterDtype: 'fp32',
        modulesToSave: [],
      },
      { bits: 4, quantType: 'nf4', doubleQuant: true, computeDtype: 'fp16', upcastRestToFp32: true },
    ]);
  });

  it('may use TRL', () => {
    const text = `
from trl import SFTConfig, SFTTrainer
trainer = SFTTrainer(model="acme/otter-3b", args=SFTConfig(max_length=700, packing=True))
`;
    const trl = read('python go.py', { files: { 'go.py': text }, gpus: 1 });
    expect(said(trl, 'modelNameOrPath', 'maxLength', 'packing', 'dtype', 'gradientCheckpointing')).toMatchObject({
      modelNameOrPath: '"acme/otter-3b" <- go.py:3',
      maxLength: '700 <- go.py:3',
      packing: 'true <- go.py:3',
      dtype: '"fp32" <- default trl 1.13',
    });
    expect(trl.spec.gradientCheckpointing?.value?.enabled).toBe(true);
  });

  it('says nothing where two calls could be meant', () => {
    const text = `${own}\nother = TrainingArguments(per_device_train_batch_size=3)\n`;
    const { spec } = read('python go.py', { files: { 'go.py': text }, gpus: 1 });
    expect(spec.perDeviceTrainBatchSize?.value).toBeNull();
  });
});

describe('a script with flags of its own', () => {
  const argparse = `
from transformers import TrainingArguments
p = argparse.ArgumentParser()
p.add_argument("--per_device_train_batch_size", type=int, default=3)
p.add_argument('--max-length', default=640, help="tokens, (all of them)")
args = TrainingArguments(per_device_train_batch_size=p.parse_args().per_device_train_batch_size)
`;
  const dataclass = `
from transformers import HfArgumentParser, TrainingArguments
@dataclass
class Own(TrainingArguments):
    optim: str = field(default="adafactor")
    model_max_length: int = field(
        default=896, metadata={"help": "rows"},
    )
    lora_r: Optional[int] = None
HfArgumentParser(Own)
`;

  it('has the defaults that it declares, which a flag beats', () => {
    const files = { 'go.py': argparse };
    expect(said(read('python go.py', { files, gpus: 1 }), 'perDeviceTrainBatchSize', 'maxLength')).toEqual({
      perDeviceTrainBatchSize: '3 <- go.py:4',
      maxLength: '640 <- go.py:5',
    });
    const given = read('python go.py --per_device_train_batch_size 5', { files, gpus: 1 });
    expect(said(given, 'perDeviceTrainBatchSize').perDeviceTrainBatchSize).toBe('5 <- argv[3]');
  });

  it('has those of its dataclasses', () => {
    const reading = read('python go.py --do_train', { files: { 'go.py': dataclass }, gpus: 1 });
    expect(said(reading, 'optim', 'maxLength', 'method')).toEqual({
      optim: '"adafactor" <- go.py:5',
      maxLength: '896 <- go.py:6',
      method: '"full" <- default transformers 5.17',
    });
  });

  it('may name its flags as it likes', () => {
    const text = `
p = argparse.ArgumentParser()
p.add_argument("--batch", type=int, default=7)
p.add_argument("--base", required=True)
a = p.parse_args()
model = AutoModelForCausalLM.from_pretrained(a.base)
args = TrainingArguments(per_device_train_batch_size=a.batch, gradient_accumulation_steps=4, optim=pick())
`;
    const reading = read('python go.py --base acme/otter-3b', { files: { 'go.py': text }, gpus: 1 });
    expect(said(reading, 'modelNameOrPath', 'perDeviceTrainBatchSize', 'gradientAccumulationSteps', 'optim')).toEqual({
      modelNameOrPath: '"acme/otter-3b" <- argv[3]',
      perDeviceTrainBatchSize: '7 <- go.py:3',
      gradientAccumulationSteps: '4 <- go.py:7',
      optim: 'null <- go.py:7',
    });
    expect(reading.unread).toEqual([]);
    expect(rewrite(reading, { perDeviceTrainBatchSize: 2 }).argv.slice(2)).toEqual(
      words('--base acme/otter-3b --batch 2'),
    );
    expect(reading.writable('gradientAccumulationSteps', 8)).toMatch(/go.py:7, and a script is not rewritten/);
  });

  it('is told by the flags that it has', () => {
    const reading = read('python go.py', { files: { 'go.py': argparse }, gpus: 1 });
    const fitted = rewrite(reading, { perDeviceTrainBatchSize: 1, maxLength: 320 });
    expect(fitted.argv).toEqual(words('python go.py --per_device_train_batch_size 1 --max_length 320'));
    expect(reading.writable('gradientAccumulationSteps', 4)).toBe('go.py has no --gradient_accumulation_steps');
  });
});
