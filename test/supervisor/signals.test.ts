import { expect, it } from 'vitest';
import { classify } from '../../src/diagnosis/index.ts';
import { puppet } from './rig.ts';

it('passes a request to end on to the leader alone, once, and says so', async () => {
  const rig = puppet(
    [
      ['exitOn', 'SIGTERM', 7, 'saving\n'],
      ['child', [['on', 'SIGTERM', 'should not hear\n'], ['out', 'worker\n'], ['forever']]],
      ['forever'],
    ],
    { stopGraceMs: 100, drainMs: 0 },
  );
  await rig.stdout.until('worker');
  rig.attempt.signal('SIGTERM');
  await rig.stdout.until('saving');
  const evidence = await rig.evidence();
  expect(evidence).toMatchObject({
    exitCode: 7,
    signal: undefined,
    forwardedSignal: 'SIGTERM',
    stoppedBecause: 'forwarded-signal',
  });
  expect(
    rig.stdout
      .bytes()
      .toString()
      .match(/saving/g),
  ).toHaveLength(1);
  expect(classify(evidence)).toMatchObject({ kind: 'not_memory', resource: 'none' });
});

it('waits for a trainer that saves before it ends', async () => {
  // Far longer than the grace of a stop: nobody has asked for a stop.
  const rig = puppet([['saveOn', 'SIGTERM', 'late/state', 5, 0], ['out', 'ready\n'], ['forever']], { stopGraceMs: 50 });
  await rig.stdout.until('ready');
  rig.attempt.signal('SIGTERM');
  expect(await rig.evidence()).toMatchObject({ exitCode: 0, forwardedSignal: 'SIGTERM' });
  expect(rig.stdout.bytes().toString()).toBe('ready\nsaved\n');
});

it('gives Ctrl-C to the whole group, as a terminal does', async () => {
  const rig = puppet([
    ['on', 'SIGINT', 'launcher hears\n'],
    ['child', [['exitOn', 'SIGINT', 0, 'worker hears\n'], ['out', 'ready\n'], ['forever']]],
    ['childrenEnd'],
    ['exit', 130],
  ]);
  await rig.stdout.until('ready');
  rig.attempt.signal('SIGINT');
  expect(await rig.evidence()).toMatchObject({ exitCode: 130, forwardedSignal: 'SIGINT' });
  expect(rig.stdout.bytes().toString()).toContain('launcher hears');
  expect(rig.stdout.bytes().toString()).toContain('worker hears');
});

it('does not give Ctrl-C twice to a child in the foreground of the terminal', async () => {
  const rig = puppet(
    [['on', 'SIGINT', 'heard\n'], ['exitOn', 'SIGTERM', 0, 'ended\n'], ['out', 'ready\n'], ['forever']],
    { foreground: true },
  );
  await rig.stdout.until('ready');
  rig.attempt.signal('SIGINT');
  rig.attempt.signal('SIGINT');
  expect(await rig.evidence()).toMatchObject({
    exitCode: 0,
    forwardedSignal: 'SIGINT',
    stoppedBecause: 'forwarded-signal',
  });
  expect(rig.stdout.bytes().toString()).toBe('ready\nended\n');
});

it('stops the tree at the second request and kills it at the third', async () => {
  const rig = puppet([['on', 'SIGINT', 'no\n'], ['on', 'SIGTERM', 'never\n'], ['out', 'ready\n'], ['forever']], {
    stopGraceMs: 60_000,
  });
  await rig.stdout.until('ready');
  rig.attempt.signal('SIGINT');
  await rig.stdout.until('no');
  rig.attempt.signal('SIGINT');
  await rig.stdout.until('never');
  rig.attempt.signal('SIGINT');
  expect(await rig.evidence()).toMatchObject({
    signal: 'SIGKILL',
    forwardedSignal: 'SIGINT',
    stoppedBecause: 'forwarded-signal',
  });
});

it('does not stop a run for its out-of-memory line once somebody has asked it to end', async () => {
  const rig = puppet([['on', 'SIGTERM', 'ending\n'], ['exitOn', 'SIGUSR2', 1, ''], ['out', 'ready\n'], ['forever']]);
  await rig.stdout.until('ready');
  rig.attempt.signal('SIGTERM');
  await rig.stdout.until('ending');
  rig.attempt.signal('SIGUSR2');
  expect(await rig.evidence()).toMatchObject({
    exitCode: 1,
    stoppedBecause: 'forwarded-signal',
    forwardedSignal: 'SIGTERM',
  });
});

it('takes a signal that comes after the end', async () => {
  const rig = puppet([['exit', 0]]);
  await rig.evidence();
  expect(() => rig.attempt.signal('SIGTERM')).not.toThrow();
});
