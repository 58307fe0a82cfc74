import { MiB, type Ports, type ProgramOutcome } from '../core/index.ts';
import type { Gpu } from './hardware.ts';

/** A card that fell off the bus can make nvidia-smi hang for ten seconds each; a preflight does not wait for that. */
const TIMEOUT_MS = 5000;

const FIELDS = ['index', 'uuid', 'name', 'memory.total', 'memory.used', 'memory.free', 'compute_cap'];
const FORMAT = '--format=csv,noheader,nounits';

/** What nvidia-smi said: the cards it listed, and every sentence that is not a card. */
export interface DriverReport {
  readonly gpus: readonly Gpu[];
  readonly notes: readonly string[];
}

/** Runs nvidia-smi with a timeout. */
export const askNvidiaSmi = (ports: Ports, ...args: string[]): Promise<ProgramOutcome> =>
  ports.programs.run('nvidia-smi', args, { timeoutMs: TIMEOUT_MS });

/** A cell in MiB, with or without its unit, as bytes; undefined for `[N/A]`, `[Not Supported]`, `[Unknown Error]`, `ERR!`. */
export function parseMemoryCell(cell: string): number | undefined {
  const match = /^(\d+(?:\.\d+)?)(?:\s*MiB)?$/.exec(cell.trim());
  return match ? Math.round(Number(match[1]) * MiB) : undefined;
}

function parseComputeCapability(cell: string | undefined): Gpu['computeCapability'] {
  const match = /^(\d+)\.(\d+)$/.exec(cell?.trim() ?? '');
  return match ? { major: Number(match[1]), minor: Number(match[2]) } : undefined;
}

/** One line of the query as a card; undefined when the line is something else (an error sentence, a blank line). */
export function parseGpuRow(line: string): Gpu | undefined {
  const [index, uuid, name, total, used, free, capability] = line.split(',').map((cell) => cell.trim());
  if (index === undefined || !/^\d+$/.test(index) || !uuid || !name || free === undefined) return undefined;
  return {
    index: Number(index),
    uuid,
    name,
    totalBytes: parseMemoryCell(total!),
    usedBytes: parseMemoryCell(used!),
    freeBytes: parseMemoryCell(free),
    computeCapability: parseComputeCapability(capability),
  };
}

/** Sentences of both streams that are not cards, one line. Errors of the driver come on stdout as often as on stderr. */
function sentences({ stdout, stderr }: ProgramOutcome): string {
  return [...stdout.split(/[\r\n]+/), ...stderr.split(/[\r\n]+/)]
    .map((line) => line.trim())
    .filter((line) => line !== '' && !parseGpuRow(line))
    .join(' ');
}

function reportOf(outcome: ProgramOutcome): DriverReport {
  const gpus = outcome.stdout.split(/[\r\n]+/).flatMap((line) => parseGpuRow(line) ?? []);
  const said = sentences(outcome);
  if (outcome.failure === 'not-found') return { gpus: [], notes: ['nvidia-smi is not installed here'] };
  if (outcome.failure === 'timeout') {
    return { gpus: [], notes: [`nvidia-smi did not answer within ${TIMEOUT_MS / 1000} s and was stopped`] };
  }
  if (outcome.exitCode !== 0) {
    const ending = outcome.exitCode === undefined ? 'could not be run' : `ended with exit code ${outcome.exitCode}`;
    return { gpus, notes: [`nvidia-smi ${ending}${said && `: ${said}`}`] };
  }
  return { gpus, notes: said ? [`nvidia-smi said: ${said}`] : [] };
}

/**
 * Asks the driver for its cards. Never fails: no driver, an error text or a hang are notes.
 * Query fields: `nvidia-smi --help-query-gpu`; `compute_cap` is missing in drivers before 510.
 */
export async function queryGpus(ports: Ports): Promise<DriverReport> {
  const query = (fields: readonly string[]) => askNvidiaSmi(ports, `--query-gpu=${fields.join(',')}`, FORMAT);
  const outcome = await query(FIELDS);
  const refusesField = outcome.exitCode !== 0 && /compute_cap/.test(outcome.stdout + outcome.stderr);
  return reportOf(refusesField ? await query(FIELDS.slice(0, -1)) : outcome);
}

/** One process holding device memory. */
export interface GpuProcess {
  readonly pid: number;
  readonly gpuUuid: string;
  /** Undefined where the driver does not tell (WSL, some containers). */
  readonly usedBytes: number | undefined;
}

/**
 * Compute processes on the given cards, all users'. Inside a container the driver may list nothing though memory is in
 * use: an empty list proves nothing.
 */
export async function processesOnGpus(ports: Ports, gpus: readonly Pick<Gpu, 'uuid'>[]): Promise<GpuProcess[]> {
  const { stdout } = await askNvidiaSmi(ports, '--query-compute-apps=pid,gpu_uuid,used_memory', FORMAT);
  const uuids = new Set(gpus.map((gpu) => gpu.uuid));
  return stdout.split(/[\r\n]+/).flatMap((line) => {
    const [pid, gpuUuid, used] = line.split(',').map((cell) => cell.trim());
    if (pid === undefined || !/^\d+$/.test(pid) || gpuUuid === undefined || !uuids.has(gpuUuid)) return [];
    return [{ pid: Number(pid), gpuUuid, usedBytes: parseMemoryCell(used ?? '') }];
  });
}

/**
 * Device memory in use, bytes: the *largest* `memory.used` among the given cards, not the sum, because every limit
 * and every estimate is per card. Includes other processes. Undefined: no driver, or it does not tell.
 */
export async function sampleNvidiaVram(ports: Ports, gpus: readonly Pick<Gpu, 'uuid'>[]): Promise<number | undefined> {
  const report = await queryGpus(ports);
  const uuids = new Set(gpus.map((gpu) => gpu.uuid));
  const used = report.gpus.filter((gpu) => uuids.has(gpu.uuid)).flatMap((gpu) => gpu.usedBytes ?? []);
  return used.length > 0 ? Math.max(...used) : undefined;
}
