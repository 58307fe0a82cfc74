import type { FloatDType } from '../core/index.ts';
import type { PlanValues } from '../spec/index.ts';
import { BF16, Buffer, type Dtype, F16, F32, Node, roundUp, Tensor, widthOf } from './tape/tape.ts';

export const dtypeCode = (dtype: FloatDType): Dtype => (dtype === 'fp32' ? F32 : dtype === 'bf16' ? BF16 : F16);

type Decisive = 'promptTuning' | 'ownModules' | 'embeddingsInFp32';

/** The settings that decide which tensors there are. */
export type ParameterSettings = Pick<PlanValues, 'method' | 'dtype' | 'quantization' | 'lora' | 'ia3' | 'versions'> & {
  readonly [K in Decisive]?: PlanValues[K] | undefined;
};

/** One parameter tensor. Its bytes are resident; on the tape it has none of its own. */
export class Parameter {
  readonly tensor: Tensor;
  /** Matrices in a 3-D tensor. */
  stack = 1;
  readonly elements: number;
  /** Resident bytes, rounded as the allocator does. */
  readonly bytes: number;

  constructor(
    readonly rows: number,
    readonly columns: number,
    readonly dtype: Dtype,
    readonly trainable: boolean,
    /** Dimensions of the tensor; `rows` stands for all but the last. */
    readonly dimensions = rows === 1 ? 1 : 2,
  ) {
    this.elements = rows * columns;
    this.bytes = roundUp(this.elements * widthOf(dtype));
    let node: Node | null = null;
    if (trainable) {
      node = new Node(this.elements, dtype, null);
      node.leaf = { uses: 1, arrived: 0, pending: null };
    }
    const buffer = new Buffer(0, 0);
    // Nobody lets go of it; a small integer, as all counts are, which V8 keeps in place.
    buffer.refs = 1_000_000_000;
    this.tensor = new Tensor(buffer, this.elements, dtype, node);
  }
}

/** What stands at a linear layer. */
export interface LinearState {
  /** Absent when the weight is quantised. */
  readonly weight: Parameter | undefined;
  readonly quantised: QuantisedWeight | undefined;
  readonly bias: Parameter | undefined;
  readonly adapter: Adapter | undefined;
}

export interface QuantisedWeight {
  readonly elements: number;
  /** Packed weights and scales. */
  readonly bytes: number;
  /** `int8`: products in integers (LLM.int8()); `dequantised`: in the compute dtype. */
  readonly products: 'int8' | 'dequantised';
  readonly computeDtype: Dtype;
  /** Its input is kept for a gradient that nothing asks for; see VersionFacts. */
  readonly keepsInput: boolean;
  /** Dequantised into fp16 first, then cast to the compute dtype (Lightning's bitsandbytes plugin quantises fp16 copies). */
  readonly throughHalf: boolean;
}

export type Adapter =
  | {
      readonly kind: 'lora' | 'dora';
      readonly a: Parameter;
      readonly b: Parameter;
      readonly magnitude: Parameter | undefined;
      readonly dropout: number;
    }
  | { readonly kind: 'ia3'; readonly scaling: Parameter; readonly feedforward: boolean };

/** A stacked parameter and PEFT's low-rank factors for it. */
export interface StackedWeight {
  readonly weight: Parameter;
  /** LoRA on a parameter: `rank` per matrix, factors of all matrices in two tensors. */
  readonly lora: { readonly a: Parameter; readonly b: Parameter } | undefined;
}

export interface MoeState {
  /** Absent: the router is a layer of its own. */
  readonly router: StackedWeight | undefined;
  readonly gateUp: StackedWeight;
  readonly down: StackedWeight;
  readonly biases: { readonly router: Parameter; readonly gateUp: Parameter; readonly down: Parameter } | undefined;
}

/** Experts as modules of their own (transformers before 5): every expert's projections are alike, so one state stands for all. */
export interface LoopedExperts {
  readonly router: LinearState;
  readonly gate: LinearState;
  readonly up: LinearState;
  readonly down: LinearState;
}

/** Parameters of one op, in the order of the module. */
export interface OpState {
  readonly linear?: LinearState;
  readonly weight?: Parameter;
  readonly bias?: Parameter;
  readonly moe?: MoeState;
  /** A_log, dt_bias and D of a selective scan. */
  readonly scan?: readonly Parameter[];
  readonly looped?: LoopedExperts;
  /** Projections of all experts, up and down, that run for every token. */
  readonly stacked?: readonly Parameter[];
  /** Trained copy of a module beside the frozen one (PEFT modules_to_save). */
  readonly frozenCopy?: Parameter;
  /** LoRA on a table: one row a token of it, and the way to its size. */
  readonly lowRank?: { readonly a: Parameter; readonly b: Parameter };
}

/** Equal quantised weights. */
export interface QuantisedGroup {
  readonly weight: QuantisedWeight;
  readonly count: number;
}

/** A set of equal parameter tensors. */
export interface ParameterGroup {
  readonly parameter: Parameter;
  readonly count: number;
  /** Path of the linear layer whose weight it is, without the layer's number; undefined: something else. */
  readonly path?: string;
}
