import type { ReadContext } from '../contract.ts';
import type { Dialect } from '../dialect.ts';
import { readTrl, type TrlDetail } from '../trl/read.ts';
import { TRL_0_19, type TrlVersion, trlIn } from '../trl/versions.ts';
import { writeTrl } from '../trl/write.ts';
import { startOfRecipe } from './detect.ts';
import { RECIPE_EXAMPLES } from './example.ts';

/** The TRL that is installed; what a recipe was written for where that is not known. */
const versionOf = ({ versions }: ReadContext): TrlVersion => (versions?.trl ? trlIn(versions) : TRL_0_19);

/**
 * Recipes of the alignment handbook, open-r1 and their kin: TRL's keys with the names of TRL 0.19, whose defaults hold for
 * what a recipe leaves out. Their scripts go on by themselves from the last checkpoint of the output folder.
 */
export const alignmentHandbook: Dialect<TrlDetail> = {
  id: 'alignment-handbook',
  kind: 'trainer',
  title: 'alignment handbook recipe',
  docs: 'https://github.com/huggingface/alignment-handbook/tree/main/recipes',
  examples: RECIPE_EXAMPLES,
  detect: (position, context) => startOfRecipe(position, context)?.claim,
  read(_, position, context) {
    const read = readTrl(startOfRecipe(position, context)!, versionOf(context), position, context);
    if (!read.ok) return read;
    const how = 'resume_from_checkpoint: DIR, or by itself from the last checkpoint in output_dir';
    return { ok: true, value: { ...read.value, resume: { kind: 'supported', how } } };
  },
  write: writeTrl,
};
