import { describe, expect, it } from 'vitest';
import { readTarget } from '../../src/jobs/launch-target.ts';
import { fakePorts } from '../support/fake-ports.ts';

/** Code and reason of the first problem with a config of this text; the path only matters by its end. */
function problem(name: string, content: string | Uint8Array): string {
  const ports = fakePorts({ cwd: '/w', files: { [`/w/${name}`]: content } });
  const read = readTarget(ports, { kind: 'config', path: name }, undefined);
  expect([...ports.written.keys()]).toEqual([]);
  return read.ok ? 'read' : `${read.error[0]!.code}: ${read.error[0]!.message}`;
}

const AXOLOTL = 'base_model: a/b\ndatasets: []\nmicro_batch_size: 2\nsequence_len: 512\n';

describe('files that are no launch config', () => {
  it.each<[what: string, name: string, content: string | Uint8Array, expected: string]>([
    [
      'a huge one',
      'c.yaml',
      `${AXOLOTL}# ${'x'.repeat(600_000)}\n`,
      'unreadable-file: cannot read c.yaml: it is too large for a launch config',
    ],
    [
      'a huge script',
      't.sh',
      `#!/bin/sh\n${'echo x\n'.repeat(30_000)}`,
      'unreadable-file: cannot read t.sh: it is too large for a launch config',
    ],
    [
      'NUL bytes',
      'c.yaml',
      `${AXOLOTL}x: a\0b\n`,
      'unreadable-file: cannot read c.yaml: it holds NUL bytes, so it is no text',
    ],
    ['a program', 't.sh', '\x7fELF\0\0\0', 'unreadable-file: cannot read t.sh: it holds NUL bytes, so it is no text'],
    [
      'Latin-1',
      'c.yaml',
      Uint8Array.from([0x61, 0x3a, 0x20, 0xe9, 0x0a]),
      'unreadable-file: cannot read c.yaml: it is not UTF-8 text',
    ],
    ['open brackets', 'c.yaml', `a: ${'['.repeat(40_000)}`, 'yaml-too-deep: more than 100 levels of nesting'],
    [
      'nested blocks',
      'c.yaml',
      [...Array(300).keys()].map((depth) => `${' '.repeat(depth)}a:\n`).join(''),
      'yaml-too-deep: more than 100 levels of nesting',
    ],
    [
      'nested JSON',
      'c.json',
      `{"a":${'{"a":'.repeat(40_000)}`,
      'json-syntax: not valid JSON: more than 100 levels of nesting',
    ],
    ['a tab', 'c.yaml', 'base_model: a/b\n\tadapter: lora\n', 'yaml-tab: a tab where YAML allows only spaces'],
  ])('%s', (_, name, content, expected) => expect(problem(name, content)).toBe(expected));

  it.each([
    ['ENOENT', 'there is no such file'],
    ['EACCES', 'permission is denied'],
    ['ELOOP', 'its links go round in a circle'],
    ['ENOTFILE', 'it is not a plain file'],
  ])('%s', (code, reason) => {
    const ports = fakePorts({ cwd: '/w', ...(code === 'ENOENT' ? {} : { unreadable: { '/w/c.yaml': code } }) });
    const read = readTarget(ports, { kind: 'config', path: 'c.yaml' }, undefined);
    expect(read.ok ? undefined : read.error[0]!.message).toBe(`cannot read c.yaml: ${reason}`);
  });

  it('reads a config with CRLF, and one with accents', () => {
    expect(problem('c.yaml', AXOLOTL.replaceAll('\n', '\r\n'))).toBe('read');
    expect(problem('c.yaml', `# café\n${AXOLOTL}`)).toBe('read');
  });

  it('reads a shell script with bytes of another encoding in a comment', () => {
    const text = new TextEncoder().encode('#!/bin/sh\n# caf_\npython a.py --do_train --output_dir o\n');
    text[text.indexOf(0x5f)] = 0xe9;
    expect(problem('t.sh', text)).toBe('read');
  });

  it('comes to an end with any bytes in a script', () => {
    const odd = ['\v', '\f', '\u00a0', '\u2028', '\r', "'", '"', '$', '`', '(', '${', '$(', '<<', '\\', ';;'];
    for (const one of odd)
      for (const other of odd) expect(problem('t.sh', `#!/bin/sh\nrun ${one}x${other} y\n`)).toBe('read');
  });
});
