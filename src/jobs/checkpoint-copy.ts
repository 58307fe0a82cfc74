import { join } from 'node:path';
import { error, fail, ok, type Ports, type Result } from '../core/index.ts';
import type { PlanValues } from '../spec/index.ts';
import type { RunCheckpoint } from './checkpoint-of-run.ts';
import type { PythonCommand } from './packages.ts';

/**
 * From here on transformers restores the batch of a checkpoint only under its own batch search; before, it took it over the flag
 * (https://github.com/huggingface/transformers/pull/43770). 5.17 is the oldest release whose source was read.
 */
const KEEPS_THE_FLAG = [5, 17] as const;
const ASK_TIMEOUT_MS = 20_000;
const STATE = 'trainer_state.json';

/**
 * The batch a checkpoint would impose on the next attempt, where it is another than planned: what its `train_batch_size` must say
 * instead. Data parallelism in one process counts all its GPUs, so the ratio to the micro batch is kept.
 */
export function batchToSay(checkpoint: RunCheckpoint, next: PlanValues | undefined): number | undefined {
  const { trainBatchSize: carried, values: wrote } = checkpoint;
  if (carried === undefined || !next) return undefined;
  const per = wrote ? carried / wrote.perDeviceTrainBatchSize : 1;
  const wanted = next.perDeviceTrainBatchSize * (Number.isInteger(per) && per > 0 ? per : 1);
  return wanted === carried ? undefined : wanted;
}

/** Whether the trainer's transformers may take the checkpoint's batch over the flag. What cannot be asked, may. */
export async function checkpointBatchWins(ports: Ports, python: PythonCommand | undefined): Promise<boolean> {
  const [program, ...args] = python ?? [];
  if (program === undefined) return true;
  const code = 'from importlib.metadata import version; print(version("transformers"))';
  const answer = await ports.programs.run(program, [...args, '-c', code], { timeoutMs: ASK_TIMEOUT_MS });
  const [, major, minor] = /^(\d+)\.(\d+)/.exec(answer.stdout.trim()) ?? [];
  if (major === undefined) return true;
  const [keepsMajor, keepsMinor] = KEEPS_THE_FLAG;
  return Number(major) < keepsMajor || (Number(major) === keepsMajor && Number(minor) < keepsMinor);
}

const cannot = (path: string, code: string): Result<never> =>
  fail(error('checkpoint-copy', `cannot make a copy of ${path}: ${code}`));

/**
 * A folder that stands for the checkpoint: links to all its files, and its trainer state with another batch. The checkpoint itself is
 * the user's and stays as it is.
 */
export function copyWithBatch(ports: Ports, checkpoint: RunCheckpoint, batch: number, into: string): Result<string> {
  const copy = join(into, `checkpoint-${checkpoint.step}`);
  const statePath = join(checkpoint.path, STATE);
  const state = ports.files.readBytes(statePath, 0, ports.files.info(statePath)?.sizeBytes ?? 0);
  if (!state.ok) return cannot(checkpoint.path, state.code);
  const made = ports.store.makeFolder(copy);
  if (!made.ok) return cannot(checkpoint.path, made.code);
  for (const name of ports.files.list(checkpoint.path)) {
    if (name === STATE) continue;
    const linked = ports.store.link(join(checkpoint.path, name), join(copy, name));
    if (!linked.ok) return cannot(join(checkpoint.path, name), linked.code);
  }
  const text = new TextDecoder().decode(state.value).replace(/("train_batch_size"\s*:\s*)\d+/, `$1${batch}`);
  const written = ports.store.writeAtomic(join(copy, STATE), text);
  return written.ok ? ok(copy) : cannot(checkpoint.path, written.code);
}
