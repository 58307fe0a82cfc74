// https://docs.axolotl.ai/docs/config-reference.html

import type { Dialect } from '../dialect.ts';
import { AXOLOTL_SIGN, claimAxolotlFile } from './claim-file.ts';
import { startOfAxolotl } from './detect.ts';
import { AXOLOTL_EXAMPLES } from './example.ts';
import { type AxolotlDetail, readAxolotl } from './read.ts';
import { writeAxolotl } from './write.ts';

/** axolotl: its own command, and the module that a launcher starts. */
export const axolotl: Dialect<AxolotlDetail> = {
  id: 'axolotl',
  kind: 'trainer',
  title: 'axolotl',
  docs: 'https://docs.axolotl.ai/docs/config-reference.html',
  examples: AXOLOTL_EXAMPLES,
  detect: (position, context) => startOfAxolotl(position, context)?.claim,
  read: (_, position, context) => readAxolotl(startOfAxolotl(position, context)!, position, context),
  write: writeAxolotl,
  fileSign: AXOLOTL_SIGN,
  claimFile: claimAxolotlFile,
};
