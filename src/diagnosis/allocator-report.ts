import { parseBytes } from '../core/index.ts';
import type { FailureNumbers } from './failure.ts';

/** What one allocator message says, bytes. */
export interface AllocatorReport extends FailureNumbers {
  readonly device?: number;
  /** What the process itself holds on the device, context and libraries included. */
  readonly selfBytes?: number;
  /** Other clauses of the form `Process N has M memory in use`. */
  readonly processes: readonly { readonly pid: number; readonly bytes: number }[];
  /** `Tried to allocate more than 1EB`: a garbage size, never a question of capacity. */
  readonly garbageSize?: boolean;
}

const SIZE = String.raw`(\d+(?:\.\d+)?\s?(?:bytes?|[KMGT]i?B|B))`;
const size = (text: string | undefined): number | undefined => (text === undefined ? undefined : parseBytes(text));

const TRIED = new RegExp(`[Tt]ried to allocate ${SIZE}`);
const GARBAGE = /more than 1EB memory/;
const NEW_TEXT = new RegExp(
  String.raw`GPU\s*(\d*)\s+has a total capaci?ty of ${SIZE}(?:[\s\S]{0,20}?of which ${SIZE} is free)?`,
);
const PROCESS = new RegExp(String.raw`Process (\d+) has ${SIZE} memory in use`, 'g');
const SELF = new RegExp(`this process has ${SIZE} memory in use`);
const ALLOCATED = new RegExp(`Of the allocated memory ${SIZE} is allocated by PyTorch`);
const UNALLOCATED = new RegExp(`and ${SIZE} is reserved by PyTorch but unallocated`);
const OLD_TEXT = new RegExp(
  String.raw`\((?:GPU|NPU|MLU|XPU|HPU|MUSA) (\d+); ${SIZE} total capacity; ${SIZE} already allocated; (?:${SIZE} current active; )?${SIZE} free; (?:${SIZE} allowed; )?${SIZE} (reserved in total|cached)`,
);

function defined<T extends object>(record: T): { [K in keyof T]: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(record).filter(([, value]) => value !== undefined)) as never;
}

/**
 * Reads the message of PyTorch's caching allocator in any of its four wordings. Source of the fields: torch
 * `c10/cuda/CUDACachingAllocator.cpp`; 1.0 to 1.3 name the cache without the allocated part, 1.4 to 2.0 the whole reserve.
 */
export function readAllocatorText(text: string): AllocatorReport {
  const old = OLD_TEXT.exec(text);
  const tried = { triedBytes: size(TRIED.exec(text)?.[1]), garbageSize: GARBAGE.test(text) || undefined };
  if (old) {
    const allocatedBytes = size(old[3])!;
    const reserve = size(old[7])!;
    return {
      ...defined({
        ...tried,
        device: Number(old[1]),
        totalBytes: size(old[2]),
        allocatedBytes,
        freeBytes: size(old[5]),
        reservedUnallocatedBytes: old[8] === 'cached' ? reserve : Math.max(0, reserve - allocatedBytes),
      }),
      processes: [],
    };
  }
  const now = NEW_TEXT.exec(text);
  return {
    ...defined({
      ...tried,
      device: now?.[1] ? Number(now[1]) : undefined,
      totalBytes: size(now?.[2]),
      freeBytes: size(now?.[3]),
      selfBytes: size(SELF.exec(text)?.[1]),
      allocatedBytes: size(ALLOCATED.exec(text)?.[1]),
      reservedUnallocatedBytes: size(UNALLOCATED.exec(text)?.[1]),
    }),
    processes: [...text.matchAll(PROCESS)].map((match) => ({ pid: Number(match[1]), bytes: size(match[2])! })),
  };
}

const COUNTED: readonly (keyof AllocatorReport)[] = [
  'triedBytes',
  'totalBytes',
  'freeBytes',
  'allocatedBytes',
  'reservedUnallocatedBytes',
  'selfBytes',
];

/** How many of the message's figures were read. */
export const countNumbers = (report: AllocatorReport): number =>
  COUNTED.filter((key) => report[key] !== undefined).length;

/** Reads a message that was wrapped hard, inside words or between them: the reading with more numbers wins. */
export function readWrapped(
  message: string,
  read: (text: string) => AllocatorReport = readAllocatorText,
): AllocatorReport {
  const views = [message, message.replace(/\s*\n\s*/g, ' '), message.replace(/\n/g, ''), message.replace(/\n\s*/g, '')];
  return views.map(read).reduce((best, next) => (countNumbers(next) > countNumbers(best) ? next : best));
}

/** The numbers of a `Failure`, without what only the arithmetic needs. */
export const numbersOf = (report: AllocatorReport): FailureNumbers =>
  defined({
    triedBytes: report.triedBytes,
    totalBytes: report.totalBytes,
    freeBytes: report.freeBytes,
    allocatedBytes: report.allocatedBytes,
    reservedUnallocatedBytes: report.reservedUnallocatedBytes,
  });

/** Reads rows of `name : size`, as other allocators print them. */
export function readRows(rows: Readonly<Record<string, RegExp>>, text: string): AllocatorReport {
  const read = Object.entries(rows).map(([key, pattern]) => [key, size(pattern.exec(text)?.[1])] as const);
  return { ...Object.fromEntries(read.filter(([, bytes]) => bytes !== undefined)), processes: [] };
}
