// https://swift.readthedocs.io/en/latest/Instruction/Command-line-parameters.html
import type { Dialect } from '../dialect.ts';
import { claimSwiftFile, SWIFT_SIGN } from './claim-file.ts';
import { startOfSwift } from './detect.ts';
import { SWIFT_EXAMPLES } from './example.ts';
import { readSwift, type SwiftDetail } from './read.ts';
import { writeSwift } from './write.ts';

/** ms-swift: its own command, and the modules that it starts. */
export const msSwift: Dialect<SwiftDetail> = {
  id: 'ms-swift',
  kind: 'trainer',
  title: 'ms-swift',
  docs: 'https://swift.readthedocs.io/en/latest/Instruction/Command-line-parameters.html',
  examples: SWIFT_EXAMPLES,
  detect: (position, context) => startOfSwift(position, context)?.claim,
  read: (_, position, context) => readSwift(startOfSwift(position, context)!, position, context),
  write: writeSwift,
  fileSign: SWIFT_SIGN,
  claimFile: claimSwiftFile,
};
