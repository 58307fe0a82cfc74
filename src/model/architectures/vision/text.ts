import { ConfigReader } from '../../config-reader.ts';
import type { ModelDescription } from '../../ops.ts';
import type { Architecture } from '../architecture.ts';
import { noPeftDefaults } from '../parts.ts';

/** The language model inside a vision-language model: its config, and how its description changes there. */
export interface TextPart {
  readonly config: ConfigReader;
  readonly description: ModelDescription;
}

/** Text models that vision-language models are built of; found by the `model_type` of their part of the config. */
export function describeText(
  config: ConfigReader | undefined,
  outer: ConfigReader,
  known: readonly Architecture[],
  fallback: { readonly modelType: string; readonly defaults?: Readonly<Record<string, unknown>> },
): TextPart {
  const reader = config ?? new ConfigReader(fallback.defaults ?? {}, outer);
  const said = reader.raw('model_type') ?? fallback.modelType;
  const modelType = typeof said === 'string' ? said : fallback.modelType;
  const found = known.find((architecture) => architecture.modelTypes.includes(modelType));
  if (!found) outer.refuse(`a text model of type ${modelType} inside a vision-language model is not described`);
  const architecture = found ?? known[0]!;
  return {
    config: reader,
    description: architecture.describe(reader, found ? modelType : architecture.modelTypes[0]!),
  };
}

/** `language_model` stands between the whole and its layers; the head is the whole's. */
export function insideVision(
  text: ModelDescription,
  parts: Pick<ModelDescription, 'idle' | 'image'> & {
    readonly tied: boolean;
    readonly bufferBytes?: number;
    /** Name of the text model, `language_model`. */
    readonly name?: string;
  },
): ModelDescription {
  const { tied, bufferBytes, name = 'language_model', ...vision } = parts;
  return {
    ...text,
    ...vision,
    layersPath: `model.${name}.layers`,
    head: { ...text.head, tied },
    bufferBytes: text.bufferBytes + (bufferBytes ?? 0),
    peft: noPeftDefaults,
  };
}
