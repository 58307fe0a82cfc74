import { join } from 'node:path';
import { execa } from 'execa';
import { ensurePythonEnv } from '../../scripts/python-env.mjs';

type Config = Readonly<Record<string, unknown>>;

export interface Counted {
  readonly name: string;
  readonly parameters: number;
  readonly config: Config;
}

/** What transformers' own classes say of a config; undefined: no class, or it refuses the config. */
export type RealCounts = ReadonlyMap<string, Readonly<Record<string, number>> | undefined>;

/** Asks the real classes, all configs in one process. */
export async function countReally(
  cases: readonly { readonly id: string; readonly config: Config }[],
): Promise<RealCounts> {
  const python = await ensurePythonEnv();
  const script = join(import.meta.dirname, 'count-parameters.py');
  const { stdout } = await execa(python, [script], {
    input: cases.map((each) => JSON.stringify(each)).join('\n'),
    env: { OMP_NUM_THREADS: '1' },
  });
  const answers = stdout.split('\n').map((line) => JSON.parse(line) as { id: string; counts?: Record<string, number> });
  return new Map(answers.map(({ id, counts }) => [id, counts]));
}

/** A small generator of numbers in [0, 1) that a seed decides (mulberry32). */
export function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

const INNER =
  /^(intermediate_size|ffn_dim|n_inner|ffn_hidden_size|moe_intermediate_size|shared_expert_intermediate_size)$/;
const LAYERS = /^(num_hidden_layers|num_layers|n_layer|n_layers)$/;
const PER_LAYER = ['layer_types', 'attention_types', 'mlp_only_layers', 'no_rope_layers', 'layers_block_type'];

/** The same model in another shape: other tables and feed-forward sizes, tied or not, with biases or not. */
export function varyShape(config: Config, random: () => number): Config {
  const pick = (low: number, high: number): number => low + Math.floor(random() * (high - low));
  const varied: Record<string, unknown> = { ...config };
  const layersFixed = PER_LAYER.some((key) => key in config);
  for (const [key, value] of Object.entries(config)) {
    if (typeof value !== 'number') continue;
    if (INNER.test(key)) varied[key] = 16 * pick(8, 256);
    if (LAYERS.test(key) && !layersFixed) varied[key] = pick(3, 9);
  }
  varied.vocab_size = pick(1200, 40000);
  varied.tie_word_embeddings = random() < 0.5;
  for (const flag of ['attention_bias', 'mlp_bias', 'use_bias', 'qkv_bias']) {
    if (random() < 0.5) varied[flag] = random() < 0.5;
  }
  return varied;
}
