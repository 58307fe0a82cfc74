import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { execa } from 'execa';
import { ensurePythonEnv } from '../scripts/python-env.mjs';
import { errorHead, errorLine, groupBy } from './error-table.ts';
import { estimateOf, type ReferenceRow, readReferenceRows } from './reference-rows.ts';

/** What estimate.py says of one traced step. */
interface Answer {
  readonly id: string;
  readonly tool: string;
  readonly version: string;
  readonly bytes?: number;
  readonly refused?: string;
}

const FOLDER = join(import.meta.dirname, 'others');

async function askOthers(rows: readonly ReferenceRow[]): Promise<readonly Answer[]> {
  const python = await ensurePythonEnv({
    folder: join(import.meta.dirname, '..', '.bench-env'),
    requirements: join(FOLDER, 'requirements.txt'),
    given: '',
  });
  const input = rows.map((row) => JSON.stringify(row)).join('\n');
  const { stdout } = await execa(python, [join(FOLDER, 'estimate.py')], { input, stderr: 'inherit' });
  return stdout.split('\n').map((line) => JSON.parse(line) as Answer);
}

/**
 * Prints the error of other estimators on traced steps, each beside ours on the steps that it estimates.
 * Argument: [peaks.jsonl]. Installs the others into .bench-env/ the first time.
 */
export async function main(argv: readonly string[]): Promise<number> {
  const path = argv[0] ?? '../shared/reference/peaks.jsonl';
  if (!existsSync(path)) {
    console.error(`no reference file at ${path}; give its path`);
    return 2;
  }
  const rows = readReferenceRows(path);
  const rowById = new Map(rows.map((row) => [row.id, row]));
  const answers = await askOthers(rows);
  const width = 28;
  console.log(errorHead(width));
  for (const [name, group] of groupBy(answers, ({ tool, version }) => `${tool} ${version}`)) {
    const estimated = group.filter(({ bytes }) => bytes !== undefined);
    const errors = estimated.map(({ id, bytes }) => bytes! / rowById.get(id)!.peak_bytes - 1);
    console.log(errorLine(name, errors, group.length - errors.length, width));
    const ours = estimated.flatMap(({ id }) => {
      const row = rowById.get(id)!;
      const estimate = estimateOf(row);
      return estimate.ok ? [estimate.value.vram.allocatedPeakBytes / row.peak_bytes - 1] : [];
    });
    console.log(errorLine('  snug on the same steps', ours, estimated.length - ours.length, width));
  }
  console.log('bytes allocated; allowances for CUDA context and fragmentation taken off where a tool states them');
  if (argv.includes('--refusals')) {
    const refused = answers.filter((answer) => answer.refused !== undefined);
    for (const [why, group] of groupBy(refused, (answer) => `${answer.tool}: ${answer.refused}`))
      console.log(`${group.length} x ${why}`);
  }
  return 0;
}
