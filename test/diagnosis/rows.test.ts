import { describe, expect, it } from 'vitest';
import { bar, ELSEWHERE, GOES_ON, MEMORY, NEVER, QUOTED, ROWS, UNDECIDED } from './rows.ts';
import { oom, readText, traceback } from './texts.ts';

describe.each(Object.entries(ROWS))('%s', (_, rows) => {
  it.each(rows)('%s', (text, kind, resource, lookAlike) => {
    expect(readText(text)).toMatchObject({ kind, resource });
    const other = readText(lookAlike);
    expect(other?.resource === resource ? other : undefined).toBeUndefined();
    expect(MEMORY).not.toContain(other?.resource);
  });
});

describe('what others print', () => {
  it.each(ELSEWHERE)('%s', (text, kind, resource, lookAlike) => {
    expect(readText(text)).toMatchObject({ kind, resource });
    expect(MEMORY).not.toContain(readText(lookAlike)?.resource);
  });

  it.each(UNDECIDED)('%s', (text, lookAlike) => {
    expect(readText(text)).toMatchObject({ kind: 'unknown', candidates: expect.arrayContaining(['host_ram']) });
    expect(readText(lookAlike)?.candidates ?? []).not.toContain('host_ram');
  });

  it('a full /dev/shm is reported as a full disk', () => {
    const full = 'OSError: [Errno 28] No space left on device';
    const inside = (file: string): string =>
      `Traceback (most recent call last):\n  File "${file}", line 57, in __init__\n    sl = self._semlock = SemLock(kind)\n${full}`;
    expect(readText(inside('/usr/lib/python3.11/multiprocessing/synchronize.py'))).toMatchObject({
      kind: 'shm',
      candidates: ['disk'],
    });
    expect(readText(inside('/usr/lib/python3.11/shutil.py'))).toMatchObject({ kind: 'disk' });
  });
});

describe('how lines come', () => {
  const record = (fields: object): string => JSON.stringify(fields);
  const inside = traceback(['train: trainer.train()', 'optimizer_step: optimizer.step()'], oom());

  it('as JSON records of a log, a whole traceback in one of them', () => {
    expect(readText(record({ level: 'error', message: 'training failed', exc_info: inside }))).toMatchObject({
      kind: 'vram_capacity',
      phase: 'optimizer',
    });
    expect(readText(record({ severity: 'ERROR', timestamp: 't', jsonPayload: { message: oom() } }))?.kind).toBe(
      'vram_capacity',
    );
    expect(readText(record({ MESSAGE: oom(), __REALTIME_TIMESTAMP: '1' }))?.kind).toBe('vram_capacity');
  });

  it('as JSON rows of data, which say nothing', () => {
    for (const row of [
      { text: oom(), timestamp: '2026-03-02', url: 'https://a.example' },
      { prompt: 'why?', message: oom() },
      { log: oom(), stream: 'dataset' },
      { messages: [{ role: 'user', content: oom() }], time: 3 },
    ]) {
      expect(MEMORY, JSON.stringify(row)).not.toContain(readText(record(row))?.resource);
    }
  });

  it('from a notebook, whose frames look otherwise', () => {
    const cell = [
      'OutOfMemoryError                          Traceback (most recent call last)',
      'Cell In[7], line 2',
      '      1 trainer = make()',
      '----> 2 trainer.train()',
      '',
      'File ~/env/lib/trainer.py:2241, in Trainer.evaluation_loop(self, loader)',
      '   2240     step()',
      '-> 2241     self.gather(loader)',
      '',
      oom().replace('torch.', ''),
    ].join('\n');
    expect(readText(cell)).toMatchObject({ kind: 'vram_eval_spike', phase: 'eval' });
  });

  it('from a CI service', () => {
    expect(readText(`2026-03-02T08:11:40.1234567Z ##[error]${oom()}`)?.kind).toBe('vram_capacity');
    expect(readText('2026-03-02T08:11:40.1234567Z ##[error]Process completed with exit code 137.')).toMatchObject({
      kind: 'unknown',
      candidates: ['cgroup', 'host_ram'],
    });
  });
});

describe('no memory verdict', () => {
  it.each(NEVER)('%s', (text) => {
    expect(readText(text)).toMatchObject({ kind: 'not_memory', resource: 'none' });
  });

  it.each(GOES_ON)('while it goes on: %s', (text) => {
    const failure = readText([bar(3), bar(4), text, bar(5), bar(6), bar(7)].join('\n'));
    expect(MEMORY).not.toContain(failure?.resource);
  });

  it.each(QUOTED)('%s', (text) => {
    expect(MEMORY).not.toContain(readText(text)?.resource);
    expect(MEMORY).not.toContain(readText(`${bar(3)}\n${text}\n${bar(4)}`)?.resource);
  });
});
