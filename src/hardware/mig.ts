import type { Ports } from '../core/index.ts';
import type { Gpu } from './hardware.ts';
import { askNvidiaSmi, parseMemoryCell } from './nvidia-smi.ts';

/** The MIG slices of a machine by the UUID of the card they are cut from; cards without MIG are absent. */
export type MigSlices = ReadonlyMap<string, readonly Gpu[]>;

/** Whether a card can be cut into MIG slices at all: A30, A100, H100, B200, RTX PRO and their like. */
const canHaveMig = ({ computeCapability: cc, name }: Gpu): boolean =>
  cc !== undefined && !/geforce/i.test(name) && ((cc.major === 8 && cc.minor === 0) || cc.major >= 9);

/** `nvidia-smi -L`: a card's line followed by an indented line a slice. */
function listSlices(text: string): { parent: string; device: number; profile: string; uuid: string }[] {
  let parent = '';
  return text.split(/[\r\n]+/).flatMap((line) => {
    parent = /^GPU \d+:.*\(UUID:\s*(GPU-[^)]+)\)/.exec(line)?.[1] ?? parent;
    const slice = /^\s+MIG\s+(\S+)\s+Device\s+(\d+):\s*\(UUID:\s*(MIG-[^)]+)\)/.exec(line);
    return slice ? [{ parent, profile: slice[1]!, device: Number(slice[2]), uuid: slice[3]! }] : [];
  });
}

type Memory = Pick<Gpu, 'totalBytes' | 'usedBytes' | 'freeBytes'>;

/** Frame buffer of each slice from `nvidia-smi -q -x`, by `card's UUID / device number`; no CSV query has it. */
function sliceMemory(xml: string): Map<string, Memory> {
  const cell = (block: string, tag: string) =>
    parseMemoryCell(new RegExp(`<${tag}>([^<]*)</${tag}>`).exec(block)?.[1] ?? '');
  const found = new Map<string, Memory>();
  for (const card of xml.split(/<gpu id=/).slice(1)) {
    // The card's own UUID can stand after its slices, and some drivers give each slice one as well.
    const parent = /<uuid>\s*(GPU-[^<\s]+)\s*<\/uuid>/.exec(card)?.[1];
    for (const slice of card.split('<mig_device>').slice(1)) {
      const device = /<index>\s*(\d+)\s*<\/index>/.exec(slice)?.[1];
      const memory = /<fb_memory_usage>([\s\S]*?)<\/fb_memory_usage>/.exec(slice)?.[1];
      if (device === undefined || memory === undefined) continue;
      found.set(`${parent}/${Number(device)}`, {
        totalBytes: cell(memory, 'total'),
        usedBytes: cell(memory, 'used'),
        freeBytes: cell(memory, 'free'),
      });
    }
  }
  return found;
}

/** Reads the MIG slices of the given cards. A slice's memory counts for a run, never the card's. */
export async function readMigSlices(ports: Ports, gpus: readonly Gpu[]): Promise<MigSlices> {
  if (!gpus.some(canHaveMig)) return new Map();
  const listed = listSlices((await askNvidiaSmi(ports, '-L')).stdout);
  if (listed.length === 0) return new Map();
  const memory = sliceMemory((await askNvidiaSmi(ports, '-q', '-x')).stdout);
  const slices = new Map<string, Gpu[]>();
  for (const { parent, device, profile, uuid } of listed) {
    const card = gpus.find((gpu) => gpu.uuid === parent);
    if (!card) continue;
    const unknown: Memory = { totalBytes: undefined, usedBytes: undefined, freeBytes: undefined };
    const slice = {
      ...card,
      uuid,
      name: `${card.name} MIG ${profile}`,
      ...(memory.get(`${parent}/${device}`) ?? unknown),
    };
    slices.set(parent, [...(slices.get(parent) ?? []), slice]);
  }
  return slices;
}
