/** Floating-point formats that tensors of a training run are stored in. */
export type FloatDType = 'fp32' | 'bf16' | 'fp16';
export type DType = FloatDType | 'fp8' | 'int8' | 'uint8' | 'int64' | 'bool';

const BYTES: Readonly<Record<DType, number>> = {
  fp32: 4,
  bf16: 2,
  fp16: 2,
  fp8: 1,
  int8: 1,
  uint8: 1,
  int64: 8,
  bool: 1,
};

/** Bytes of one element. */
export const bytesOf = (dtype: DType): number => BYTES[dtype];

const FLOAT_NAMES: Readonly<Record<string, FloatDType>> = {
  float32: 'fp32',
  fp32: 'fp32',
  float: 'fp32',
  bfloat16: 'bf16',
  bf16: 'bf16',
  float16: 'fp16',
  fp16: 'fp16',
  half: 'fp16',
};

/** Reads the spellings of PyTorch, transformers and config files (`torch.bfloat16`, `bfloat16`, `bf16`). */
export const parseFloatDType = (text: string): FloatDType | undefined =>
  FLOAT_NAMES[
    text
      .trim()
      .toLowerCase()
      .replace(/^torch\./, '')
  ];
