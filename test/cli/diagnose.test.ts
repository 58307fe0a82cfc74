import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { stripVTControlCharacters } from 'node:util';
import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { oom, traceback } from '../diagnosis/texts.ts';
import { makeSandbox, type Sandbox } from '../support/snug-cli.ts';

const LOG = `${traceback(['main: trainer.train()', 'training_step: self.accelerator.backward(loss)', 'backward: loss.backward()'], oom())}\n`;

let box: Sandbox;
beforeAll(() => {
  box = makeSandbox();
  box.write('train.log', LOG);
});
afterAll(() => box.remove());

const diagnose = (args: readonly string[], env: Readonly<Record<string, string>> = {}) =>
  box.run(['diagnose', ...args], env);
const asJson = async (args: readonly string[]) => {
  const { exitCode, stdout } = await diagnose([...args, '--json']);
  return {
    exitCode,
    reports: stdout
      .trim()
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line)),
  };
};

describe('snug diagnose', () => {
  it('says what ended a run, with the line that proves it and what to do', async () => {
    const { exitCode, stdout, stderr } = await diagnose(['train.log']);
    expect([exitCode, stderr]).toEqual([0, '']);
    expect(stdout).toContain('GPU memory (VRAM) ran out in the backward pass');
    expect(stdout).toMatch(/train\.log:8\n\s+torch\.OutOfMemoryError/);
    expect(stdout).toContain('1.4 GiB asked for, 811 MiB free: 592 MiB short');
    expect(stripVTControlCharacters(stdout)).toBe(stdout);
  });

  it('speaks Chinese where the environment does, unless told otherwise', async () => {
    expect((await diagnose(['train.log'], { LANG: 'zh_CN.UTF-8' })).stdout).toContain('显存（VRAM）不足');
    expect((await diagnose(['train.log', '--lang', 'zh'])).stdout).toContain('累积步数');
    expect((await diagnose(['train.log', '--lang', 'en'], { LANG: 'zh_CN.UTF-8' })).stdout).toContain('GPU memory');
  });

  it('gives the contract as JSON', async () => {
    const { exitCode, reports } = await asJson(['train.log']);
    expect(exitCode).toBe(0);
    expect(reports).toHaveLength(1);
    expect(reports[0]).toMatchObject({
      schema_version: 1,
      kind: 'vram_capacity',
      resource: 'vram',
      phase: 'backward',
      verdict: 'retry_smaller',
      confidence: 'high',
      evidence: [{ line: 8, rank: null }],
      numbers: { tried_bytes: Math.round(1.37 * 2 ** 30), free_bytes: 811 * 2 ** 20 },
    });
    expect(reports[0].remedies[0]).toMatchObject({ id: 'micro-batch', saves_bytes: null });
  });

  it.each([
    ['empty.log', '', 15, /is empty/],
    ['calm.log', 'epoch 1 of 3\nepoch 2 of 3\n', 15, /no failure of any kind was recognised in 2 lines/],
    ['done.log', "{'loss': 1.2}\n{'train_runtime': 77.1, 'epoch': 3.0}\n", 15, /seems to have ended well/],
  ])('%s exits with %i words', async (name, text, code, said) => {
    box.write(name, text);
    const { exitCode, stdout } = await diagnose([name]);
    expect([exitCode, stdout]).toEqual([code, expect.stringMatching(said)]);
    expect(stdout).not.toMatch(/VRAM\)|host RAM ran out/);
  });

  it('refuses what is no log, and says what it is', async () => {
    writeFileSync(join(box.folder, 'model.bin'), Buffer.from([0x50, 0x4b, 3, 4, 0, 0, 0, 1, 2, 3]));
    const { exitCode, stderr } = await diagnose(['model.bin']);
    expect([exitCode, stderr]).toEqual([3, expect.stringMatching(/cannot read model\.bin: it is a zip archive/)]);
    expect((await diagnose(['gone.log'])).stderr).toMatch(/there is no such file/);
  });

  it('reads gzip, also when it breaks off', async () => {
    const packed = gzipSync(`${LOG}${'a line of the tail\n'.repeat(5000)}`);
    writeFileSync(join(box.folder, 'train.log.gz'), packed);
    expect((await asJson(['train.log.gz'])).reports[0].kind).toBe('vram_capacity');
    writeFileSync(join(box.folder, 'cut.log.gz'), packed.subarray(0, packed.length - 9));
    const { exitCode, stdout } = await diagnose(['cut.log.gz']);
    expect([exitCode, stdout]).toEqual([0, expect.stringContaining('breaks off early')]);
  });

  it('lists many runs, a line each', async () => {
    const names = ['aa', 'bb', 'cc', 'dd', 'ee', 'ff', 'gg'].map((name) => `${name}.log`);
    for (const name of names) box.write(name, `${oom()}\n`);
    const { exitCode, stdout } = await diagnose(names);
    expect(exitCode).toBe(0);
    expect(stdout.trim().split('\n')).toHaveLength(7);
    expect(stdout).toContain('cc.log  vram_capacity  retry_smaller  GPU memory (VRAM) ran out\n');
    expect((await asJson(names)).reports).toHaveLength(7);
  });

  it('makes one report of the ranks of a run, and one each of runs', async () => {
    box.write('rank0.log', 'Watchdog caught collective operation timeout: WorkNCCL(SeqNum=7) ran for 600000 ms\n');
    box.write('rank1.log', `${oom()}\n`);
    box.write('other.log', 'OSError: [Errno 28] No space left on device\n');
    const { reports } = await asJson(['rank0.log', 'rank1.log', 'other.log']);
    expect(reports.map(({ kind, files }) => [kind, files])).toEqual([
      ['nccl_hang_after_oom', ['rank0.log', 'rank1.log']],
      ['disk', ['other.log']],
    ]);
    expect(reports[0].evidence[0]).toMatchObject({ file: 'rank1.log', rank: 1 });
  });
});
