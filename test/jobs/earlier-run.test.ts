import { expect, it } from 'vitest';
import { awaitItsEnd, findEarlierRun } from '../../src/jobs/earlier-run.ts';
import { nameProcess } from '../../src/jobs/processes.ts';
import { fakePorts } from '../support/fake-ports.ts';

const RUNS = '/project/.snug/runs';
const record = (more: object = {}) =>
  JSON.stringify({
    schemaVersion: 1,
    cwd: '/project',
    masked: false,
    request: { target: { kind: 'command', argv: ['python', 'train.py'] }, policy: {}, set: [], starts: true },
    attempts: [{ startedMs: 5, outputDir: 'out', changes: [] }],
    processes: {},
    ...more,
  });

const found = (files: Record<string, string>, asked?: string) => {
  const answer = findEarlierRun(fakePorts({ cwd: '/project', files }), asked);
  return answer.ok ? answer.value : answer.error[0]!;
};

it('takes the newest run that had begun', () => {
  const files = {
    [`${RUNS}/20260101-000000-a/continue.json`]: record(),
    [`${RUNS}/20260102-000000-b/continue.json`]: record(),
    [`${RUNS}/20260102-000000-b/run.json`]: JSON.stringify({
      state: 'running',
      started_at: '2026-01-02T00:00:00Z',
      attempts: [{ attempt: 1, ended_at: 'then' }, { attempt: 2 }],
    }),
    // Killed before it had written anything.
    [`${RUNS}/20260103-000000-c/attempts/.keep`]: '',
  };
  expect(found(files)).toMatchObject({
    path: `${RUNS}/20260102-000000-b`,
    startedAt: '2026-01-02T00:00:00Z',
    attempts: [{ attempt: 1 }, { attempt: 2, interrupted: true }],
  });
  expect(found(files, '20260101-000000-a')).toMatchObject({ path: `${RUNS}/20260101-000000-a` });
  expect(found(files, `.snug/runs/20260101-000000-a`)).toMatchObject({ path: `${RUNS}/20260101-000000-a` });
});

it.each([
  ['there is none', {}, undefined, 'there is no run to continue in .snug/runs'],
  ['the folder is another one', {}, 'out', 'out is no run folder that can be continued'],
  [
    'it finished well',
    { 'continue.json': record(), 'run.json': '{"state":"ended","exit_code":0}' },
    undefined,
    'the run 20260101-x finished well',
  ],
  [
    'it was started somewhere else',
    { 'continue.json': record({ cwd: '/elsewhere' }) },
    undefined,
    'the run 20260101-x was started in /elsewhere',
  ],
  ['its record is cut off', { 'continue.json': record().slice(0, 40) }, undefined, 'there is no run to continue'],
])('says so when %s', (_, files, asked, message) => {
  const placed = Object.fromEntries(Object.entries(files).map(([name, text]) => [`${RUNS}/20260101-x/${name}`, text]));
  expect(found(placed, asked)).toMatchObject({ message: expect.stringContaining(message), help: expect.any(String) });
});

it('reads a run whose state was damaged by hand', () => {
  const files = { [`${RUNS}/r/continue.json`]: record(), [`${RUNS}/r/run.json`]: '{"state":' };
  expect(found(files)).toMatchObject({ attempts: [], startedAt: undefined });
});

const withProcesses = (processes: object) => ({
  path: '/r',
  attempts: [],
  startedAt: undefined,
  record: JSON.parse(record({ processes })),
});

it('waits for nobody who is gone, and stands aside for who is not', async () => {
  const alive = nameProcess(process.pid)!;
  const reused = { ...alive, startTicks: (alive.startTicks ?? 0) + 1 };
  const never = () => expect.fail('nothing to wait for');
  expect(await awaitItsEnd(withProcesses({ snug: reused, trainer: reused, watcher: reused }), never)).toBeUndefined();
  expect(await awaitItsEnd(withProcesses({ snug: alive }), never)).toMatchObject({ code: 'run-goes-on' });
  expect(await awaitItsEnd(withProcesses({ snug: reused, trainer: alive }), never)).toMatchObject({
    message: expect.stringContaining(`its trainer is process ${process.pid}`),
  });
  expect(await awaitItsEnd(withProcesses({ snug: { pid: 1, host: 'another-machine' } }), never)).toMatchObject({
    code: 'run-elsewhere',
  });
});
