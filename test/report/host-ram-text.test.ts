import { expect, it } from 'vitest';
import { GiB, MiB } from '../../src/core/index.ts';
import { type HostRamOut, hostRamLines } from '../../src/report/host-ram-text.ts';
import { type RunEvent, renderRunEvent, runEventJson } from '../../src/report/index.ts';

const out: HostRamOut = {
  phase: 'forward',
  seenBytes: 30.2 * GiB,
  limitBytes: 32 * GiB,
  availableBytes: 31.4 * GiB,
  limitedBy: 'MemAvailable',
  levers: [
    { lever: 'workers', workers: 12, ranks: 2, savesBytes: 2.5 * GiB },
    { lever: 'ranks', workers: 12, ranks: 2, savesBytes: undefined },
  ],
};

it('says how much was seen, how much there was, and what would help', () => {
  const lines = hostRamLines(out);
  expect(lines[0]).toBe(
    'host RAM ran out: 30.2 GiB seen in all processes of the run, 31.4 GiB were available before (MemAvailable), 32.0 GiB is the most there can be',
  );
  expect(lines[1]).toBe('  would help: fewer DataLoader workers (dataloader_num_workers is 12): about 2.5 GiB less');
  expect(lines[2]).toMatch(/would help: fewer processes on this machine \(there were 2/);
  expect(lines[2]).not.toMatch(/less$/);
  expect(lines.at(-1)).toMatch(/more RAM/);
  expect(lines.join('\n')).not.toMatch(/GPU memory|batch/);
});

it('speaks of the phase, and leaves out what is not known', () => {
  const bare = { ...out, seenBytes: 0, limitBytes: undefined, availableBytes: undefined, levers: [] };
  expect(hostRamLines(bare)[0]).toBe('host RAM ran out');
  expect(hostRamLines({ ...bare, phase: 'load' }).join('\n')).toMatch(/dtype of its checkpoint/);
  expect(hostRamLines(bare).join('\n')).not.toMatch(/dtype of its checkpoint/);
});

it('is an event like the others', () => {
  const event: RunEvent = { kind: 'host-ram-out', ...out, seenBytes: 700 * MiB };
  const text = renderRunEvent(event, { colour: false, width: 100, unicode: true });
  expect(text.split('\n').every((line) => line.startsWith('snug: '))).toBe(true);
  expect(runEventJson(event)).toMatchObject({
    event: 'host-ram-out',
    seen_bytes: 700 * MiB,
    available_bytes: 31.4 * GiB,
    levers: [{ lever: 'workers', workers: 12, ranks: 2, saves_bytes: 2.5 * GiB }, { saves_bytes: null }],
  });
});
