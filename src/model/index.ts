export { WITHOUT_MAMBA_SSM } from './architectures/mamba2.ts';
export { WITHOUT_FLA } from './architectures/qwen-next.ts';
export * from './describe-model.ts';
export * from './facts.ts';
export type { KnownModel } from './known-models.ts';
export { type LocateOptions, locateModel } from './locate-model.ts';
export * from './located.ts';
export * from './ops.ts';
export { classifierOps, countScoringParameters } from './parameters.ts';
export {
  measureCheckpoint,
  readSafetensorsHeader,
  type SafetensorsHeader,
  type StoredCheckpoint,
  type StoredTensor,
} from './safetensors.ts';
export type { StoredQuantisation } from './stored-quantisation.ts';
