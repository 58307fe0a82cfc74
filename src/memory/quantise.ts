import type { Quantization } from '../spec/index.ts';
import { dtypeCode, type QuantisedWeight } from './parameters.ts';
import { roundUp } from './tape/tape.ts';

/**
 * How one weight of `rows` outputs and `columns` inputs is stored, bytes with everything that belongs to it. `keepsInput`: this
 * bitsandbytes keeps the input of a 4-bit product. `throughHalf`: the weight was quantised as fp16.
 */
export function quantise(
  rows: number,
  columns: number,
  quantization: Quantization,
  keepsInput: boolean,
  throughHalf = false,
): QuantisedWeight {
  const elements = rows * columns;
  const { quantType } = quantization;
  return {
    elements,
    bytes: storedBytes(rows, columns, quantization),
    products: quantType === 'int8' ? 'int8' : 'dequantised',
    computeDtype: dtypeCode(quantization.computeDtype),
    keepsInput: keepsInput && (quantType === 'nf4' || quantType === 'fp4'),
    throughHalf: throughHalf && quantization.computeDtype !== 'fp16',
  };
}

function storedBytes(rows: number, columns: number, quantization: Quantization): number {
  switch (quantization.quantType) {
    case 'nf4':
    case 'fp4':
      return fourBit(rows * columns, quantization.doubleQuant);
    case 'int8':
      // One byte a weight, one fp32 statistic an output (bitsandbytes nn/modules.py Int8Params: CB, SCB).
      return roundUp(rows * columns) + roundUp(rows * 4);
    case 'gptq':
      // g_idx: the group of every input, int32.
      return packed(rows, columns, quantization) + roundUp(columns * 4);
    case 'awq':
      return packed(rows, columns, quantization);
  }
}

/**
 * bitsandbytes 4 bit: two weights a byte, one scale per 64: fp32, or with double quantisation one byte and one fp32 per 256
 * of them. nf4 and fp4 differ in their table alone.
 */
function fourBit(elements: number, doubleQuant: boolean): number {
  const blocks = Math.ceil(elements / 64);
  const scales = doubleQuant ? roundUp(blocks) + roundUp(Math.ceil(blocks / 256) * 4) : roundUp(blocks * 4);
  return roundUp(Math.ceil(elements / 2)) + scales;
}

/** Weights and zero points packed into int32, fp16 scales, one of each a group and output (gptqmodel, AutoAWQ). */
function packed(rows: number, columns: number, { bits, groupSize = 128 }: Quantization): number {
  const groups = groupSize < 1 ? 1 : Math.ceil(columns / groupSize);
  const share = bits / 8;
  return roundUp(rows * columns * share) + roundUp(groups * rows * share) + roundUp(groups * rows * 2);
}
