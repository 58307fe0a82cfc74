import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { check } from '../../src/jobs/index.ts';
import { renderCheck, renderDryRun } from '../../src/report/index.ts';
import { words } from '../dialects/phrase-book.ts';
import { fakePorts } from '../support/fake-ports.ts';

const STACKS = join(import.meta.dirname, '../fixtures/stacks');

const filesOf = (folder: string, prefix: string): [string, string][] =>
  readdirSync(join(STACKS, folder)).map((name) => [prefix + name, readFileSync(join(STACKS, folder, name), 'utf8')]);

/** What `snug run --dry-run` prints, on a machine with 128 GiB of RAM and these cards. */
async function dryRun(folder: string, gpu: string, command: string): Promise<string> {
  const ports = fakePorts({
    files: {
      ...Object.fromEntries(filesOf('base', '/project/base/')),
      ...Object.fromEntries(filesOf(folder, '/project/')),
      '/proc/meminfo': `MemTotal: ${128 * 2 ** 20} kB\nMemAvailable: ${120 * 2 ** 20} kB\n`,
    },
    now: () => new Date('2026-01-01T00:00:00Z'),
  });
  const outcome = await check(ports, {
    target: { kind: 'command', argv: words(command) },
    gpu,
    policy: {},
    set: [],
    starts: false,
  });
  if (outcome.kind !== 'checked') throw new Error(JSON.stringify(outcome.diagnostics));
  const { report } = outcome;
  const style = { colour: false, width: 80, unicode: false };
  const started = report.fitted ? renderDryRun(report.fitted, style) : '';
  return [`$ ${command}`, renderCheck(report, style), started, ''].join('\n\n');
}

/**
 * Five launches of three layers each, in full: what was understood, the plan, the diff, the command. When an estimate has
 * become better on purpose: npx vitest run test/jobs/dry-run-stacks.test.ts --update, and read the difference.
 */
it.each([
  ['fsdp-dpo', '40GiB:2', 'uv run accelerate launch --config_file fsdp.yaml -m trl dpo --config dpo.yaml'],
  [
    'hf-zero2',
    '24GiB:4',
    'nohup torchrun --nproc-per-node 4 train.py --model_name_or_path base --deepspeed ds.json --per_device_train_batch_size 32 --block_size 2048 --bf16 true --output_dir out',
  ],
  [
    'axolotl-lora',
    '12GiB:1',
    'env TOKENIZERS_PARALLELISM=false accelerate launch --num_processes 1 -m axolotl.cli.train lora.yml',
  ],
  ['llama-factory-zero3', '24GiB:2', 'FORCE_TORCHRUN=1 llamafactory-cli train full.yaml'],
  [
    'torchtune-fsdp',
    '24GiB:4',
    'srun --ntasks-per-node 1 tune run --nproc_per_node 4 full_finetune_distributed --config tune.yaml',
  ],
])('the stack %s', async (folder, gpu, command) => {
  const shown = await dryRun(folder, gpu, command);
  expect(shown).toMatch(/^fits after a rewrite/m);
  expect(shown).toMatch(/global\s+batch \d+ kept/);
  await expect(shown).toMatchFileSnapshot(join(STACKS, `${folder}.txt`));
});
