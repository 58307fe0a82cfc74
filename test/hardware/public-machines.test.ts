import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { KiB, MiB, type ProgramOutcome } from '../../src/core/index.ts';
import { detectHardware, type Gpu } from '../../src/hardware/index.ts';
import { fakePorts } from '../support/fake-ports.ts';

/** A machine as somebody published what its tools print: the form is theirs, the values are ours. */
interface Machine {
  readonly shows: string;
  /** Where the output can be read. */
  readonly source: string;
  /** Of the tool, driver or system that printed it. */
  readonly version: string;
  readonly platform?: string;
  readonly environment?: Readonly<Record<string, string>>;
  /** Beginning of a command line → its answer; the first that matches. */
  readonly programs: Readonly<Record<string, Partial<ProgramOutcome>>>;
  readonly files: Readonly<Record<string, string>>;
  readonly others?: readonly string[];
  readonly expected: {
    readonly source: string;
    /** `index name total/used/free in MiB capability`. */
    readonly gpus: readonly string[];
    /** Patterns, each of which is in some note. */
    readonly notes?: readonly string[];
    readonly hostAvailableKiB?: number;
    readonly limitedBy?: string;
  };
}

const FOLDER = join(import.meta.dirname, '../fixtures/hardware');
const MACHINES = readdirSync(FOLDER).map(
  (file) => [file, JSON.parse(readFileSync(join(FOLDER, file), 'utf8')) as Machine] as const,
);

const inMib = (bytes: number | undefined): string =>
  bytes === undefined ? '?' : String(Math.round((10 * bytes) / MiB) / 10);

const shown = ({
  index,
  name,
  totalBytes,
  usedBytes,
  freeBytes,
  computeCapability: cc,
  sharesHostMemory,
}: Gpu): string =>
  `${index} ${name} ${[totalBytes, usedBytes, freeBytes].map(inMib).join('/')} ${cc ? `${cc.major}.${cc.minor}` : '?'}${sharesHostMemory ? ' shared' : ''}`;

describe('machines re-created from public reports', () => {
  it.each(MACHINES)('%s', async (_, { platform, environment = {}, programs, files, others = [], expected }) => {
    const ports = fakePorts({
      files,
      others,
      environment,
      ...(platform ? { platform } : {}),
      programs: (file, args) => {
        const line = [file, ...args].join(' ');
        return Object.entries(programs).find(([start]) => line.startsWith(start))?.[1];
      },
    });
    const hardware = await detectHardware(ports);
    if (!hardware.ok) throw new Error(JSON.stringify(hardware.error));
    const { gpus, source, notes, host } = hardware.value;
    expect(gpus.map(shown)).toEqual(expected.gpus);
    expect(source).toBe(expected.source);
    for (const pattern of expected.notes ?? []) expect(notes.join('\n')).toMatch(new RegExp(pattern));
    if (expected.hostAvailableKiB !== undefined) {
      expect(host?.availableBytes).toBe(Math.round(expected.hostAvailableKiB * KiB));
    }
    if (expected.limitedBy !== undefined) expect(host?.limitedBy).toBe(expected.limitedBy);
  });

  it('are at least twenty-five, each with its source and version', () => {
    expect(MACHINES.length).toBeGreaterThanOrEqual(25);
    for (const [, { source, version }] of MACHINES) {
      expect(source).toMatch(/^https:\/\//);
      expect(version.length).toBeGreaterThan(3);
    }
  });
});
