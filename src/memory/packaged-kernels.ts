import { WITHOUT_FLA, WITHOUT_MAMBA_SSM } from '../model/index.ts';
import type { Versions } from '../spec/index.ts';

/**
 * Kernels of packages that transformers takes where they are installed: fla's gated delta rule, mamba_ssm's scan in chunks,
 * causal_conv1d's convolution. Source: transformers 5.17 integrations/hub_kernels.py.
 */
export type PackagedKernel = 'delta_rule' | 'scan' | 'convolution';

export const packagedKernels = ({ fla, mambaSsm, causalConv1d }: Versions): readonly PackagedKernel[] => [
  ...(fla === undefined ? [] : (['delta_rule'] as const)),
  ...(mambaSsm === undefined ? [] : (['scan'] as const)),
  ...(causalConv1d === undefined ? [] : (['convolution'] as const)),
];

/** What a model's description takes for granted of its kernels, as it is with the packages that are there. */
export function kernelAssumptions(assumptions: readonly string[], versions: Versions): readonly string[] {
  const { fla, mambaSsm } = versions;
  return assumptions.map((text) => {
    if (text === WITHOUT_FLA) {
      return fla === undefined
        ? `${text} (said by versions: { fla: … })`
        : `linear attention runs in the kernels of fla ${fla}: what they keep is read from their source, not traced`;
    }
    if (text === WITHOUT_MAMBA_SSM) {
      return mambaSsm === undefined
        ? `${text} (said by versions: { mamba_ssm: …, causal_conv1d: … })`
        : `the scan of Mamba 2 runs in the kernels of mamba_ssm ${mambaSsm}: what they keep is read from their source, not traced`;
    }
    return text;
  });
}
