import { MiB, type Ports, type ProgramOutcome } from '../core/index.ts';
import type { Gpu } from './hardware.ts';

const TIMEOUT_MS = 5000;

/** What AMD's tools said, and which of them. */
export interface AmdReport {
  readonly gpus: readonly Gpu[];
  readonly source: 'rocm-smi' | 'amd-smi' | 'none';
  readonly notes: readonly string[];
}

/** Less is the frame buffer of a processor's own graphics, on which nobody trains. */
const SMALLEST = 2048 * MiB;

type Fields = Readonly<Record<string, unknown>>;

/** The JSON in an output that warnings may precede; undefined: there is none. */
function jsonIn({ stdout }: ProgramOutcome): unknown {
  const start = stdout.search(/[[{]/);
  if (start < 0) return undefined;
  try {
    return JSON.parse(stdout.slice(start));
  } catch {
    return undefined;
  }
}

const isFields = (value: unknown): value is Fields =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

/** A field whatever its letters' case: ROCm 5 prints `Card series`, ROCm 6 `Card Series`. */
function textOf(fields: Fields, ...names: readonly string[]): string | undefined {
  const entries = new Map(Object.entries(fields).map(([key, value]) => [key.toLowerCase(), value]));
  return names
    .map((name) => entries.get(name.toLowerCase()))
    .map((value) => (typeof value === 'number' ? String(value) : value))
    .find((value): value is string => typeof value === 'string' && value !== '' && value !== 'N/A');
}

const bytesIn = (text: string | undefined): number | undefined =>
  text && /^\d+$/.test(text) ? Number(text) : undefined;

/** `rocm-smi --json`: one object a card under `card0`, `card1`, …, memory in bytes. */
function rocmGpus(json: unknown): readonly Gpu[] {
  if (!isFields(json)) return [];
  return Object.entries(json).flatMap(([key, card]) => {
    const index = /^card(\d+)$/.exec(key)?.[1];
    if (index === undefined || !isFields(card)) return [];
    const totalBytes = bytesIn(textOf(card, 'VRAM Total Memory (B)'));
    const usedBytes = bytesIn(textOf(card, 'VRAM Total Used Memory (B)'));
    return [
      amdGpu(
        Number(index),
        textOf(card, 'Card Series', 'Device Name', 'Card Model'),
        totalBytes,
        usedBytes,
        textOf(card, 'Unique ID'),
      ),
    ];
  });
}

/** `{"value": 196592, "unit": "MB"}`; AMD's MB are MiB. */
function amountIn(value: unknown): number | undefined {
  if (!isFields(value) || typeof value.value !== 'number') return undefined;
  const units: Readonly<Record<string, number>> = { B: 1, KB: 1024, MB: MiB, GB: 1024 * MiB };
  const unit = units[String(value.unit)];
  return unit === undefined ? undefined : Math.round(value.value * unit);
}

/** `amd-smi … --json`: a list, since ROCm 7 inside `gpu_data`. */
const listIn = (json: unknown): readonly Fields[] => {
  const list = isFields(json) ? json.gpu_data : json;
  return Array.isArray(list) ? list.filter(isFields) : [];
};

function amdSmiGpus(metric: unknown, asic: unknown): readonly Gpu[] {
  const names = new Map(listIn(asic).map((card) => [card.gpu, isFields(card.asic) ? card.asic : {}]));
  return listIn(metric).flatMap((card) => {
    const memory = card.mem_usage;
    if (typeof card.gpu !== 'number' || !isFields(memory)) return [];
    const known = names.get(card.gpu) ?? {};
    return [
      amdGpu(
        card.gpu,
        textOf(known, 'market_name'),
        amountIn(memory.total_vram),
        amountIn(memory.used_vram),
        textOf(known, 'asic_serial'),
      ),
    ];
  });
}

const amdGpu = (
  index: number,
  name: string | undefined,
  totalBytes: number | undefined,
  usedBytes: number | undefined,
  id: string | undefined,
): Gpu => ({
  index,
  uuid: id ?? `card${index}`,
  name: name ?? 'AMD GPU',
  totalBytes,
  usedBytes,
  freeBytes: totalBytes === undefined || usedBytes === undefined ? undefined : totalBytes - usedBytes,
  computeCapability: undefined,
});

/** What went wrong with a tool, as a note; undefined: it is not installed. */
function trouble(tool: string, outcome: ProgramOutcome): string | undefined {
  if (outcome.failure === 'not-found') return undefined;
  if (outcome.failure === 'timeout') return `${tool} did not answer within ${TIMEOUT_MS / 1000} s and was stopped`;
  if (outcome.exitCode !== 0) return `${tool} ended with exit code ${outcome.exitCode ?? 'none'}`;
  return `${tool} listed no card`;
}

/**
 * Asks AMD's tools for the cards: `rocm-smi`, and where that is missing or says nothing `amd-smi`, which follows it
 * (https://rocm.docs.amd.com/projects/amdsmi). Never fails: what went wrong is a note. Memory in bytes.
 */
export async function queryAmdGpus(ports: Ports): Promise<AmdReport> {
  const ask = (tool: string, ...args: string[]) => ports.programs.run(tool, args, { timeoutMs: TIMEOUT_MS });
  const rocm = await ask('rocm-smi', '--showproductname', '--showuniqueid', '--showmeminfo', 'vram', '--json');
  const listed = rocmGpus(jsonIn(rocm));
  if (listed.length > 0) return withoutSmall({ gpus: listed, source: 'rocm-smi', notes: [] });
  const metric = await ask('amd-smi', 'metric', '--mem-usage', '--json');
  const gpus =
    metric.exitCode === 0 ? amdSmiGpus(jsonIn(metric), jsonIn(await ask('amd-smi', 'static', '--asic', '--json'))) : [];
  if (gpus.length > 0) return withoutSmall({ gpus, source: 'amd-smi', notes: [] });
  const notes = [trouble('rocm-smi', rocm), trouble('amd-smi', metric)].filter((note) => note !== undefined);
  return { gpus: [], source: 'none', notes };
}

function withoutSmall(report: AmdReport): AmdReport {
  const isSmall = ({ totalBytes }: Gpu): boolean => totalBytes !== undefined && totalBytes < SMALLEST;
  const small = report.gpus.filter(isSmall);
  if (small.length === 0) return report;
  return {
    ...report,
    gpus: report.gpus.filter((gpu) => !isSmall(gpu)),
    notes: [
      ...report.notes,
      ...small.map(({ name, index }) => `${name} (card ${index}) is a processor's own graphics and left out`),
    ],
  };
}

/** The largest use among the given cards, bytes; undefined: the tool does not tell. */
export async function sampleAmdVram(ports: Ports, gpus: readonly Pick<Gpu, 'uuid'>[]): Promise<number | undefined> {
  const uuids = new Set(gpus.map(({ uuid }) => uuid));
  const used = (await queryAmdGpus(ports)).gpus.flatMap(({ uuid, usedBytes }) =>
    uuids.has(uuid) ? (usedBytes ?? []) : [],
  );
  return used.length > 0 ? Math.max(...used) : undefined;
}
