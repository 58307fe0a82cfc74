import type { ModelDescription, Op } from '../../model/index.ts';
import { type Adapters, adaptersFor } from '../adapters/index.ts';
import {
  dtypeCode,
  type OpState,
  Parameter,
  type ParameterGroup,
  type ParameterSettings,
  type QuantisedGroup,
} from '../parameter.ts';
import { type Dtype, F32 } from '../tape/tape.ts';

/** The parameter tensors of a run while they are put together, with what each op has of them. */
export class ParameterSet {
  readonly states = new Map<Op, OpState>();
  readonly groups: ParameterGroup[] = [];
  readonly adapters: Adapters;
  /** Only adapters and trained copies get gradients. */
  readonly peft: boolean;
  /** Dtype of the base's linear layers. */
  readonly base: Dtype;
  /** Dtype of the base's other parameters. */
  readonly rest: Dtype;
  /** Dtype of embeddings, norms and head. */
  readonly outer: Dtype;
  quantisedBytes = 0;
  /** Elements of the largest quantised weight. */
  largestQuantised = 0;
  /** Quantised weights, in their order. */
  readonly quantised: QuantisedGroup[] = [];
  matchedTargets = 0;

  constructor(
    readonly description: ModelDescription,
    readonly values: ParameterSettings,
  ) {
    this.adapters = adaptersFor(description, values);
    this.peft = values.method !== 'full';
    this.base = dtypeCode(values.dtype);
    this.rest = values.quantization?.upcastRestToFp32 ? F32 : this.base;
    this.outer = values.embeddingsInFp32 ? F32 : this.rest;
  }

  /** `count` equal tensors; `path`: of the linear layer whose weight it is. */
  make(rows: number, columns: number, dtype: Dtype, trainable: boolean, count: number, path?: string): Parameter {
    const parameter = new Parameter(rows, columns, dtype, trainable);
    this.groups.push(path === undefined ? { parameter, count } : { parameter, count, path });
    return parameter;
  }

  /** A parameter of the base: trained only where all of it is. */
  makeBase(rows: number, columns: number, count: number, dtype: Dtype = this.rest): Parameter {
    return this.make(rows, columns, dtype, !this.peft, count);
  }

  /** Resident bytes of everything made so far. */
  bytesSoFar(): number {
    return this.groups.reduce((total, { parameter, count }) => total + parameter.bytes * count, this.quantisedBytes);
  }
}
