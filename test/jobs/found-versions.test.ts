import { describe, expect, it } from 'vitest';
import { readLaunch } from '../../src/dialects/index.ts';
import { findVersions } from '../../src/jobs/found-versions.ts';
import { createReadContext } from '../../src/jobs/launch-target.ts';
import { type FakeWorld, fakePorts } from '../support/fake-ports.ts';

/** `package version` of what is found for a command, and where. */
function versions(line: string, world: FakeWorld): Record<string, string> {
  const ports = fakePorts({ cwd: '/w', homeDir: '/home/u', ...world });
  const reading = readLaunch(line.split(' '), createReadContext(ports, undefined, {}));
  if (!reading.ok) throw new Error(JSON.stringify(reading.error));
  expect(ports.calls).toEqual([]);
  return Object.fromEntries(
    Object.entries(findVersions(ports, reading.value)).map(([name, found]) => [
      name,
      `${found!.version} ${found!.place}`,
    ]),
  );
}

const site = (prefix: string, ...names: string[]): Record<string, string> =>
  Object.fromEntries(names.map((name) => [`${prefix}/lib/python3.12/site-packages/${name}.dist-info/METADATA`, '']));

describe('versions of the packages that train', () => {
  const trl = { trl: '0.21.0 /e/lib/python3.12/site-packages' };
  it.each<[line: string, world: FakeWorld]>([
    ['/e/bin/python t.py', {}],
    ['nohup /e/bin/python -m pkg', {}],
    ['python t.py', { environment: { VIRTUAL_ENV: '/e' } }],
    ['python t.py', { which: { python: '/e/bin/python' } }],
    ['conda run -n e python t.py', { environment: { MAMBA_ROOT_PREFIX: '/' }, files: site('/envs/e', 'trl-0.21.0') }],
    [
      'trl sft --output_dir o',
      { which: { trl: '/e/bin/trl' }, files: { '/e/bin/trl': '#!/e/bin/python3\n', ...site('/e', 'trl-0.21.0') } },
    ],
  ])('%s with %j', (line, world) => {
    const files = { ...site('/e', 'trl-0.21.0', 'requests-2.1', 'trl_extra-9.0'), ...world.files };
    const found = versions(line, { ...world, files });
    expect(found.trl?.split(' ')[0]).toBe('0.21.0');
    if (!line.startsWith('conda')) expect(found).toEqual(trl);
  });

  it.each([
    [
      'uv.lock',
      '[[package]]\nname = "trl"\nversion = "0.20.1"\n\n[[package]]\nname = "requests"\nversion = "2"\n',
      '0.20.1 uv.lock:3',
    ],
    ['requirements.txt', '# trl==0.1\nrequests==2.1\ntrl[peft] == 0.19.0  # pinned\n', '0.19.0 requirements.txt:3'],
    ['pyproject.toml', 'dependencies = [\n  "trl==0.18.2",\n]\n', '0.18.2 pyproject.toml:2'],
    ['requirements.txt', 'trl>=0.19\n', undefined],
    ['uv.lock', '[[package]]\nname = "trl-tools"\nversion = "0.20.1"\n', undefined],
  ])('%s: %j', (name, text, expected) => {
    expect(versions('python t.py', { files: { [`/w/${name}`]: text } }).trl).toBe(expected);
  });

  it('takes what is installed over what is locked', () => {
    const files = { ...site('/w/.venv', 'trl-0.22.0'), '/w/requirements.txt': 'trl==0.19.0\n' };
    expect(versions('uv run python t.py', { files }).trl).toBe('0.22.0 /w/.venv/lib/python3.12/site-packages');
  });
});
