import { spawnSync } from 'node:child_process';
import { chmodSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { makeSandbox, ROOT, type Sandbox } from '../support/snug-cli.ts';

/** Runs a program on a terminal of its own, answers its first question, and ends with its exit code. */
const ON_A_TERMINAL = `
import os, pty, sys
answer, argv = sys.argv[1], sys.argv[2:]
pid, terminal = pty.fork()
if pid == 0:
    os.execvp(argv[0], argv)
seen = b""
while True:
    try:
        piece = os.read(terminal, 4096)
    except OSError:
        break
    if not piece:
        break
    asked = b"[y/N]" in seen
    seen += piece
    if not asked and b"[y/N]" in seen:
        os.write(terminal, answer.encode().decode("unicode_escape").encode())
sys.stdout.buffer.write(seen)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
`;

const hasPython = spawnSync('python3', ['-c', 'import pty']).status === 0;

let box: Sandbox;
beforeEach(() => {
  box = makeSandbox();
  box.write(
    'snug.yaml',
    `command: ./train.sh {per_device_train_batch_size} {gradient_accumulation_steps}
model_config: {model_type: llama, hidden_size: 1024, intermediate_size: 2816, num_hidden_layers: 10, num_attention_heads: 16, vocab_size: 32000}
per_device_train_batch_size: 24
gradient_accumulation_steps: 2
max_length: 1024
`,
  );
  box.write('train.sh', '#!/bin/sh\necho "trained with $1 and $2" > trained\nexit 0\n');
  chmodSync(join(box.folder, 'train.sh'), 0o755);
});
afterEach(() => box.remove());

const answering = (answer: string, gpu: string) =>
  spawnSync(
    'python3',
    ['-c', ON_A_TERMINAL, answer, process.execPath, join(ROOT, 'bin', 'snug.js'), 'run', '--ask', '--gpu', gpu],
    { cwd: box.folder, env: { ...box.env }, encoding: 'utf8', timeout: 60_000 },
  );

describe.skipIf(!hasPython)('run --ask', () => {
  it('starts the changed run after a yes', () => {
    const { status, stdout } = answering('y\\n', '8GiB');
    expect(stdout).toContain('24 -> 6');
    expect([status, box.read('trained')]).toEqual([0, 'trained with 6 and 8\n']);
  });

  it.each(['n\\n', '\\x04'])('starts nothing after %j', (answer) => {
    const { status, stdout } = answering(answer, '8GiB');
    expect(box.exists('trained')).toBe(false);
    expect(status).not.toBe(0);
    expect(stdout).toContain('[y/N]');
  });

  it('asks nothing where nothing is changed', () => {
    const { status, stdout } = answering('n\\n', '40GiB');
    expect(stdout).not.toContain('[y/N]');
    expect([status, box.exists('trained')]).toEqual([0, true]);
  });
});

it('--ask without a terminal is a usage error that says what to do', async () => {
  const { exitCode, stderr } = await box.run(['run', '--ask', '--gpu', '8GiB']);
  expect([exitCode, stderr]).toEqual([2, expect.stringMatching(/--ask needs a terminal[\s\S]*--dry-run/)]);
  expect(box.exists('trained')).toBe(false);
});
