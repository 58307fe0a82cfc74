import { join } from 'node:path';
import { err, ok, type Ports, type Result } from '../core/index.ts';

/** One tensor of a safetensors file, as stored. */
export interface StoredTensor {
  readonly name: string;
  /** `BF16`, `F32`, `U8`, … */
  readonly dtype: string;
  readonly shape: readonly number[];
  /** Bytes in the file. */
  readonly bytes: number;
}

/** A safetensors file as its header describes it. */
export interface SafetensorsHeader {
  readonly tensors: readonly StoredTensor[];
  /** What the whole file must measure, bytes: length, header and data. */
  readonly fileBytes: number;
}

/** The format's own limit on a header, bytes. Source: huggingface/safetensors, README, "Format". */
const HEADER_LIMIT_BYTES = 100_000_000;

const isSize = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;

function readTensor(name: string, entry: unknown): StoredTensor | undefined {
  const { dtype, shape, data_offsets: offsets } = (entry ?? {}) as Record<string, unknown>;
  if (typeof dtype !== 'string' || !Array.isArray(shape) || !shape.every(isSize)) return undefined;
  if (!Array.isArray(offsets) || offsets.length !== 2 || !offsets.every(isSize) || offsets[1]! < offsets[0]!) {
    return undefined;
  }
  return { name, dtype, shape, bytes: offsets[1]! - offsets[0]! };
}

/**
 * Reads the tensors listed in a safetensors header without touching their data: eight bytes of little-endian length,
 * then JSON. The error is one sentence (truncated, corrupt, not readable).
 */
export function readSafetensorsHeader(ports: Ports, path: string): Result<SafetensorsHeader, string> {
  const start = ports.files.readBytes(path, 0, 8);
  if (!start.ok) return err(`cannot be read (${start.code})`);
  if (start.value.byteLength < 8) return err('is too short to hold a safetensors header');
  const view = new DataView(start.value.buffer, start.value.byteOffset, 8);
  const length = Number(view.getBigUint64(0, true));
  if (length > HEADER_LIMIT_BYTES) return err(`is no safetensors file (a header of ${length} bytes)`);
  const header = ports.files.readBytes(path, 8, length);
  if (!header.ok) return err(`cannot be read (${header.code})`);
  if (header.value.byteLength < length) return err('ends inside its safetensors header');
  let json: unknown;
  try {
    json = JSON.parse(new TextDecoder().decode(header.value));
  } catch {
    return err('has a safetensors header that is not JSON');
  }
  if (typeof json !== 'object' || json === null || Array.isArray(json))
    return err('has a safetensors header that is not an object');
  const entries = Object.entries(json).filter(([name]) => name !== '__metadata__');
  const tensors = entries.flatMap(([name, entry]) => readTensor(name, entry) ?? []);
  if (tensors.length < entries.length) return err('has a safetensors header with entries that are no tensors');
  return ok({ tensors, fileBytes: 8 + length + tensors.reduce((sum, { bytes }) => sum + bytes, 0) });
}

/** What the weight files in a folder say. Everything is undefined where no complete set of files is there. */
export interface StoredCheckpoint {
  /** Bytes of all weight files. */
  readonly checkpointBytes?: number;
  readonly largestShardBytes?: number;
  /** Elements of all tensors, packed ones (4-bit, 8-bit) as stored. */
  readonly storedParameters?: number;
  /** Every tensor of the checkpoint, data not included. */
  readonly storedTensors?: readonly StoredTensor[];
  readonly notes: readonly string[];
}

interface WeightFile {
  readonly name: string;
  readonly sizeBytes: number | undefined;
}

/** The files that make up the checkpoint: those of the index where there is one, else those that look like weights. */
function listWeightFiles(ports: Ports, folder: string, ending: 'safetensors' | 'bin'): WeightFile[] | string {
  const stem = ending === 'safetensors' ? 'model' : 'pytorch_model';
  const withSize = (name: string): WeightFile => {
    const info = ports.files.info(join(folder, name));
    return { name, sizeBytes: info?.kind === 'file' ? info.sizeBytes : undefined };
  };
  const indexName = `${stem}.${ending}.index.json`;
  const index = ports.files.readText(join(folder, indexName));
  if (index.ok) {
    const names = namesInIndex(index.value);
    return names ? names.map(withSize) : `${indexName} cannot be understood`;
  }
  // Without an index transformers loads the one file; numbered ones are shards whose index is missing.
  const pattern = new RegExp(`^${stem}(-\\d+-of-\\d+)?\\.${ending}$`);
  return ports.files
    .list(folder)
    .filter((name) => pattern.test(name))
    .map(withSize);
}

function namesInIndex(text: string): string[] | undefined {
  try {
    const { weight_map: map } = JSON.parse(text) as { weight_map?: Record<string, unknown> };
    const names = [...new Set(Object.values(map ?? {}))];
    const areNames = names.every((name) => typeof name === 'string' && !/[/\\]/.test(name));
    return names.length > 0 && areNames ? (names as string[]) : undefined;
  } catch {
    return undefined;
  }
}

const elementsOf = ({ shape }: StoredTensor): number => shape.reduce((product, size) => product * size, 1);

function countParameters(
  ports: Ports,
  folder: string,
  files: readonly WeightFile[],
): Pick<StoredCheckpoint, 'storedParameters' | 'storedTensors' | 'notes'> {
  let storedParameters = 0;
  const storedTensors: StoredTensor[] = [];
  for (const { name, sizeBytes } of files) {
    const header = readSafetensorsHeader(ports, join(folder, name));
    if (!header.ok) return { notes: [`${join(folder, name)} ${header.error}`] };
    const { tensors, fileBytes } = header.value;
    if (sizeBytes! < fileBytes) {
      return { notes: [`${join(folder, name)} is cut short: ${sizeBytes} of ${fileBytes} bytes are there`] };
    }
    storedTensors.push(...tensors);
    storedParameters += tensors.reduce((sum, tensor) => sum + elementsOf(tensor), 0);
  }
  return { storedParameters, storedTensors, notes: [] };
}

/** Measures the checkpoint in a model folder: safetensors first, as transformers does, then .bin files by their size. */
export function measureCheckpoint(ports: Ports, folder: string): StoredCheckpoint {
  for (const ending of ['safetensors', 'bin'] as const) {
    const files = listWeightFiles(ports, folder, ending);
    if (typeof files === 'string') return { notes: [`${join(folder, files)}`] };
    if (files.length === 0) continue;
    const sizes = files.flatMap(({ sizeBytes }) => sizeBytes ?? []);
    // A cache often holds the index alone, fetched for its config: nothing to measure, and nothing odd about it.
    if (sizes.length === 0) continue;
    if (sizes.length < files.length) {
      return { notes: [`${folder} holds ${sizes.length} of the ${files.length} weight files its index names`] };
    }
    return {
      checkpointBytes: sizes.reduce((sum, size) => sum + size, 0),
      largestShardBytes: Math.max(...sizes),
      ...(ending === 'safetensors' ? countParameters(ports, folder, files) : { notes: [] }),
    };
  }
  return { notes: [] };
}
