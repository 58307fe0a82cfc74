import { expect, it } from 'vitest';
import { joinNeighbourhood } from '../../src/jobs/neighbours.ts';
import { nameProcess } from '../../src/jobs/processes.ts';
import { fakePorts } from '../support/fake-ports.ts';

const HERE = nameProcess(process.pid)!;
const REGISTRY = '/cache/snug/running';
const other = (more: object = {}) =>
  JSON.stringify({
    process: HERE,
    runFolder: '/elsewhere/.snug/runs/a',
    outputDir: '/data/out',
    gpus: ['GPU-a'],
    ...more,
  });
const ours = {
  pid: process.pid,
  runFolder: '/project/.snug/runs/b',
  outputDir: '/data/out',
  gpus: [{ uuid: 'GPU-b' }],
};

const joined = (files: Record<string, string>, own = ours) => {
  const ports = fakePorts({ cwd: '/project', environment: { XDG_CACHE_HOME: '/cache' }, files });
  return { ports, ...joinNeighbourhood(ports, own) };
};

it.each([
  ['the same output folder', ours, 'same-output-folder'],
  ['the same folder by a relative path', { ...ours, outputDir: '../data/out' }, 'same-output-folder'],
  ['the same card', { ...ours, outputDir: 'mine', gpus: [{ uuid: 'GPU-a' }] }, 'same-card'],
])('is told of a run with %s', (_, own, code) => {
  const { found } = joined({ [`${REGISTRY}/x-1.json`]: other() }, own);
  expect(found).toMatchObject([
    { code, severity: 'warning', notes: expect.arrayContaining([expect.stringContaining('/elsewhere')]) },
  ]);
});

it.each([
  ['is on another machine', other({ process: { pid: 1, host: 'another-machine' } })],
  ['uses other cards and folders', other({ outputDir: '/data/other', gpus: ['GPU-c'] })],
  ['cannot be read', '{"process"'],
])('hears nothing of a run that %s', (_, text) => {
  expect(joined({ [`${REGISTRY}/x-1.json`]: text }).found).toEqual([]);
});

it('clears away what a killed run has left', () => {
  const gone = other({ process: { ...HERE, startTicks: HERE.startTicks! + 1 } });
  const { found, ports } = joined({ [`${REGISTRY}/x-1.json`]: gone });
  expect(found).toEqual([]);
  expect(ports.files.info(`${REGISTRY}/x-1.json`)).toBeUndefined();
});

it('tells of itself for as long as it runs', () => {
  const { ports, leave } = joined({});
  const own = `${REGISTRY}/${HERE.host}-${process.pid}.json`;
  expect(JSON.parse(ports.written.get(own)!)).toMatchObject({ outputDir: '/data/out', gpus: ['GPU-b'] });
  leave();
  expect(ports.files.info(own)).toBeUndefined();
});
