import { distance } from 'fastest-levenshtein';
import { error, type FloatDType, fail, ok, parseFloatDType, type Result } from '../core/index.ts';
import { ARCHITECTURES } from './architectures/index.ts';
import { ConfigReader } from './config-reader.ts';
import type { ModelFacts } from './facts.ts';
import { countParameters } from './parameters.ts';

/** `model_type` values snug can estimate, sorted. */
export const supportedModelTypes = (): readonly string[] =>
  ARCHITECTURES.flatMap((architecture) => architecture.modelTypes).sort();

/**
 * The facts of a causal language model from the contents of its config.json; transformers' own defaults hold for absent
 * keys. Errors: `unsupported-architecture`, `unsupported-model-config`, `bad-model-config` (each names the key).
 */
export function describeModel(config: Readonly<Record<string, unknown>>): Result<ModelFacts> {
  const modelType = config.model_type;
  if (typeof modelType !== 'string' || modelType === '') {
    return fail(
      error('bad-model-config', 'the model config has no model_type', {
        help: 'give the model’s config.json, or add its model_type',
      }),
    );
  }
  const architecture = ARCHITECTURES.find((known) => known.modelTypes.includes(modelType));
  if (!architecture) {
    const near = supportedModelTypes().find((known) => distance(known, modelType) <= 1);
    return fail(
      error('unsupported-architecture', `model type ${modelType} is not one snug can estimate`, {
        notes: [`it knows ${supportedModelTypes().join(', ')}`],
        ...(near ? { help: `did you mean ${near}` } : {}),
      }),
    );
  }
  if (config.quantization_config !== undefined && config.quantization_config !== null) {
    const method = (config.quantization_config as Record<string, unknown>).quant_method;
    if (method !== 'bitsandbytes') {
      return fail(
        error('unsupported-model-config', `the checkpoint is stored quantised (${String(method)})`, {
          help: 'name the unquantised checkpoint',
        }),
      );
    }
  }
  const reader = new ConfigReader(config);
  const description = architecture.describe(reader, modelType);
  if (reader.problems.length > 0) return fail(...reader.problems);
  return ok({
    modelType,
    parameters: countParameters(description),
    checkpointDtype: checkpointDtype(config),
    vocabSize: description.vocabSize,
    hiddenSize: description.hiddenSize,
    numHiddenLayers: description.layers.length,
    labels: labels(config),
    maxPositionEmbeddings: positions(config),
    assumptions: reader.assumptions,
    description,
  });
}

function checkpointDtype(config: Readonly<Record<string, unknown>>): FloatDType | undefined {
  const said = config.dtype ?? config.torch_dtype;
  return typeof said === 'string' ? parseFloatDType(said) : undefined;
}

function labels(config: Readonly<Record<string, unknown>>): number {
  const { num_labels: count, id2label: names } = config;
  if (names && typeof names === 'object') return Math.max(1, Object.keys(names).length);
  return typeof count === 'number' && Number.isSafeInteger(count) && count > 0 ? count : 2;
}

function positions(config: Readonly<Record<string, unknown>>): number | undefined {
  for (const key of ['max_position_embeddings', 'n_positions', 'n_ctx', 'max_seq_len']) {
    const value = config[key];
    if (typeof value === 'number' && Number.isSafeInteger(value) && value > 0) return value;
  }
  return undefined;
}
