import { type Diagnostic, warning } from '../../core/index.ts';
import { formatOrigin, type Lora, type Setting, type TrainingSpec } from '../../spec/index.ts';
import type { FileValue } from '../dialect.ts';
import { orNull, toBoolean, toFloatDType, toInteger, toNumber, toText, toWords } from '../hf-argparser/convert.ts';
import type { SettingReader } from '../hf-argparser/settings.ts';
import { FOUNDRY } from './settings.ts';

const ATTENTIONS = ['eager', 'sdpa', 'flash_attention_2', 'flash_attention_3', 'flex_attention'] as const;

/**
 * Model, adapter, dtype of the weights and attention. Weights are loaded in fp32 whatever the checkpoint has, and attention is
 * eager unless it is told. Source: llmfoundry/models/hf/hf_base.py, utils/builders.py `build_composer_model`.
 */
export function readModel(reader: SettingReader): {
  readonly spec: TrainingSpec;
  readonly diagnostics: readonly Diagnostic[];
} {
  const name = reader.given(['model.name'], toText);
  const path = reader.given(['model.pretrained_model_name_or_path'], toText);
  const weights = reader.given(['model.master_weights_dtype'], orNull(toFloatDType));
  reader.note('model.config_overrides', 'model.init_device');
  const own = name?.value === 'mpt_causal_lm';
  const causal = own || name === undefined || name.value === 'hf_causal_lm';
  const dtype = weights?.value && weights.value !== 'auto' ? weights.value : 'fp32';
  return {
    spec: {
      ...(path ? { modelNameOrPath: path } : {}),
      ...(own ? mptConfig(reader) : {}),
      objective: {
        value: name?.value === 'hf_t5' ? 'seq2seq' : causal ? 'sft' : null,
        origin: name?.origin ?? FOUNDRY,
      },
      dtype: { value: dtype, origin: weights?.origin ?? FOUNDRY },
      attnImplementation: own ? mptAttention(reader) : attention(reader),
      lossImpl: { value: own ? 'fused_logits' : 'full', origin: FOUNDRY },
      ...readLora(reader),
    },
    diagnostics: causal
      ? []
      : [
          warning('not-estimated', `${name!.value} is no causal language model, and is not estimated`, {
            location: formatOrigin(name!.origin),
          }),
        ],
  };
}

function attention(reader: SettingReader): NonNullable<TrainingSpec['attnImplementation']> {
  const flash = reader.given(['model.use_flash_attention_2'], toBoolean);
  // It wins over the newer key.
  if (flash?.value) {
    reader.note('model.attn_implementation');
    return { value: 'flash_attention_2', origin: flash.origin };
  }
  const given = reader.given(
    ['model.attn_implementation', 'model.config_overrides.attn_implementation'],
    orNull(toText),
  );
  const nested = reader.given(['model.config_overrides.attn_config.attn_impl'], toText);
  if (nested && !given)
    return { value: nested.value === 'torch' ? 'eager' : 'flash_attention_2', origin: nested.origin };
  if (!given || given.value === null) return { value: 'eager', origin: FOUNDRY };
  return { value: ATTENTIONS.find((each) => each === given.value) ?? null, origin: given.origin };
}

function mptAttention(reader: SettingReader): NonNullable<TrainingSpec['attnImplementation']> {
  const given = reader.given(['model.attn_config.attn_impl'], toText);
  return { value: given?.value === 'torch' ? 'eager' : 'flash_attention_2', origin: given?.origin ?? FOUNDRY };
}

/** The sizes of a model of its own; what changes the plain block (grouped heads, experts) is left to the user to describe. */
function mptConfig(reader: SettingReader): Pick<TrainingSpec, 'modelConfig'> {
  const size = (key: string, otherwise: number): number | null =>
    reader.setting<number>([`model.${key}`], toInteger(1), { value: otherwise, origin: FOUNDRY }).value;
  const plain = ['attn_config.attn_type', 'ffn_config', 'attn_config.kv_n_heads', 'expansion_ratio', 'attn_config.rope']
    .map((key) =>
      reader.given(
        [`model.${key}`],
        orNull((raw: FileValue) => ({ ok: true, value: raw })),
      ),
    )
    .every((found) => found === undefined || [null, 4, false, 'multihead_attention'].includes(found.value as never));
  const config = {
    model_type: 'mpt',
    d_model: size('d_model', 2048),
    n_heads: size('n_heads', 16),
    n_layers: size('n_layers', 24),
    vocab_size: size('vocab_size', 50368),
    max_seq_len: size('max_seq_len', 2048),
  };
  const origin = reader.values.find('model.d_model')?.origin ?? FOUNDRY;
  return plain ? { modelConfig: { value: config, origin } } : {};
}

/** PEFT's LoraConfig as it stands. Source: hf_base.py `get_peft_config`. */
function readLora(reader: SettingReader): Pick<TrainingSpec, 'method' | 'lora'> {
  const peft = reader.values.find('model.peft_config');
  reader.note('model.peft_config', 'model.peft_config.peft_type', 'model.peft_config.task_type');
  if (!peft || peft.raw === null) return { method: { value: 'full', origin: FOUNDRY } };
  const key = (name: string): readonly string[] => [`model.peft_config.${name}`];
  const r = reader.setting<number>(key('r'), toInteger(1), { value: 8, origin: FOUNDRY });
  const alpha = reader.setting<number>(key('lora_alpha'), toNumber, { value: 8, origin: FOUNDRY });
  const dropout = reader.setting<number>(key('lora_dropout'), toNumber, { value: 0, origin: FOUNDRY });
  const targets = reader.given(key('target_modules'), orNull(toWords));
  const saved = reader.given(key('modules_to_save'), orNull(toWords));
  const words = targets?.value;
  const known = r.value !== null && alpha.value !== null && dropout.value !== null;
  const lora: Setting<Lora> = {
    value: known
      ? {
          r: r.value,
          loraAlpha: alpha.value,
          loraDropout: dropout.value,
          targetModules: !words ? 'default' : words.length === 1 && words[0] === 'all-linear' ? 'all-linear' : words,
          adapterDtype: 'fp32',
          modulesToSave: saved?.value ?? [],
        }
      : null,
    origin: r.origin,
  };
  return { method: { value: 'lora', origin: peft.origin }, lora };
}
