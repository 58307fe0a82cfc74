import { describe, expect, it } from 'vitest';
import { createLineWatcher, type OutputStream } from '../../src/diagnosis/index.ts';
import { oom, traceback } from './texts.ts';

type Piece = readonly [OutputStream, string | Uint8Array];
const bytes = (text: string | Uint8Array): Uint8Array =>
  typeof text === 'string' ? new TextEncoder().encode(text) : text;

function watch(pieces: readonly Piece[]) {
  const watcher = createLineWatcher();
  const hits = pieces.flatMap(([stream, text]) => watcher.push(stream, bytes(text)) ?? []);
  watcher.end();
  return { watcher, hits, ...watcher.evidence() };
}

const bar = (step: number): string => `\r ${step}%|█▌        | ${step}/100 [00:0${step % 10}<01:00,  1.33s/it]`;
const wrapped = oom().replace(/(.{78})/g, '$1\n');
const LONG = [
  'starting\r\n',
  bar(1) + bar(2),
  '\r\u001b[31m',
  traceback(['training_step: self.accelerator.backward(loss)', 'backward'], wrapped),
  '\u001b[0m\n',
  '[rank1]: RuntimeError: CUDA error: out of memory\r\n',
  'ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient shared memory (shm).\u0000\n',
  'last, without an end ███',
].join('');

describe('chunks', () => {
  const whole = bytes(LONG);
  const expected = watch([['stderr', whole]]);

  it('are seen as lines with their numbers, ranks and phase', () => {
    expect(expected.lines.map(({ line, rank, signature, phase }) => ({ line, rank, signature, phase }))).toEqual([
      { line: 7, rank: undefined, signature: 'torch-out-of-memory', phase: 'backward' },
      { line: 13, rank: 1, signature: 'cuda-runtime-out-of-memory', phase: undefined },
      { line: 14, rank: undefined, signature: 'shm-bus-error', phase: undefined },
    ]);
    expect(expected.tail.at(-1)).toBe('last, without an end ███');
  });

  it('may be cut at any byte', () => {
    for (let at = 0; at <= whole.length; at++) {
      const cut = watch([
        ['stderr', whole.slice(0, at)],
        ['stderr', whole.slice(at)],
      ]);
      expect(cut.lines, `cut at ${at}`).toEqual(expected.lines);
      expect(cut.tail, `cut at ${at}`).toEqual(expected.tail);
      expect(cut.watcher.fatal()?.line.line).toBe(7);
    }
  });

  it('may be single bytes', () => {
    const single = watch([...whole].map((byte) => ['stderr', Uint8Array.of(byte)] as const));
    expect(single.lines).toEqual(expected.lines);
    expect(single.tail).toEqual(expected.tail);
  });

  it('of two streams keep their own unfinished lines', () => {
    const { lines, tail } = watch([
      ['stdout', 'loss 0.5'],
      ['stderr', 'RuntimeError: CUDA er'],
      ['stdout', '2 at step 9\n'],
      ['stderr', 'ror: out of memory\n'],
    ]);
    // As in the log file: every change of stream inside a line starts a new one.
    expect(lines).toMatchObject([{ line: 2, stream: 'stderr', text: 'RuntimeError: CUDA error: out of memory' }]);
    expect(tail).toContain('loss 0.52 at step 9');
  });

  it('may hold a line without an end, as long as it is', () => {
    const blob = 'A'.repeat(300_000);
    const { lines } = watch([
      ['stdout', blob],
      ['stdout', `\rMemoryError\n${blob}`],
    ]);
    expect(lines).toMatchObject([{ signature: 'python-memory-error', line: 1 }]);
  });
});

describe('a fatal line', () => {
  it('is reported by the chunk that brings it', () => {
    expect(
      watch([
        ['stderr', 'fine\n'],
        ['stderr', `${oom()}\n`],
        ['stderr', 'more\n'],
      ]).hits,
    ).toMatchObject([{ signature: 'torch-out-of-memory', resource: 'vram', line: { line: 2 } }]);
  });

  it('is reported before its line is ended', () => {
    const watcher = createLineWatcher();
    expect(watcher.push('stderr', bytes('MemoryErr'))).toBeUndefined();
    expect(watcher.push('stderr', bytes('or'))).toMatchObject({ signature: 'python-memory-error' });
    expect(watcher.evidence().lines).toEqual([]);
    watcher.end();
    expect(watcher.evidence().lines).toHaveLength(1);
  });

  it('is none for a full disk, another error, a quotation or a warning', () => {
    const harmless = [
      'OSError: [Errno 28] No space left on device',
      'ValueError: wrong shape',
      `"${oom()}"`,
      `2031-02-03 04:05:06 | WARNING | trainer | ran out of memory, skipping batch`,
      'failed (exitcode: -9) local_rank: 0 (pid: 1) of binary: python',
    ];
    const { hits, watcher } = watch(harmless.map((text) => ['stderr', `${text}\n`] as const));
    expect(hits).toEqual([]);
    expect(watcher.fatal()).toBeUndefined();
  });

  it('is taken back when training goes on for more than a step', () => {
    const watcher = createLineWatcher();
    const push = (text: string) => watcher.push('stderr', bytes(text));
    push(bar(4) + bar(5));
    expect(push(`\n${oom()}\n`)).toBeDefined();
    push(bar(6));
    expect(watcher.fatal()).toBeDefined();
    push(`${bar(7)}\n`);
    expect(watcher.fatal()).toBeUndefined();
    // The same error once more is a new one.
    expect(push(`${oom()}\n`)).toBeDefined();
    expect(watcher.fatal()).toBeDefined();
  });

  it('is not taken back by another bar that fills', () => {
    const watcher = createLineWatcher();
    const loading = (part: number) => `\rLoading checkpoint shards:  ${part}0%|##   | ${part}/9 [00:01<00:02]`;
    watcher.push('stderr', bytes(`[rank1]: ${oom()}\n`));
    watcher.push('stderr', bytes(loading(1) + loading(2) + loading(3) + loading(4)));
    expect(watcher.fatal()).toBeDefined();
  });
});

describe('what is kept', () => {
  it('is bounded, first and last', () => {
    let log = '';
    for (let rank = 0; rank < 3000; rank++) log += `[rank${rank}]: RuntimeError: CUDA error: out of memory\n`;
    const { lines, tail } = watch([['stderr', log]]);
    expect(lines.length).toBeLessThan(64);
    expect(lines[0]?.rank).toBe(0);
    expect(lines.at(-1)?.rank).toBe(2999);
    expect(tail.length).toBeLessThan(4000);
  });

  it('is not pushed out by a flood of something else', () => {
    const rows = (from: number) =>
      Array.from({ length: 500 }, (_, at) => `ValueError: bad row ${from + at}\n`).join('');
    const { lines } = watch([['stderr', `${rows(0)}${oom()}\n${rows(500)}`]]);
    expect(lines.map((line) => line.signature)).toContain('torch-out-of-memory');
    expect(lines.length).toBeLessThan(20);
  });

  it('names a message once, however often it is printed', () => {
    expect(watch([['stderr', `${oom()}\n${oom()}\n[rank1]: ${oom()}\n`]]).lines.map((line) => line.rank)).toEqual([
      undefined,
      1,
    ]);
  });

  it('shows a bar that moves as one line', () => {
    const { tail } = watch([['stderr', `begin\n${bar(1)}${bar(2)}${bar(3)}\nend\n`]]);
    expect(tail).toHaveLength(3);
    expect(tail[1]).toContain('3/100');
  });
});
