import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { PassThrough } from 'node:stream';
import { expect, it } from 'vitest';
import { createGate, puppet, start } from './rig.ts';

it('hands both streams on unchanged and names the stream of each line in output.log', async () => {
  const rig = puppet([
    ['out', 'epoch 1 begins\n'],
    ['err', '\r 40%|████      | 4/10 [00:01<00:02]\r 50%|█████     | 5/10 [00:02<00:02]'],
    ['err', '\n\u001b[31mbroken\u001b[0m\n'],
    ['out', 'no line end'],
  ]);
  const evidence = await rig.evidence();
  expect(evidence).toMatchObject({ exitCode: 0, signal: undefined, startFailure: undefined, lines: [] });
  expect(rig.stdout.bytes().toString()).toBe('epoch 1 begins\nno line end');
  expect(rig.stderr.bytes().toString()).toBe(
    '\r 40%|████      | 4/10 [00:01<00:02]\r 50%|█████     | 5/10 [00:02<00:02]\n\u001b[31mbroken\u001b[0m\n',
  );
  // Which of the two pipes is read first is not ours to say.
  const lines = rig.log().trimEnd().split('\n');
  expect(lines.every((line) => /^(?:out|err)\| /.test(line))).toBe(true);
  expect(lines.filter((line) => line.startsWith('out| '))).toEqual(['out| epoch 1 begins', 'out| no line end']);
  expect(lines).toContain('err| \u001b[31mbroken\u001b[0m');
});

it('hands a character on whole that came in two chunks', async () => {
  const rig = puppet([
    ['hex', 'err', 'e296'],
    ['out', 'between\n'],
    ['hex', 'err', '880a'],
  ]);
  await rig.evidence();
  expect(rig.stderr.bytes().toString()).toBe('█\n');
});

it('hands on 20 MB without losing, moving or holding back a byte', async () => {
  const lines = 230_000;
  const rig = puppet([
    ['flood', 'out', lines],
    ['exit', 0],
  ]);
  const evidence = await rig.evidence();
  let expected = '';
  for (let line = 0; line < lines; line++) expected += `line ${line} ${'x'.repeat(80)}\n`;
  expect(evidence.exitCode).toBe(0);
  expect(expected.length).toBeGreaterThan(20e6);
  expect(rig.stdout.bytes().equals(Buffer.from(expected))).toBe(true);
  expect(rig.log().replace(/^out\| /gm, '') === expected).toBe(true);
});

it('keeps on reading a trainer while the terminal takes nothing, and shows everything later', async () => {
  const stuck = new PassThrough({ highWaterMark: 1024 });
  const rig = puppet(
    [
      ['flood', 'out', 90_000],
      ['err', 'all written\n'],
      ['exit', 4],
    ],
    { stdout: stuck },
  );
  await rig.stderr.until('all written');
  const chunks: Buffer[] = [];
  stuck.on('data', (chunk: Buffer) => chunks.push(chunk));
  const evidence = await rig.evidence();
  const shown = Buffer.concat(chunks).toString();
  expect(evidence.exitCode).toBe(4);
  expect(shown.split('\n').length).toBe(90_001);
  expect(shown.startsWith('line 0 x')).toBe(true);
  expect(shown.includes(`line 89999 ${'x'.repeat(80)}\n`)).toBe(true);
  expect(existsSync(join(rig.folder, 'output.log.stdout.waiting'))).toBe(false);
});

it('lets the trainer finish when the reader of our output has gone', async () => {
  const gone = new PassThrough();
  const rig = puppet(
    [
      ['out', 'first\n'],
      ['on', 'SIGUSR1', ''],
      ['flood', 'out', 5000],
      ['exit', 0],
    ],
    { stdout: gone },
  );
  gone.destroy();
  expect((await rig.evidence()).exitCode).toBe(0);
  expect(rig.log()).toContain('out| line 4999 ');
});

it('goes on without a log that cannot be written', async () => {
  const rig = puppet(
    [
      ['out', 'still here\n'],
      ['exit', 6],
    ],
    { logPath: '/dev/null/output.log', samplesPath: '/dev/null/samples.jsonl' },
  );
  expect((await rig.evidence()).exitCode).toBe(6);
  expect(rig.stdout.bytes().toString()).toBe('still here\n');
});

it('asks Python not to hold its output back, and leaves a choice of the user alone', async () => {
  const script = [['environment', 'PYTHONUNBUFFERED', 'COLUMNS', 'HOME']] as const;
  const wide = Object.assign(new PassThrough(), { columns: 133 });
  const plain = puppet(script, { stderr: wide });
  await plain.evidence();
  expect(plain.stdout.bytes().toString()).toBe('["1","133",null]\n');
  const chosen = puppet(script, { stderr: wide, env: { PYTHONUNBUFFERED: '', COLUMNS: '71' } });
  await chosen.evidence();
  expect(chosen.stdout.bytes().toString()).toBe('["","71",null]\n');
});

it('asks for colours where both streams end on a screen, and nowhere else', async () => {
  const screen = () => Object.assign(new PassThrough(), { isTTY: true });
  const asked = async (overrides: Parameters<typeof puppet>[1]): Promise<string> => {
    const rig = puppet([['environment', 'FORCE_COLOR', 'NO_COLOR']], overrides);
    await rig.evidence();
    return rig.log();
  };
  const both = () => ({ stdout: screen(), stderr: screen() });
  expect(await asked(both())).toContain('["1",null]');
  expect(await asked({ stderr: screen() })).toContain('[null,null]');
  expect(await asked({ ...both(), env: { NO_COLOR: '1' } })).toContain('[null,"1"]');
  expect(await asked({ ...both(), env: { FORCE_COLOR: '0' } })).toContain('["0",null]');
  expect(await asked({ ...both(), env: { TERM: 'dumb' } })).toContain('[null,null]');
});

it('shows what a Python program prints before it is killed', async () => {
  const rig = start(['python3', '-c', 'print("step 1 done"); import os; os.kill(os.getpid(), 9)'], {
    env: { HOME: process.env.HOME },
  });
  expect(await rig.evidence()).toMatchObject({ exitCode: undefined, signal: 'SIGKILL' });
  expect(rig.stdout.bytes().toString()).toBe('step 1 done\n');
});

it('samples the memory of the whole tree and the device', async () => {
  let calls = 0;
  const rig = puppet(
    [['child', [['hold', 60], ['out', 'held\n'], ['forever']]], ['exitOn', 'SIGUSR2', 0, ''], ['forever']],
    { sampleVram: async () => 1000 + calls++, drainMs: 0 },
  );
  await rig.stdout.until('held');
  const samples = (): { ram_bytes?: number }[] =>
    readFileSync(join(rig.folder, 'samples.jsonl'), 'utf8')
      .trim()
      .split('\n')
      .flatMap((line) => (line === '' ? [] : JSON.parse(line)));
  const full = () => samples().find((sample) => (sample.ram_bytes ?? 0) > 60 * 1024 ** 2);
  while (full() === undefined) await new Promise((done) => setTimeout(done, 20));
  rig.attempt.signal('SIGUSR2');
  const evidence = await rig.evidence();
  expect(evidence.peakRamBytes).toBeGreaterThan(60 * 1024 ** 2);
  expect(evidence.peakVramBytes).toBeGreaterThan(1000);
  expect(full()).toMatchObject({ at_ms: expect.any(Number), vram_bytes: expect.any(Number), processes: 2 });
});

it('sees the height of memory that was taken and given back between two samples', async () => {
  const [up, down] = [createGate(), createGate()];
  const script = [['await', up.path], ['hold', 300], ['drop'], ['out', 'dropped'], ['await', down.path]] as const;
  const rig = puppet(script, { sampleEveryMs: 60_000 });
  const sampled = (): boolean => readFileSync(join(rig.folder, 'samples.jsonl'), 'utf8') !== '';
  while (!sampled()) await new Promise((done) => setTimeout(done, 20));
  up.open();
  await rig.stdout.until('dropped');
  await new Promise((done) => setTimeout(done, 800));
  down.open();
  expect((await rig.evidence()).peakRamBytes).toBeGreaterThan(300 * 1024 ** 2);
});
