import { stripVTControlCharacters } from 'node:util';
import { describe, expect, it } from 'vitest';
import { GiB } from '../../src/core/index.ts';
import { type RunEvent, renderRunEvent, renderRunSummary, runEventJson } from '../../src/report/index.ts';
import { after, batchChanges, before, failure, values } from './reports.ts';

const plain = { colour: false, width: 80 };
const { distributed } = values;
const lines = (...text: string[]) => text.join('\n');

describe('renderRunEvent', () => {
  it.each<[RunEvent, string]>([
    [
      {
        kind: 'attempt-started',
        attempt: 1,
        argv: ['python', 'tune.py', '--name', "it's two", '--hub_token', 'abc'],
        changes: [],
        predicted: before,
      },
      lines(
        'snug: attempt 1 starts as it came, predicted 31.4 GiB a GPU',
        `snug:   python tune.py --name 'it'\\''s two' --hub_token '***'`,
      ),
    ],
    [
      { kind: 'attempt-started', attempt: 2, argv: ['python', 'tune.py'], changes: batchChanges, predicted: undefined },
      lines('snug: attempt 2 starts with 2 changes', 'snug:   python tune.py'),
    ],
    [
      { kind: 'fatal-line', line: failure.evidence[0]! },
      lines(
        'snug: out of memory seen on stderr, line 37, rank 1: OutOfMemoryError: no room',
        'snug:   for another 512.00 MiB',
      ),
    ],
    [
      {
        kind: 'memory-grows',
        memory: 'vram',
        growth: {
          bytesPerStep: GiB / 64,
          fromStep: 40,
          toStep: 400,
          firstBytes: 9 * GiB,
          lastBytes: 15 * GiB,
          fullAtStep: 976,
        },
      },
      lines(
        'snug: GPU memory has grown by 16 MiB a step since step 40: at this pace the card',
        'snug:   is full at about step 976',
        'snug:   a smaller batch only puts that off: something is kept from step to step',
        'snug:     (losses without .item(), a list, a cache)',
      ),
    ],
    [
      { kind: 'slowed-down', usualStepMs: 1000, stepMs: 14_000, because: 'vram' },
      lines(
        'snug: a step takes 14 s, 14 times as long as before, and the card is full: its',
        'snug:   driver moves memory to the host, or the allocator frees and asks again',
        'snug:   it is left alone; --headroom 0.15 leaves the card more room at the next',
        'snug:     start',
      ),
    ],
    [
      { kind: 'slowed-down', usualStepMs: 2000, stepMs: 30_000, because: 'swap' },
      lines(
        'snug: a step takes 30 s, 15 times as long as before, and much of the run lies in',
        'snug:   swap: host RAM is too small for it',
        'snug:   it is left alone; fewer DataLoader workers, no offload or more RAM would',
        'snug:     help',
      ),
    ],
    [
      { kind: 'same-again', because: 'memory grew' },
      'snug: memory grew; going on with the same settings in a fresh process',
    ],
    [
      { kind: 'stopping-tree', because: 'it did not end by itself', graceMs: 30_000 },
      lines('snug: stopping every process of the run (it did not end by itself), by force', 'snug:   after 30 s'),
    ],
    [
      { kind: 'signal-forwarded', signal: 'SIGUSR1', requests: 0 },
      'snug: passed SIGUSR1 on to the run; it is not started again after this',
    ],
    [
      { kind: 'gpu-memory-waiting', heldBytes: 3 * GiB, timeoutMs: 60_000 },
      'snug: waiting up to 60 s for the GPU to give back 3.0 GiB',
    ],
    [{ kind: 'gpu-memory-freed', waitedMs: 2600 }, 'snug: the GPU is free again after 3 s'],
    [
      { kind: 'gpu-memory-stuck', heldBytes: 3 * GiB, waitedMs: 60_000 },
      lines(
        'snug: 3.0 GiB of GPU memory are still held 60 s after the run ended',
        'snug:   nvidia-smi lists who holds them; the settings are not shrunk to fit',
        'snug:     around them',
      ),
    ],
    [
      {
        kind: 'attempt-ended',
        attempt: 1,
        end: { exitCode: 1, signal: undefined },
        durationMs: 412_000,
        failure,
        predicted: before,
        peakVramBytes: 23.4 * GiB,
        peakRamBytes: 7 * GiB,
      },
      lines(
        'snug: attempt 1 failed after 7 min, exit code 1: GPU memory ran out in the',
        'snug:   backward pass',
        'snug:   512 MiB asked for, 22.0 GiB allocated, 24.0 GiB on the card',
        'snug:   stderr, line 37, rank 1: OutOfMemoryError: no room for another 512.00',
        'snug:     MiB',
        'snug:   GPU peak seen 23.4 GiB, predicted 31.4 GiB; host RAM peak seen 7.0 GiB,',
        'snug:     predicted 6.0 GiB',
      ),
    ],
    [
      {
        kind: 'attempt-ended',
        attempt: 3,
        end: { exitCode: undefined, signal: 'SIGKILL' },
        durationMs: 11_220_000,
        failure: { ...failure, kind: 'host_ram', resource: 'host_ram', phase: 'unknown', evidence: [], numbers: {} },
        predicted: undefined,
        peakVramBytes: undefined,
        peakRamBytes: 0,
      },
      'snug: attempt 3 failed after 3 h 07 min, ended by SIGKILL: host RAM ran out',
    ],
    [
      {
        kind: 'attempt-ended',
        attempt: 2,
        end: { exitCode: 0, signal: undefined },
        durationMs: 8000,
        failure: undefined,
        predicted: after,
        peakVramBytes: 18 * GiB,
        peakRamBytes: 0,
      },
      lines('snug: attempt 2 finished after 8 s, exit code 0', 'snug:   GPU peak seen 18.0 GiB, predicted 18.7 GiB'),
    ],
    [
      {
        kind: 'replanned',
        because: 'the backward phase ran out of memory',
        changes: batchChanges,
        predicted: after,
        calibratedBytes: 20.5 * GiB,
        distributed,
      },
      lines(
        'snug: the backward phase ran out of memory; trying smaller, predicted 18.7 GiB a',
        'snug:   GPU, 20.5 GiB by what was seen',
        'snug:   per_device_train_batch_size 6 -> 2, gradient_accumulation_steps 3 -> 9',
        'snug:     (global batch 36 kept)  saves 12.0 GiB, about 1.1 × the step time',
        'snug:   loss_impl full -> chunked  saves 922 MiB, costs nothing',
      ),
    ],
    [
      {
        kind: 'replanned',
        because: 'the run ran out of memory',
        changes: batchChanges.slice(0, 2).map((change) => ({ ...change, savesBytes: 0 })),
        predicted: undefined,
        calibratedBytes: undefined,
        distributed,
      },
      lines(
        'snug: the run ran out of memory; trying smaller',
        'snug:   per_device_train_batch_size 6 -> 2, gradient_accumulation_steps 3 -> 9',
        'snug:     (global batch 36 kept)',
      ),
    ],
    [
      { kind: 'resuming', checkpoint: 'out/checkpoint-40', step: 40 },
      'snug: resuming after step 40 from out/checkpoint-40',
    ],
    [{ kind: 'resuming', checkpoint: 'out/last', step: undefined }, 'snug: resuming from out/last'],
    [
      { kind: 'starting-over', outputDir: 'out-2', reason: 'the optimizer changed' },
      'snug: starting over into out-2: the optimizer changed',
    ],
    [
      { kind: 'given-up', reason: 'nothing smaller is permitted', wouldHelp: ['a larger GPU'] },
      lines('snug: giving up: nothing smaller is permitted', 'snug:   would help: a larger GPU'),
    ],
    [{ kind: 'finished', attempts: 1, durationMs: 95_000 }, 'snug: finished with the first attempt after 2 min'],
  ])('$kind', (event, expected) => {
    expect(renderRunEvent(event, plain)).toBe(expected);
    const ascii = renderRunEvent(event, { ...plain, unicode: false });
    expect(ascii).toMatch(/^[\x20-\x7e\n]*$/);
    expect(stripVTControlCharacters(renderRunEvent(event, { ...plain, colour: true }))).toBe(expected);
  });
});

describe('the end of an attempt', () => {
  const ended = {
    kind: 'attempt-ended',
    attempt: 1,
    end: { exitCode: undefined, signal: 'SIGKILL' },
    durationMs: 42_000,
    failure: { ...failure, kind: 'unknown', resource: 'unknown', phase: 'unknown', evidence: [], numbers: {} },
    predicted: undefined,
    peakVramBytes: undefined,
    peakRamBytes: 30 * GiB,
  } as const;
  const wide = { ...plain, width: 300 };

  it('names who may have sent a bare SIGKILL, and the memory there was', () => {
    const event = { ...ended, hostRamBytes: 62 * GiB, cgroupLimitBytes: 40 * GiB };
    expect(renderRunEvent(event, wide)).toBe(
      lines(
        'snug: attempt 1 failed after 42 s, ended by SIGKILL: the run failed, and its output does not say why',
        'snug:   it may be that host RAM ran out, that a memory limit (cgroup, container, job) was reached, or that somebody sent kill -9',
        'snug:   the machine has 62.0 GiB of RAM, the limit around the run is 40.0 GiB',
        'snug:   host RAM peak seen 30.0 GiB',
      ),
    );
    expect(renderRunEvent({ ...ended, end: { exitCode: 1, signal: undefined } }, wide)).not.toContain('kill -9');
  });

  it('says stopped, not failed, after a signal of the user', () => {
    const stopped = { ...ended, end: { exitCode: 130, signal: undefined }, forwardedSignal: 'SIGINT' };
    expect(renderRunEvent({ ...stopped, failure: { ...ended.failure, kind: 'not_memory' } }, wide)).toContain(
      'snug: attempt 1 stopped by SIGINT after 42 s, exit code 130',
    );
    expect(renderRunEvent({ ...stopped, failure }, wide)).toContain('attempt 1 failed');
  });

  it('shows two lines of a long message, and host RAM only where it tells something', () => {
    const evidence = [{ ...failure.evidence[0]!, text: 'OutOfMemoryError: no room left. '.repeat(20) }];
    const text = renderRunEvent({ ...ended, failure: { ...failure, evidence }, peakRamBytes: 431_000 }, plain);
    const shown = text.split('\n').slice(3);
    expect(shown).toHaveLength(2);
    expect(shown[1]).toMatch(/ …$/);
    expect(Math.max(...shown.map((line) => line.length))).toBeLessThanOrEqual(80);
    expect(renderRunEvent({ ...ended, peakRamBytes: 431_000, predicted: after }, plain)).toContain('seen 421 KiB');
  });

  it.each([
    [1, 'passed SIGINT on to the run; it is not started again after this; a second SIGINT stops every process of it'],
    [2, 'SIGINT again: stopping every process of the run; a third time kills them at once'],
    [3, 'SIGINT once more: killing every process of the run'],
  ])('request %i', (requests, text) => {
    expect(renderRunEvent({ kind: 'signal-forwarded', signal: 'SIGINT', requests }, wide)).toBe(`snug: ${text}`);
  });

  it('is masked as JSON too', () => {
    const evidence = [{ ...failure.evidence[0]!, text: 'login hf_zxcvbnmasdfghjkl' }];
    expect(JSON.stringify(runEventJson({ ...ended, failure: { ...failure, evidence } }))).not.toContain('zxcvbnm');
  });
});

describe('renderRunSummary', () => {
  const first = {
    attempt: 1,
    durationMs: 412_000,
    end: { exitCode: 1, signal: undefined },
    failure,
    changes: [],
    distributed,
    predictedBytes: 21 * GiB,
    peakVramBytes: 23.4 * GiB,
    fromStep: undefined,
  };

  it('tells every attempt and whose the exit code is', () => {
    const second = {
      ...first,
      attempt: 2,
      durationMs: 9_000_000,
      end: { exitCode: 0, signal: undefined },
      failure: undefined,
      changes: batchChanges,
      predictedBytes: undefined,
      peakVramBytes: undefined,
      fromStep: 40,
    };
    const summary = {
      attempts: [first, second],
      runFolder: '.snug/runs/tune',
      exit: { code: 0, whose: 'trainer' },
    } as const;
    expect(renderRunSummary(summary, plain)).toBe(
      lines(
        'snug: attempt  predicted  seen      time        from     ended',
        'snug: 1        21.0 GiB   23.4 GiB  7 min       start    vram_capacity, backward',
        'snug: 2        -          -         2 h 30 min  step 40  exit code 0',
        'snug:   per_device_train_batch_size 6 -> 2, gradient_accumulation_steps 3 -> 9',
        'snug:     (global batch 36 kept)',
        'snug:   loss_impl full -> chunked',
        'snug: kept in .snug/runs/tune',
        "snug: exit code 0, the trainer's own",
      ),
    );
  });

  it('needs no table for one attempt', () => {
    const exit = { code: 13, whose: 'snug', meaning: 'still out of VRAM after the last retry' } as const;
    expect(renderRunSummary({ attempts: [first], runFolder: '.snug/runs/tune', exit }, plain)).toBe(
      lines('snug: kept in .snug/runs/tune', "snug: exit code 13, snug's own: still out of VRAM after the last retry"),
    );
  });
});
