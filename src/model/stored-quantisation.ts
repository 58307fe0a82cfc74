import { type Diagnostic, error, type FloatDType, parseFloatDType } from '../core/index.ts';

/** How a checkpoint stores its linear layers, where it does so quantised and training keeps them like that. */
export interface StoredQuantisation {
  readonly bits: 4 | 8;
  readonly quantType: 'nf4' | 'fp4' | 'int8' | 'gptq' | 'awq';
  readonly doubleQuant: boolean;
  /** What the layers compute in; undefined: the dtype of the rest. */
  readonly computeDtype: FloatDType | undefined;
  /** Weights of one row that share a scale; −1: all of them. Packed formats only. */
  readonly groupSize: number | undefined;
}

/** What a config says of it: nothing, a form that is kept, or why it cannot be trained. */
export interface ReadQuantisation {
  readonly stored?: StoredQuantisation;
  readonly assumptions: readonly string[];
  readonly problem?: Diagnostic;
}

type Config = Readonly<Record<string, unknown>>;

/** Methods whose `is_trainable` is false in transformers 5.17 (quantizers/quantizer_*.py), and the way around. */
const NOT_TRAINABLE: Readonly<Record<string, string>> = {
  fp8: 'load it with FineGrainedFP8Config(dequantize=True), and name the unquantised checkpoint here',
  fbgemm_fp8: 'name the unquantised checkpoint',
  bitnet: 'name the checkpoint with unpacked weights',
  quanto: 'name the unquantised checkpoint',
  higgs: 'name the unquantised checkpoint',
  vptq: 'name the unquantised checkpoint',
  spqr: 'name the unquantised checkpoint',
};

/** Reads `quantization_config` of a config.json. Source: transformers 5.17 utils/quantization_config.py. */
export function readStoredQuantisation(config: Config): ReadQuantisation {
  const given = config.quantization_config;
  if (given === undefined || given === null || typeof given !== 'object') return { assumptions: [] };
  const settings = given as Config;
  const method = String(
    settings.quant_method ?? (settings.load_in_4bit || settings.load_in_8bit ? 'bitsandbytes' : ''),
  );
  switch (method) {
    case 'bitsandbytes':
    case 'bitsandbytes_4bit':
    case 'bitsandbytes_8bit':
      return { stored: bitsandbytes(settings), assumptions: skipped(settings) };
    case 'gptq':
    case 'awq':
      return packed(method, settings);
    case 'mxfp4':
      // Training needs it dequantised: quantizer_mxfp4.py `is_trainable`.
      return {
        assumptions: ['the mxfp4 experts of the checkpoint are dequantised to 16 bits on loading, as training needs'],
      };
    default:
      return refused(method);
  }
}

function refused(method: string): ReadQuantisation {
  const help = NOT_TRAINABLE[method];
  const reason = help ? `, which transformers cannot train on` : '';
  return {
    assumptions: [],
    problem: error('unsupported-model-config', `the checkpoint is stored quantised (${method})${reason}`, {
      help: help ?? 'name the unquantised checkpoint',
    }),
  };
}

function bitsandbytes(settings: Config): StoredQuantisation {
  const eight = settings.load_in_8bit === true || settings._load_in_8bit === true;
  const compute = settings.bnb_4bit_compute_dtype;
  return {
    bits: eight ? 8 : 4,
    quantType: eight ? 'int8' : settings.bnb_4bit_quant_type === 'nf4' ? 'nf4' : 'fp4',
    doubleQuant: !eight && settings.bnb_4bit_use_double_quant === true,
    // transformers' own default is fp32.
    computeDtype: eight ? undefined : typeof compute === 'string' ? parseFloatDType(compute) : 'fp32',
    groupSize: undefined,
  };
}

function packed(method: 'gptq' | 'awq', settings: Config): ReadQuantisation {
  const { bits = 4, group_size: size = 128 } = settings;
  if ((bits !== 4 && bits !== 8) || typeof size !== 'number') return refused(`${method}, ${String(bits)} bits`);
  return {
    stored: { bits, quantType: method, doubleQuant: false, computeDtype: undefined, groupSize: size },
    assumptions: [`${method} layers are dequantised one by one and what they read is not kept`],
  };
}

/** Layers that a dynamic quantisation leaves alone are named one by one. */
function skipped(settings: Config): string[] {
  const names = settings.llm_int8_skip_modules;
  const single = Array.isArray(names) && names.some((name) => /\.\d+\./.test(String(name)));
  return single ? ['layers that the checkpoint leaves unquantised one by one are taken as quantised'] : [];
}
