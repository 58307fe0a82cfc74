import { expect, it } from 'vitest';
import { mergePolicy } from '../../src/jobs/policy.ts';
import { fakePorts } from '../support/fake-ports.ts';

const HOME = '/home/ada/.config/snug/policy.yaml';
const PROJECT = '/project/.snug/policy.yaml';
const ports = (files: Record<string, string>) => fakePorts({ files, homeDir: '/home/ada' });

it('takes flags over the launch, the project, the home folder, the defaults', () => {
  const world = ports({
    [HOME]: 'mode: warn\nmax_retries: 7\nheadroom: 0.2\nallow: [free]\n',
    [PROJECT]: 'headroom: 0.1\nmax_retries: 6\n',
  });
  expect(mergePolicy(world, { maxRetries: 5, allow: ['free', 'exact'] }, { allow: ['free', 'near'] })).toEqual({
    ok: true,
    value: { mode: 'warn', headroom: 0.1, maxRetries: 5, allow: ['free', 'near'], forbid: [], keep: [] },
  });
});

it('has the defaults where nobody says anything', () => {
  expect(mergePolicy(ports({}), {}, {})).toEqual({
    ok: true,
    value: {
      mode: 'rewrite',
      allow: ['free', 'exact', 'near', 'qlora'],
      forbid: [],
      keep: [],
      maxRetries: 3,
      headroom: 0.05,
    },
  });
});

it('names the line of a wrong key in a policy file, of both files at once', () => {
  const read = mergePolicy(ports({ [HOME]: 'headroom: 0.1\nmod: warn\n', [PROJECT]: 'mode: sometimes\n' }), {}, {});
  expect(read.ok ? [] : read.error.map(({ code, location }) => [code, location])).toEqual([
    ['bad-value', `${PROJECT}:1`],
    ['unknown-key', `${HOME}:2`],
  ]);
});

it('takes single levers and settings by name, and names the place of one that does not exist', () => {
  const given = mergePolicy(
    ports({ [PROJECT]: 'allow: [exact, optimizer-8bit]\nkeep: [optim]\n' }),
    {},
    { forbid: ['micro-batch'] },
  );
  expect(given).toMatchObject({
    ok: true,
    value: { allow: ['exact', 'optimizer-8bit'], forbid: ['micro-batch'], keep: ['optim'] },
  });
  const wrong = mergePolicy(ports({ [PROJECT]: 'headroom: 0.1\nkeep: [optm]\n' }), {}, { allow: ['qlore', 'exact'] });
  expect(wrong.ok ? [] : wrong.error.map(({ location, help }) => [location, help])).toEqual([
    [`${PROJECT}:2`, 'did you mean optim'],
    ['--allow', 'did you mean qlora'],
  ]);
});
