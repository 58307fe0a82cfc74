import type { ConfigReader } from '../config-reader.ts';
import type { ModelDescription } from '../ops.ts';

/** One family of models: how its config.json becomes a description of the forward pass. */
export interface Architecture {
  /** `model_type` values it answers to. */
  readonly modelTypes: readonly string[];
  /** Where the forward pass was read. */
  readonly source: string;
  /** The code comes with the checkpoint (trust_remote_code) and not with transformers. */
  readonly ownCode?: boolean;
  /** Problems go to the reader; with any of them the result is not used. */
  readonly describe: (config: ConfigReader, modelType: string) => ModelDescription;
}
