import { distance } from 'fastest-levenshtein';
import { error, type FloatDType, fail, ok, parseFloatDType, type Result } from '../core/index.ts';
import type { Architecture } from './architectures/architecture.ts';
import { ARCHITECTURES } from './architectures/index.ts';
import { describeByShape } from './by-shape/describe-by-shape.ts';
import { ConfigReader } from './config-reader.ts';
import type { ModelFacts } from './facts.ts';
import { countParameters } from './parameters.ts';
import type { StoredTensor } from './safetensors.ts';
import { readStoredQuantisation } from './stored-quantisation.ts';

/** `model_type` values snug can estimate, sorted. */
export const supportedModelTypes = (): readonly string[] =>
  ARCHITECTURES.flatMap((architecture) => architecture.modelTypes).sort();

type Config = Readonly<Record<string, unknown>>;

/** A description and how far it can be trusted. */
type Described = Pick<ModelFacts, 'description' | 'assumptions' | 'uncertainty'>;

/** Code that comes with a checkpoint is described as it was published; there is no class of transformers to hold it against. */
const OWN_CODE_UNCERTAINTY = 0.05;

/**
 * The facts of a model from the contents of its config.json; transformers' own defaults hold for absent keys. An unknown type
 * is read by its shape, from `stored` (the tensors of its checkpoint) where they are at hand, and the facts say so. Errors:
 * `unsupported-architecture`, `unsupported-model-config`, `bad-model-config` (each names the key, or the reason).
 */
export function describeModel(config: Config, stored?: readonly StoredTensor[]): Result<ModelFacts> {
  const modelType = config.model_type;
  if (typeof modelType !== 'string' || modelType === '') {
    return fail(
      error('bad-model-config', 'the model config has no model_type', {
        help: 'give the model’s config.json, or add its model_type',
      }),
    );
  }
  const architecture = ARCHITECTURES.find((known) => known.modelTypes.includes(modelType));
  const { stored: storage, assumptions: ofStorage, problem } = readStoredQuantisation(config);
  if (problem) return fail(problem);
  const described = architecture
    ? describeKnown(architecture, config, modelType)
    : describeUnknown(config, modelType, stored);
  if (!described.ok) return described;
  const { description } = described.value;
  const parameters = countParameters(description);
  // Each key by itself may be a number, and a quotient of two no size.
  if (!Number.isSafeInteger(parameters) || parameters <= 0) {
    return fail(
      error('bad-model-config', `the sizes of this ${modelType} config give no count of parameters`, {
        help: 'compare its sizes with those of the published config.json',
      }),
    );
  }
  return ok({
    modelType,
    parameters,
    checkpointDtype: checkpointDtype(config),
    vocabSize: description.vocabSize,
    hiddenSize: description.hiddenSize,
    numHiddenLayers: description.layers.length,
    labels: labels(config),
    maxPositionEmbeddings: positions(config),
    ...described.value,
    assumptions: [...described.value.assumptions, ...ofStorage],
    ...(storage ? { stored: storage } : {}),
  });
}

function describeKnown(architecture: Architecture, config: Config, modelType: string): Result<Described> {
  const reader = new ConfigReader(config);
  const description = architecture.describe(reader, modelType);
  if (reader.problems.length > 0) return fail(...reader.problems);
  if (!architecture.ownCode) return ok({ description, assumptions: reader.assumptions });
  return ok({
    description,
    assumptions: [
      ...reader.assumptions,
      `the code of a ${modelType} model comes with its checkpoint: its layers are taken as they were published`,
    ],
    uncertainty: OWN_CODE_UNCERTAINTY,
  });
}

function describeUnknown(
  config: Config,
  modelType: string,
  stored: readonly StoredTensor[] | undefined,
): Result<Described> {
  const byShape = describeByShape(config, stored);
  if (!byShape.ok) {
    const near = supportedModelTypes().find((known) => distance(known, modelType) <= 1);
    return fail(
      error('unsupported-architecture', `model type ${modelType} is not one snug can estimate`, {
        notes: [
          `it cannot be read as a plain decoder either: ${byShape.error}`,
          `it knows ${supportedModelTypes().join(', ')}`,
        ],
        ...(near ? { help: `did you mean ${near}` } : {}),
      }),
    );
  }
  const { description, uncertainty, assumption } = byShape.value;
  return ok({ description, uncertainty, assumptions: [assumption] });
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
