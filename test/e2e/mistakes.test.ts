import { readdirSync } from 'node:fs';
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { ensureBuilt, makeSandbox, type Sandbox, SETUP_TIMEOUT_MS, TRAINER_TIMEOUT_MS } from '../support/snug-cli.ts';

const NATIVE = `command: python3 -c "print('started')" {per_device_train_batch_size}
model_config: { model_type: llama, hidden_size: 64, intermediate_size: 176, num_hidden_layers: 2, num_attention_heads: 4, vocab_size: 500 }
per_device_train_batch_size: 2
max_length: 128
`;

interface Mistake {
  readonly what: string;
  readonly files?: Readonly<Record<string, string>>;
  readonly args: readonly string[];
  readonly exitCode: number;
  /** The one diagnostic that says what is wrong. */
  readonly says: RegExp;
}

const MISTAKES: readonly Mistake[] = [
  { what: 'a config that does not exist', args: ['run', 'nope.yaml'], exitCode: 3, says: /^error\[.*nope\.yaml/m },
  {
    what: 'a config the trainer names that does not exist',
    args: ['check', '--gpu', '24GiB', '--', 'trl', 'sft', '--config', 'gone.yaml'],
    exitCode: 3,
    says: /^error\[.*gone\.yaml/m,
  },
  {
    what: 'YAML that is none',
    files: { 'broken.yaml': `${NATIVE}lora: { r: 8\n` },
    args: ['run', 'broken.yaml'],
    exitCode: 3,
    says: /^error\[[\s\S]*--> broken\.yaml:\d+/m,
  },
  {
    what: 'a key with a typing error',
    files: { 'typo.yaml': NATIVE.replace('max_length', 'max_lenght') },
    args: ['run', 'typo.yaml'],
    exitCode: 3,
    says: /^error\[.*max_lenght[\s\S]*typo\.yaml:4[\s\S]*max_length/m,
  },
  {
    what: 'a card that is none',
    files: { 'fine.yaml': NATIVE },
    args: ['run', '--gpu', 'rtx-banana', 'fine.yaml'],
    exitCode: 2,
    says: /^error.*rtx-banana/m,
  },
  {
    what: 'an option that does not exist',
    args: ['run', '--gpus', '24GiB', 'fine.yaml'],
    exitCode: 2,
    says: /^error.*--gpus/m,
  },
  { what: 'nothing to run', args: ['run'], exitCode: 2, says: /^error/m },
];

describe('mistakes on the way to a run', { timeout: TRAINER_TIMEOUT_MS }, () => {
  let sandbox: Sandbox;
  beforeAll(ensureBuilt, SETUP_TIMEOUT_MS);
  beforeEach(() => {
    sandbox = makeSandbox();
  });
  afterEach(() => sandbox.remove());

  it.each(MISTAKES)(
    '$what: one diagnostic, exit code $exitCode, nothing written',
    async ({ files = {}, args, exitCode, says }) => {
      for (const [name, text] of Object.entries(files)) sandbox.write(name, text);
      const ended = await sandbox.run(args);
      const said = ended.stdout + ended.stderr;
      expect(said).toMatch(says);
      expect(said.match(/^error/gm)).toHaveLength(1);
      expect(said).not.toMatch(/^\s+at .*(\.js|node:)/m);
      expect(ended.exitCode).toBe(exitCode);
      expect(readdirSync(sandbox.folder).sort()).toEqual(Object.keys(files).sort());
    },
  );

  it('the same config without the mistake is started', async () => {
    sandbox.write('fine.yaml', NATIVE);
    const ended = await sandbox.run(['run', '--gpu', '24GiB', 'fine.yaml']);
    expect(ended.stdout).toContain('started');
    expect(ended.exitCode).toBe(0);
  });

  it('a program that is not there: exit code 127, as a shell says', async () => {
    const ended = await sandbox.run(['run', '--', 'tarin-model', '--per_device_train_batch_size', '4']);
    expect(ended.exitCode).toBe(127);
    expect(ended.stderr).toMatch(/^error.*tarin-model/m);
    expect(ended.stderr).not.toMatch(/^\s+at .*(\.js|node:)/m);
    expect(sandbox.exists('.snug')).toBe(false);
  });
});
