import type { AlternatingOp } from './alternating.ts';
import type { AttentionOp, DisentangledOp, HeadsOp, PositionBiasOp, RotaryOp } from './attention.ts';
import type { DenseExpertsOp, MoeOp } from './experts.ts';
import type { EmbeddingOp, FramesOp, LinearOp, NormOp, ParameterOp } from './layers.ts';
import type { ChunkScanOp, ConvolutionOp, DeltaRuleOp, GatedNormOp, SelectiveScanOp } from './mixers.ts';
import type {
  ActivationOp,
  BinaryOp,
  CastOp,
  ClampOp,
  DropoutOp,
  GaussianTopkOp,
  ScaleOp,
  SoftcapOp,
} from './pointwise.ts';
import type { AssignOp, ConcatenateOp, CopyIntoOp, CopyOp, DropOp, FirstTokenOp, RepeatOp, SplitOp } from './values.ts';

/**
 * The vocabulary in which an architecture is written down: the ops of one forward pass in the order the Python code runs
 * them, with the Python names of the values they read and bind. Data only: what an op keeps, allocates and frees is the
 * business of the memory room.
 *
 * Values follow Python's rules: binding a name lets go of what it held, a call's own names end with the call, and a name
 * that begins with `$` is a value on the expression stack: it ends with the op that reads it.
 */
export type Op =
  | EmbeddingOp
  | FramesOp
  | AssignOp
  | LinearOp
  | NormOp
  | HeadsOp
  | RotaryOp
  | AttentionOp
  | SplitOp
  | ConcatenateOp
  | CopyOp
  | ConvolutionOp
  | GatedNormOp
  | DeltaRuleOp
  | ChunkScanOp
  | SelectiveScanOp
  | CopyIntoOp
  | ActivationOp
  | BinaryOp
  | ScaleOp
  | SoftcapOp
  | DropoutOp
  | ClampOp
  | CastOp
  | FirstTokenOp
  | PositionBiasOp
  | ParameterOp
  | DisentangledOp
  | CallOp
  | DropOp
  | RepeatOp
  | MoeOp
  | AlternatingOp
  | GaussianTopkOp
  | DenseExpertsOp;

/** A module's forward with names of its own. */
export interface CallOp {
  readonly op: 'call';
  /** Name in the parent module, empty for a plain function. */
  readonly name: string;
  /** Outer name → inner name. */
  readonly arguments: Readonly<Record<string, string>>;
  /** Inner name → outer name. */
  readonly results: Readonly<Record<string, string>>;
  readonly ops: readonly Op[];
}
