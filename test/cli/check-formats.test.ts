import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { makeSandbox, ROOT, type Sandbox } from '../support/snug-cli.ts';

const CONFIG = `command: ./train.sh {per_device_train_batch_size} {gradient_accumulation_steps}
model_config: {model_type: llama, hidden_size: 1024, intermediate_size: 2816, num_hidden_layers: 10, num_attention_heads: 16, vocab_size: 32000}
per_device_train_batch_size: 24
gradient_accumulation_steps: 2
max_length: 1024
`;

let box: Sandbox;
beforeAll(() => {
  box = makeSandbox();
  box.write('wide.yaml', CONFIG);
  box.write('small.yaml', CONFIG.replace('size: 24', 'size: 1'));
  box.write('odd,name.yaml', CONFIG.replace('layers: 10', 'layers: 900'));
  box.write('broken.yaml', 'command: [\n');
});
afterAll(() => box.remove());

const FILES = ['wide.yaml', 'small.yaml', 'odd,name.yaml', 'broken.yaml'];
const check = (format: string, rest: readonly string[] = [], env: Record<string, string> = {}) =>
  box.run(['check', ...FILES, '--gpu', '8GiB', '--format', format, ...rest], env);

describe('--format github', () => {
  it('annotates the line to change, one command a line, and nothing else', async () => {
    const { stdout, exitCode } = await check('github');
    const lines = stdout.trim().split('\n');
    expect(lines.every((line) => /^::(error|warning|notice) [^\n]*::/.test(line))).toBe(true);
    expect(stdout).toContain(
      '::warning file=wide.yaml,line=3,title=snug fits-after-rewrite::wide.yaml: fits after a rewrite',
    );
    expect(stdout).toMatch(/^::notice file=small\.yaml,title=snug fits::small\.yaml: fits: \d/m);
    expect(stdout).toContain('file=odd%2Cname.yaml,line=3,title=snug does-not-fit::');
    expect(stdout).toMatch(/^::error file=broken\.yaml,line=\d+/m);
    expect(stdout).toContain('%0Ahelp: ');
    expect(exitCode).toBe(3);
  });

  it('adds a page to the job summary, and keeps what stands there', async () => {
    box.write('summary.md', 'before\n');
    const { stderr } = await check('github', [], { GITHUB_STEP_SUMMARY: join(box.folder, 'summary.md') });
    const summary = box.read('summary.md');
    expect(summary.startsWith('before\n## snug')).toBe(true);
    expect(summary).toContain('| `wide.yaml` | **fits after a rewrite** |');
    expect(stderr).not.toContain('error[');
  });

  it('says so where the summary cannot be written, and annotates all the same', async () => {
    const { stdout, stderr } = await check('github', [], {
      GITHUB_STEP_SUMMARY: join(box.folder, 'no', 'such', 'folder.md'),
    });
    expect(stdout).toContain('::notice file=small.yaml');
    expect(stderr).toMatch(/error\[no-job-summary\].*ENOENT/);
  });

  it('what --fail-on lets pass is no error', async () => {
    const { stdout } = await check('github', ['--fail-on', 'unknown']);
    expect(stdout).toMatch(/^::warning file=odd%2Cname\.yaml[^\n]*does-not-fit/m);
  });
});

describe('--format junit', () => {
  it('is a suite in which what does not fit fails and what cannot be read is an error', async () => {
    const { stdout, exitCode } = await check('junit', ['--fail-on', 'refuse']);
    expect(stdout).toMatch(/^<\?xml version="1.0"/);
    expect(stdout).toContain('<testsuites tests="4" failures="1" errors="1">');
    expect(stdout).toMatch(/<testcase classname="snug.check" name="odd,name.yaml">\s*<failure message="this run needs/);
    expect(stdout).toMatch(/<testcase classname="snug.check" name="wide.yaml">\s*<system-out>/);
    expect(stdout).toContain('24 -&gt; 6');
    expect(exitCode).toBe(3);
  });
});

describe('--format markdown', () => {
  it('is a table of all launches, then each with its bars and changes; the same each time', async () => {
    const { stdout } = await check('markdown');
    expect(stdout).toContain('| launch | verdict | needs | usable |');
    expect(stdout).toContain('| `broken.yaml` | **cannot be read** |  |  |');
    expect(stdout).toMatch(/### `wide\.yaml`\n\n```text\n {2}weights/);
    expect(stdout).toContain('\n- per_device_train_batch_size 24 -> 6, gradient_accumulation_steps 2 -> 8');
    expect((await check('markdown')).stdout).toBe(stdout);
  });
});

it('--json and another format exclude each other', async () => {
  const { exitCode, stderr } = await check('junit', ['--json']);
  expect([exitCode, stderr]).toEqual([2, expect.stringContaining('--json and --format junit')]);
});

describe('examples/ci', () => {
  it.each(['github-workflow.yml', 'gitlab-job.yml'])('%s is YAML whose command snug understands', async (name) => {
    const text = readFileSync(join(ROOT, 'examples', 'ci', name), 'utf8');
    expect(parse(text)).toBeTypeOf('object');
    const [, flags] = /npx snug check configs\/\*\.yaml (.*?)(?: > .*)?$/m.exec(text)!;
    const { exitCode, stdout } = await box.run(['check', 'small.yaml', ...flags!.split(' ')]);
    expect(exitCode).toBe(0);
    expect(stdout).not.toBe('');
  });

  it.skipIf(spawnSync('make', ['--version']).status !== 0)(
    'the Makefile stops before a run that cannot fit',
    async () => {
      const makefile = join(ROOT, 'examples', 'ci', 'Makefile');
      const snug = `SNUG=${process.execPath} ${join(ROOT, 'bin', 'snug.js')}`;
      const check = (gpu: string) =>
        spawnSync('make', ['-f', makefile, 'check', `GPU=${gpu}`, 'CONFIG=sft.yaml', snug], { cwd: box.folder }).status;
      box.write('sft.yaml', 'model_name_or_path: Qwen/Qwen2.5-0.5B\nmax_length: 512\noutput_dir: out\n');
      expect(check('h100')).toBe(0);
      expect(check('1GiB')).not.toBe(0);
    },
  );
});
