import { stripVTControlCharacters } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { makeSandbox, type Sandbox } from '../support/snug-cli.ts';

const MODEL =
  'model_config: {model_type: llama, hidden_size: 1024, intermediate_size: 2816, num_hidden_layers: 10, num_attention_heads: 16, vocab_size: 32000}';
const CONFIG = `command: ./train.sh {per_device_train_batch_size} {gradient_accumulation_steps}
${MODEL}
per_device_train_batch_size: 24
gradient_accumulation_steps: 2
max_length: 1024
`;

let box: Sandbox;
beforeAll(() => {
  box = makeSandbox();
  box.write('snug.yaml', CONFIG);
  box.write('small.yaml', CONFIG.replace('size: 24', 'size: 1'));
  box.write('train.sh', '#!/bin/sh\necho "trained $1 $2"\nexit 7\n');
});
afterAll(() => box.remove());

describe('check', () => {
  it.each([
    [['check', '--gpu', '40GiB'], 0],
    [['check', '--gpu', '8GiB'], 10],
    [['check', 'snug.yaml', '--gpu', '1GiB'], 11],
    [['check', 'snug.yaml'], 12],
    [['check', 'snug.yaml', 'small.yaml', '--gpu', '8GiB'], 10],
    [['check', 'snug.yaml', '--gpu', '8GiB', '--fail-on', 'refuse'], 0],
    [['check', 'snug.yaml', '--gpu', '1GiB', '--fail-on', 'refuse'], 11],
    [['check', 'snug.yaml', '--gpu', '1GiB', '--fail-on', 'unknown'], 0],
    [['check', 'snug.yaml', 'gone.yaml', '--gpu', '8GiB'], 3],
  ])('%j exits %i', async (args, code) => {
    expect((await box.run(args)).exitCode).toBe(code);
  });

  it('prints one JSON object a config on stdout and nothing else', async () => {
    const { stdout, stderr } = await box.run(['check', 'snug.yaml', 'small.yaml', '--gpu', '8GiB', '--json']);
    const reports = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    expect(reports.map(({ schema_version, plan }) => [schema_version, plan.verdict])).toEqual([
      [1, 'rewrite'],
      [1, 'fits'],
    ]);
    expect(reports[0].spec.per_device_train_batch_size).toEqual({ value: 24, origin: 'snug.yaml:3' });
    expect(stderr).toBe('');
  });

  it('shows what the command line says when a file it names is missing', async () => {
    const argv = ['trl', 'sft', '--config', 'gone.yaml', '--per_device_train_batch_size', '3'];
    const { exitCode, stdout, stderr } = await box.run(['check', '--json', '--', ...argv]);
    const { spec, plan, diagnostics } = JSON.parse(stdout);
    expect(exitCode).toBe(3);
    expect(stderr).toMatch(/error\[unreadable-file\]: cannot read gone\.yaml/);
    expect(spec.per_device_train_batch_size).toEqual({ value: 3, origin: 'argv[5]' });
    expect(spec.max_length.value).toBeNull();
    expect([plan, diagnostics[0].code]).toEqual([null, 'unreadable-file']);
  });

  it('checks a config without a command; only run needs one', async () => {
    box.write('bare.yaml', CONFIG.split('\n').slice(1).join('\n'));
    const checked = await box.run(['check', 'bare.yaml', '--gpu', '8GiB', '--json']);
    expect(checked.exitCode).toBe(10);
    expect(JSON.parse(checked.stdout).plan).toMatchObject({ verdict: 'rewrite', command: [], files: [] });
    const started = await box.run(['run', 'bare.yaml', '--gpu', '8GiB']);
    expect([started.exitCode, started.stderr]).toEqual([3, expect.stringContaining('error[no-command]')]);
    box.write('empty.yaml', '');
    const empty = await box.run(['check', 'empty.yaml', '--gpu', '8GiB']);
    expect([empty.exitCode, empty.stdout]).toEqual([12, expect.stringContaining('unknown-setting')]);
  });

  it('keeps to 80 columns, and has no colour or motion where nobody watches', async () => {
    const { stdout } = await box.run(['check', 'snug.yaml', '--gpu', '8GiB']);
    expect(Math.max(...stdout.split('\n').map((line) => [...line].length))).toBeLessThanOrEqual(80);
    expect(stripVTControlCharacters(stdout)).toBe(stdout);
    expect(stdout).toContain('per_device_train_batch_size 24 ->');
  });

  it('writes nothing', () => {
    expect(box.exists('.snug')).toBe(false);
  });
});

describe('wrong usage', () => {
  it.each([
    [['check', '--bogus'], /error\[usage\]: unknown option '--bogus'/],
    [['run', '--mode', 'maybe'], /Allowed choices are rewrite, refuse, warn/],
    [['run', '--allow', 'free,everything'], /'everything' is no class of changes/],
    [['check', '--headroom', '7'], /share of the card/],
    [['check', '--gpu', 'rtx-9999'], /error\[unknown-gpu\]/],
    [['check', '--set', 'max_lenght=5'], /unknown key max_lenght[\s\S]*max_length/],
    [['run', '--'], /there is no command after --/],
    [['run', 'snug.yaml', '--', 'python', 'x.py'], /both a config \(snug\.yaml\) and a command/],
    [['chekc', 'snug.yaml'], /'chekc' is neither a command of snug nor a config file/],
    [['run', 'python', 'train.py'], /put -- before a training command: snug run -- python train\.py/],
  ])('%j exits 2 with one way out', async (args, text) => {
    const { exitCode: code, stdout, stderr } = await box.run(args);
    expect(stderr).toMatch(text);
    expect(stderr).not.toMatch(/\n\s+at /);
    expect([code, stdout]).toEqual([2, '']);
  });
});

describe('run', () => {
  it('passes the trainer’s output and exit code through, and says whose code it is', async () => {
    const trained = makeSandbox();
    trained.write('snug.yaml', CONFIG);
    trained.write('train.sh', '#!/bin/sh\necho "trained $1 $2"\nexit 7\n');
    const chmod = await trained.startProgram(['chmod', '+x', 'train.sh']).ended;
    expect(chmod.exitCode).toBe(0);
    const { exitCode: code, stdout, stderr } = await trained.run(['run', '--gpu', '40GiB']);
    expect([code, stdout]).toEqual([7, 'trained 24 2\n']);
    expect(stderr).toContain("snug: exit code 7, the trainer's own");
    const quiet = await trained.run(['--gpu', '40GiB', '-q', '--', 'sh', '-c', 'echo out; echo err >&2']);
    expect(quiet).toMatchObject({ exitCode: 0, stdout: 'out\n', stderr: 'err\n' });
    trained.remove();
  });

  it('begins its own talk on a line of its own, and passes SIGUSR1 on', async () => {
    const usr1 = makeSandbox();
    usr1.write(
      't.py',
      'import signal, sys, time\nsignal.signal(signal.SIGUSR1, lambda *a: sys.exit(9))\nsys.stderr.write("\\r 1/5 ")\nsys.stderr.flush()\ntime.sleep(60)\n',
    );
    const running = usr1.start(['run', '--gpu', '8GiB', '--json', '--', 'python3', 't.py']);
    await running.seen(/1\/5/);
    running.signal('SIGUSR1');
    const { exitCode, stderr } = await running.ended;
    expect(exitCode).toBe(9);
    expect(stderr).not.toContain('Debugger');
    const events = stderr.split('\n').filter((line) => line.startsWith('{'));
    expect(events.map((line) => JSON.parse(line).event)).toContain('attempt-ended');
    expect(usr1.leftProcesses()).toEqual([]);
    usr1.remove();
  });

  it('says why a program cannot be started', async () => {
    const plain = makeSandbox();
    plain.write('plain.sh', 'echo no\n');
    const { exitCode, stderr } = await plain.run(['run', '--gpu', '8GiB', '--', './plain.sh']);
    plain.remove();
    expect([exitCode, stderr]).toEqual([126, expect.stringContaining('chmod +x')]);
  });

  it('starts nothing in a dry run and prints the command', async () => {
    const { exitCode: code, stdout } = await box.run(['run', '--dry-run', '--gpu', '8GiB']);
    expect([code, stdout]).toEqual([0, expect.stringMatching(/^\.\/train\.sh \d+ \d+\n$/)]);
    expect(box.exists('.snug')).toBe(false);
  });

  it('refuses with 11 what does not fit, and with 12 what cannot be told when only the certain may start', async () => {
    expect((await box.run(['run', '--gpu', '8GiB', '--mode', 'refuse'])).exitCode).toBe(11);
    expect((await box.run(['run', '--mode', 'refuse'])).exitCode).toBe(12);
    expect(box.exists('.snug')).toBe(false);
  });
});

describe('estimate', () => {
  it('explains each term on request', async () => {
    const { exitCode, stdout } = await box.run(['estimate', 'snug.yaml', '--gpu', '16GiB', '--explain', '--json']);
    const { vram, explain, peak } = JSON.parse(stdout);
    expect(exitCode).toBe(0);
    expect(peak.phase).toBe(vram.peak_phase);
    expect(explain.reduce((sum: number, { bytes }: { bytes: number }) => sum + bytes, 0)).toBe(vram.device_peak_bytes);
    const text = await box.run(['estimate', 'snug.yaml', '--gpu', '16GiB', '--explain']);
    expect(text.stdout).toMatch(/^weights {2}[\d.]+ [GM]iB$/m);
    expect(text.stdout).toMatch(/^the peak {2}/m);
    expect(JSON.parse((await box.run(['estimate', 'snug.yaml', '--json'])).stdout).explain).toBeUndefined();
  });

  it('reads plans from stdin or a file and answers every line', async () => {
    const plan = {
      id: 'a',
      model_config: {
        model_type: 'llama',
        hidden_size: 512,
        num_hidden_layers: 3,
        num_attention_heads: 8,
        intermediate_size: 1024,
        vocab_size: 9000,
      },
      per_device_train_batch_size: 3,
      max_length: 64,
    };
    box.write('plans.jsonl', `${JSON.stringify(plan)}\n${JSON.stringify({ ...plan, id: 'b', method: 'loar' })}\n`);
    const { exitCode: code, stdout } = await box.run(['estimate', '--plans', 'plans.jsonl', '--json']);
    const [first, second] = stdout
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line));
    // Everything that can be answered is, and the worst line decides.
    expect(code).toBe(3);
    const exotic = { ...plan, id: 'c', model_config: { model_type: 'no-such' } };
    box.write('more.jsonl', `${JSON.stringify(plan)}\n${JSON.stringify(exotic)}\n`);
    expect((await box.run(['estimate', '--plans', 'more.jsonl', '--json'])).exitCode).toBe(12);
    box.write('good.jsonl', `${JSON.stringify(plan)}\n`);
    expect((await box.run(['estimate', '--plans', 'good.jsonl', '--json'])).exitCode).toBe(0);
    expect(first.id).toBe('a');
    const terms = Object.values(first.vram.terms as Record<string, number>);
    expect(terms.reduce((sum, bytes) => sum + bytes, 0)).toBe(first.vram.device_peak_bytes);
    expect([...terms, first.vram.low_bytes, first.vram.high_bytes].every(Number.isInteger)).toBe(true);
    expect(second).toEqual({ id: 'b', error: { code: 'bad-value', message: expect.stringContaining('method') } });
  });
});

it.each([[['--help']], [['run', '--help']], [['check', '--help']], [['estimate', '--help']]])(
  '%j shows examples',
  async (args) => {
    const { exitCode: code, stdout } = await box.run(args);
    expect([code, stdout]).toEqual([0, expect.stringContaining('Examples:')]);
  },
);

describe('--help', () => {
  it.each([[], ['run'], ['check'], ['estimate'], ['gpus'], ['diagnose'], ['dialects']])(
    '%j fits 80 columns',
    async (...command) => {
      const { stdout, exitCode } = await box.run([...command, '--help'], { COLUMNS: '80' });
      expect([exitCode, stdout.split('\n').filter((line) => line.length > 80)]).toEqual([0, []]);
      expect(stdout).toContain('Examples:');
    },
  );
});
