import type { Ports } from '../core/index.ts';
import type { Gpu, Hardware } from './hardware.ts';
import { sampleNvidiaVram } from './nvidia-smi.ts';
import { sampleAmdVram } from './rocm-smi.ts';

/**
 * Device memory in use, bytes: the *largest* among the given cards, not the sum, because every limit and every estimate is per
 * card. Includes other processes. Undefined: no driver, or it does not tell. `source`: the tool that listed the cards.
 */
export const sampleVram = (
  ports: Ports,
  gpus: readonly Pick<Gpu, 'uuid'>[],
  source: Hardware['source'] = 'nvidia-smi',
): Promise<number | undefined> =>
  source === 'rocm-smi' || source === 'amd-smi' ? sampleAmdVram(ports, gpus) : sampleNvidiaVram(ports, gpus);
