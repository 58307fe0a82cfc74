import type { FloatDType } from '../core/index.ts';
import type { ModelDescription } from './ops.ts';
import type { StoredQuantisation } from './stored-quantisation.ts';

/**
 * What the estimator knows of a model. The architecture folder describes the layers; see `ops.ts` for the vocabulary.
 */
export interface ModelFacts {
  /** `model_type` of config.json. */
  readonly modelType: string;
  /** All parameters, tied ones once. */
  readonly parameters: number;
  /** What the checkpoint is stored in (`torch_dtype` / `dtype` of config.json); undefined: not said. */
  readonly checkpointDtype: FloatDType | undefined;
  readonly vocabSize: number;
  readonly hiddenSize: number;
  readonly numHiddenLayers: number;
  /** Scores a row of a classifier made from this config (`num_labels`, or the length of `id2label`; transformers' default is 2). */
  readonly labels: number;
  readonly maxPositionEmbeddings: number | undefined;
  /** Share of the allocated memory by which the estimate may be off because of what was assumed; absent: none. */
  readonly uncertainty?: number;
  /** How the checkpoint stores its linear layers; undefined: in `checkpointDtype`. */
  readonly stored?: StoredQuantisation;
  /** What had to be assumed, for the estimate's `assumptions`. */
  readonly assumptions: readonly string[];
  /** The forward pass, op by op. */
  readonly description: ModelDescription;
}
