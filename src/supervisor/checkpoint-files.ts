import type { FilePort } from '../core/index.ts';

/** Why a file cannot be used; undefined when it looks whole. */
export type Flaw = string | undefined;

const HEADER_LIMIT = 256 * 1024 * 1024;
/** End record of a zip archive: 22 bytes and a comment of at most 64 KiB. */
const ZIP_END_REACH = 22 + 0xffff;
const ZIP_START = [0x50, 0x4b, 0x03, 0x04];
const ZIP_END = [0x50, 0x4b, 0x05, 0x06];

/** An empty zip is its end record; no pickle of a state is shorter. */
const SMALLEST_TORCH_FILE = 22;

const isAt = (bytes: Uint8Array, index: number, signature: readonly number[]): boolean =>
  signature.every((byte, offset) => bytes[index + offset] === byte);

/**
 * A safetensors file is whole when its length is 8 + header + the end of the last tensor; a save that was cut off is shorter.
 * Source: the format's description in the safetensors README.
 */
export function findSafetensorsFlaw(path: string, files: FilePort): Flaw {
  const info = files.info(path);
  if (info?.kind !== 'file') return 'is missing';
  const start = files.readBytes(path, 0, 8);
  if (!start.ok || start.value.length < 8) return 'is too short for a header';
  const headerBytes = Number(new DataView(start.value.buffer, start.value.byteOffset, 8).getBigUint64(0, true));
  if (headerBytes > HEADER_LIMIT || 8 + headerBytes > info.sizeBytes) return 'ends inside its header';
  const header = files.readBytes(path, 8, headerBytes);
  if (!header.ok) return `cannot be read (${header.code})`;
  let tensors: Record<string, { data_offsets?: [number, number] }>;
  try {
    tensors = JSON.parse(new TextDecoder().decode(header.value));
  } catch {
    return 'has a broken header';
  }
  const dataBytes = Object.values(tensors).reduce((end, tensor) => Math.max(end, tensor.data_offsets?.[1] ?? 0), 0);
  const wanted = 8 + headerBytes + dataBytes;
  return info.sizeBytes === wanted ? undefined : `has ${info.sizeBytes} bytes where its header promises ${wanted}`;
}

/** A file of `torch.save`: a zip archive is whole when its end record is there; the older pickle form only shows that it is not empty. */
export function findTorchFileFlaw(path: string, files: FilePort): Flaw {
  const info = files.info(path);
  if (info?.kind !== 'file') return 'is missing';
  if (info.sizeBytes === 0) return 'is empty';
  const start = files.readBytes(path, 0, 4);
  if (!start.ok) return `cannot be read (${start.code})`;
  if (!isAt(start.value, 0, ZIP_START)) {
    return info.sizeBytes < SMALLEST_TORCH_FILE ? 'was cut off (shorter than any saved object)' : undefined;
  }
  const reach = Math.min(info.sizeBytes, ZIP_END_REACH);
  const end = files.readBytes(path, info.sizeBytes - reach, reach);
  if (!end.ok) return `cannot be read (${end.code})`;
  for (let at = end.value.length - 22; at >= 0; at--) if (isAt(end.value, at, ZIP_END)) return undefined;
  return 'was cut off (no zip end record)';
}

/** A file of either form, told by its name. */
export const findWeightsFlaw = (path: string, files: FilePort): Flaw =>
  path.endsWith('.safetensors') ? findSafetensorsFlaw(path, files) : findTorchFileFlaw(path, files);
