import type { FloatDType } from '../../core/index.ts';
import type { Lora, LossImpl, Method, Quantization, SettingName } from '../../spec/index.ts';
import type { FileValue, Layer, StackView, Written } from '../dialect.ts';
import { cannot, together, wrote } from '../hf-argparser/written.ts';
import { TRAINING_ARGUMENT_NAMES } from '../hf-trainer/fields.ts';
import { withoutSearch } from '../hf-trainer/write.ts';
import { fieldSetter, type SetField, writeTrainingArguments } from '../hf-trainer/write-arguments.ts';
import { trlGrammar } from './fields.ts';
import { brokenGroups } from './generation-groups.ts';
import { GENERATES, LENGTH_KEYS, OFFLOADS } from './objective.ts';
import type { TrlDetail } from './read.ts';
import { writeTargets } from './target-modules.ts';

const DTYPE_NAMES: Readonly<Record<FloatDType, string>> = { fp32: 'float32', bf16: 'bfloat16', fp16: 'float16' };

/** Writes into the YAML where the launch has one, into the flag where a flag holds the value. */
export function writeTrl(
  layer: Layer<TrlDetail>,
  setting: SettingName,
  to: unknown,
  { spec }: StackView,
): Written | undefined {
  const { detail } = layer.reading;
  const { values, start } = detail;
  const broken = GENERATES.has(start.command) ? brokenGroups(values, spec, setting, to) : undefined;
  if (broken) return broken;
  const set = fieldSetter(values, (key) => permitted(detail, key));
  switch (setting) {
    case 'maxLength':
      if (GENERATES.has(start.command)) return set('max_completion_length', to as number);
      return aliased(detail, LENGTH_KEYS, to as number);
    case 'attnImplementation':
      return set('attn_implementation', to as string);
    case 'dtype':
      return aliased(detail, ['dtype', 'torch_dtype'], to === 'auto' ? 'auto' : DTYPE_NAMES[to as FloatDType]);
    case 'packing':
      return start.command === 'sft' ? set('packing', to as boolean) : cannot(`trl ${start.command} does not pack`);
    case 'mixedPrecision':
      // Without bf16 and fp16 of its own the trainer takes what `trl` tells accelerate.
      if (to === 'no' && values.find('mixed_precision')) return cannot('accelerate is told mixed_precision besides');
      return writeTrainingArguments(values, set, setting, to);
    case 'lossImpl':
      return writeLoss(detail, set, to as LossImpl);
    case 'method':
      return writeMethod(detail, set, to as Method);
    case 'quantization':
      return writeQuantization(detail, set, to as Quantization | null);
    case 'lora':
      return writeLora(detail, set, to as Lora | null);
    case 'resumeFromCheckpoint': {
      const resume = layer.reading.resume;
      return resume?.kind === 'supported'
        ? set('resume_from_checkpoint', to as FileValue)
        : cannot(resume?.reason ?? 'it cannot resume');
    }
    default:
      return withoutSearch(
        values,
        setting,
        writeTrainingArguments(
          values,
          set,
          setting,
          to,
          OFFLOADS.has(start.command) ? 'activation_offloading' : undefined,
        ),
      );
  }
}

/** TRL's own scripts take every field; somebody's script takes those of the classes its text names. */
function permitted({ start }: TrlDetail, key: string): true | string {
  if (start.form !== 'script' || start.script.text === undefined || start.script.mentions(key)) return true;
  const { mentions, path } = start.script;
  const parses = mentions('TrlParser') || mentions('HfArgumentParser');
  if (!parses) return `${path} does not parse the config classes of TRL`;
  if (TRAINING_ARGUMENT_NAMES.has(key)) return true;
  const isModelField = !ownFields(start.command).has(key);
  return !isModelField || mentions('ModelConfig') ? true : `${path} does not take ModelConfig, which has ${key}`;
}

const MODEL_FIELDS = new Set([
  'dtype',
  'attn_implementation',
  'use_peft',
  'use_dora',
  'lora_r',
  'lora_alpha',
  'lora_dropout',
  'lora_target_modules',
  'lora_modules_to_save',
  'load_in_4bit',
  'load_in_8bit',
  'bnb_4bit_quant_type',
  'use_bnb_nested_quant',
]);

function ownFields(command: TrlDetail['start']['command']): ReadonlySet<string> {
  const { fields } = trlGrammar(command, false);
  return new Set([...fields.keys()].filter((key) => !MODEL_FIELDS.has(key)));
}

/** The name that was used, the current one where none was. */
function aliased(detail: TrlDetail, keys: readonly string[], value: FileValue): Written {
  const found = detail.values.find(...keys);
  const key = found?.key ?? keys[0]!;
  const allowed = found ? true : permitted(detail, key);
  return allowed === true ? detail.values.assign(key, value) : cannot(allowed);
}

/** Liger and the chunked loss exclude each other: TRL raises when both are asked for. */
function writeLoss({ values, start, version }: TrlDetail, set: SetField, to: LossImpl): Written {
  const liger = values.find('use_liger_kernel', 'use_liger') ? set('use_liger_kernel', false) : wrote();
  if (start.command !== 'sft') {
    if (to === 'chunked') return cannot(`trl ${start.command} has no chunked loss`);
    return to === 'fused' ? set('use_liger_kernel', true) : liger;
  }
  const type = values.find('loss_type');
  if (to === 'fused') return together(set('use_liger_kernel', true), type ? set('loss_type', 'nll') : wrote());
  const wanted = to === 'chunked' ? 'chunked_nll' : 'nll';
  if (to === 'chunked' && version.sftLoss !== 'chunked') return cannot('this version of TRL has no chunked loss');
  return together(liger, type || to !== version.sftLoss ? set('loss_type', wanted) : wrote());
}

/** Turns a switch off only where it stands somewhere. */
const off = ({ values }: TrlDetail, set: SetField, key: string): Written =>
  values.find(key) ? set(key, false) : wrote();

function writeMethod(detail: TrlDetail, set: SetField, to: Method): Written {
  const unquantized = [off(detail, set, 'load_in_4bit'), off(detail, set, 'load_in_8bit')];
  switch (to) {
    case 'full':
      return together(off(detail, set, 'use_peft'), ...unquantized);
    case 'lora':
      return together(set('use_peft', true), off(detail, set, 'use_dora'), ...unquantized);
    case 'dora':
      return together(set('use_peft', true), set('use_dora', true), ...unquantized);
    case 'qlora':
      return isOn(detail, 'load_in_8bit')
        ? set('use_peft', true)
        : together(set('use_peft', true), set('load_in_4bit', true), off(detail, set, 'load_in_8bit'));
    default:
      return cannot(`TRL's command line has no ${to}`);
  }
}

const isOn = ({ values }: TrlDetail, key: string): boolean =>
  /^(?:true|yes|t|y|1)$/i.test(String(values.find(key)?.raw ?? false));

/** The compute dtype is the load dtype, so that one is written with it. */
function writeQuantization(detail: TrlDetail, set: SetField, to: Quantization | null): Written {
  if (to === null) return together(off(detail, set, 'load_in_4bit'), off(detail, set, 'load_in_8bit'));
  if (to.upcastRestToFp32 !== detail.version.kbitPreparation) {
    return cannot(
      to.upcastRestToFp32
        ? 'TRL does not prepare a quantised model for k-bit training'
        : 'this version of TRL keeps everything that is not quantised in fp32',
    );
  }
  const dtype = aliased(detail, ['dtype', 'torch_dtype'], DTYPE_NAMES[to.computeDtype]);
  // A quantised model trains only through an adapter.
  const peft = isOn(detail, 'use_peft') ? wrote() : set('use_peft', true);
  if (to.bits === 8) return together(peft, set('load_in_8bit', true), off(detail, set, 'load_in_4bit'));
  const { values } = detail;
  const type =
    values.find('bnb_4bit_quant_type') || to.quantType !== 'nf4' ? set('bnb_4bit_quant_type', to.quantType) : wrote();
  const nested =
    values.find('use_bnb_nested_quant') || to.doubleQuant ? set('use_bnb_nested_quant', to.doubleQuant) : wrote();
  return together(peft, set('load_in_4bit', true), off(detail, set, 'load_in_8bit'), type, nested, dtype);
}

function writeLora(detail: TrlDetail, set: SetField, to: Lora | null): Written {
  if (to === null) return off(detail, set, 'use_peft');
  const { values } = detail;
  const targets = to.targetModules;
  if (targets === 'default' && values.find('lora_target_modules')) {
    return cannot('lora_target_modules stands in the launch and would have to be taken out');
  }
  const words: FileValue | undefined = targets === 'default' ? undefined : writeTargets(targets);
  const saved = values.find('lora_modules_to_save') || to.modulesToSave.length > 0;
  if (saved && to.modulesToSave.length === 0)
    return cannot('lora_modules_to_save would have to be taken out of the launch');
  return together(
    set('use_peft', true),
    set('lora_r', to.r),
    set('lora_alpha', to.loraAlpha),
    set('lora_dropout', to.loraDropout),
    words === undefined ? wrote() : set('lora_target_modules', words),
    saved ? set('lora_modules_to_save', [...to.modulesToSave]) : wrote(),
  );
}
