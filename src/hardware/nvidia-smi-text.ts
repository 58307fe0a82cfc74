import { MiB } from '../core/index.ts';

/** A card as a saved output of nvidia-smi shows it. */
export interface ShownGpu {
  readonly index: number;
  readonly name: string;
  readonly usedBytes: number;
  readonly totalBytes: number;
}

/** A process as it shows it. */
export interface ShownProcess {
  readonly index: number | undefined;
  readonly pid: number;
  readonly name: string;
  readonly usedBytes: number;
}

export interface ShownCards {
  readonly gpus: readonly ShownGpu[];
  readonly processes: readonly ShownProcess[];
}

// |   0  NVIDIA A100-SXM4-80GB          On  | 00000000:01:00.0 Off |
const HEAD = /^\|\s+(\d+)\s+(\S.*?)\s+(?:On|Off|N\/A|WDDM|TCC)\s*\|/;
// | N/A   34C    P0    62W / 400W |  70012MiB / 81920MiB |
const USE = /(\d+)MiB\s*\/\s*(\d+)MiB/;
// |    0   N/A  N/A     31337      C   python3                    41120MiB |
const PROCESS = /^\|\s+(\d+)\s+(?:\S+\s+\S+\s+)?(\d+)\s+([CGM+]+)\s+(\S.*?)\s+(\d+)MiB\s*\|/;

const bytes = (text: string): number => Number(text) * MiB;

/** One line of `--query-gpu=index,name,memory.used,memory.total` in any order of its columns, by the header above it. */
function csvRow(header: readonly string[], line: string): Readonly<Record<string, string>> | undefined {
  const cells = line.split(',').map((cell) => cell.trim());
  return cells.length === header.length ? Object.fromEntries(header.map((name, at) => [name, cells[at]!])) : undefined;
}

const sizeIn = (cell: string | undefined): number | undefined => {
  const match = /^(\d+)(?: MiB)?$/.exec(cell ?? '');
  return match ? bytes(match[1]!) : undefined;
};

/**
 * Reads what `nvidia-smi` printed: its table, or the CSV of a query with a header. Display processes (type G) are left out. What is
 * not understood is passed over.
 */
export function readNvidiaSmiText(text: string): ShownCards {
  const gpus: ShownGpu[] = [];
  const processes: ShownProcess[] = [];
  let head: { index: number; name: string } | undefined;
  let header: readonly string[] | undefined;
  for (const line of text.split(/\r?\n/)) {
    const process = PROCESS.exec(line);
    if (process) {
      const [, index, pid, type, name, used] = process;
      if (type !== 'G')
        processes.push({ index: Number(index), pid: Number(pid), name: name!, usedBytes: bytes(used!) });
      continue;
    }
    const begins = HEAD.exec(line);
    if (begins) head = { index: Number(begins[1]), name: begins[2]! };
    const use = USE.exec(line);
    if (use && head) {
      gpus.push({ ...head, usedBytes: bytes(use[1]!), totalBytes: bytes(use[2]!) });
      head = undefined;
    }
    if (/^(?:index|name|pid|gpu_uuid|timestamp|uuid|process_name)\s*,/.test(line)) {
      header = line.split(',').map((cell) => cell.trim().replace(/ \[.*$/, ''));
      continue;
    }
    const row = header && csvRow(header, line);
    if (!row) continue;
    const used = sizeIn(row['memory.used']);
    const total = sizeIn(row['memory.total']);
    if (used !== undefined && total !== undefined)
      gpus.push({
        index: Number(row.index ?? gpus.length),
        name: row.name ?? 'GPU',
        usedBytes: used,
        totalBytes: total,
      });
    const held = sizeIn(row.used_memory ?? row.used_gpu_memory);
    if (row.pid !== undefined && held !== undefined)
      processes.push({
        index: undefined,
        pid: Number(row.pid),
        name: row.process_name ?? row.name ?? '?',
        usedBytes: held,
      });
  }
  return { gpus, processes };
}
