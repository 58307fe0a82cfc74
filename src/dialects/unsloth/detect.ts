import type { ReadContext } from '../contract.ts';
import type { Claim, Position, Target } from '../dialect.ts';
import { readScript } from '../hf-trainer/script.ts';

export const isCli = ({ name }: Target): boolean => /(?:^|\/)unsloth-cli\.py$/.test(name);

/** `unsloth-cli.py`, and scripts that load their model by one of Unsloth's Fast… classes. */
export function detectUnsloth({ target, argv }: Position, context: ReadContext): Claim | undefined {
  if (target?.form !== 'script') return undefined;
  const claim: Claim = { from: target.index, to: argv.length };
  if (isCli(target)) return claim;
  const { text } = readScript(target, context);
  const uses = text !== undefined && /\bfrom\s+unsloth\s+import\b|\bimport\s+unsloth\b/.test(text);
  return uses && /\bFast(?:Language|Vision)?Model\s*\.\s*from_pretrained\b/.test(text) ? claim : undefined;
}
