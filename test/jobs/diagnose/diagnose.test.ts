import { describe, expect, it } from 'vitest';
import { GiB } from '../../../src/core/index.ts';
import { groupLogs } from '../../../src/jobs/diagnose/log-groups.ts';
import { type DiagnoseRequest, diagnose, type OpenLog } from '../../../src/jobs/index.ts';
import { diagnosisMarkdown, renderDiagnosis } from '../../../src/report/diagnosis/forms.ts';
import type { DiagnosisReport } from '../../../src/report/index.ts';
import { newText, oom, traceback } from '../../diagnosis/texts.ts';
import { type FakeWorld, fakePorts } from '../../support/fake-ports.ts';

const CONFIG = JSON.stringify({
  model_type: 'llama',
  hidden_size: 1536,
  intermediate_size: 4096,
  num_hidden_layers: 20,
  num_attention_heads: 12,
  num_key_value_heads: 4,
  vocab_size: 48000,
  torch_dtype: 'bfloat16',
});
const ARGV = [
  'python',
  'train.py',
  '--model_name_or_path',
  'base',
  '--per_device_train_batch_size',
  '24',
  '--gradient_accumulation_steps',
  '2',
  '--block_size=1024',
];
const FILES = {
  '/project/base/config.json': CONFIG,
  '/project/train.py': 'from transformers import Trainer\n# block_size\n',
};

/** Logs by name, as `open` would find them. */
const opening =
  (logs: Readonly<Record<string, string>>): OpenLog =>
  async (path) => {
    const text = logs[path];
    if (text === undefined) return { ok: false, code: 'ENOENT' };
    async function* chunks() {
      yield new TextEncoder().encode(text);
    }
    return { ok: true, chunks: chunks(), cutArchive: () => false };
  };

const ASKED: DiagnoseRequest = {
  logs: [],
  runFolder: undefined,
  nvidiaSmi: undefined,
  dmesg: undefined,
  preflight: undefined,
};

async function reportsOf(
  logs: Readonly<Record<string, string>>,
  request: Partial<DiagnoseRequest> = {},
  world: FakeWorld = {},
): Promise<readonly DiagnosisReport[]> {
  const outcome = await diagnose(fakePorts({ files: FILES, ...world }), { ...ASKED, ...request }, opening(logs));
  if (outcome.kind !== 'diagnosed') throw new Error(JSON.stringify(outcome.diagnostics));
  return outcome.reports;
}
const preflight = { target: { kind: 'command', argv: ARGV }, policy: {}, set: [], starts: false } as const;
const step = ['main: trainer.train()', 'training_step: self.accelerator.backward(loss)', 'backward: loss.backward()'];

describe('what to do, priced by the launch', () => {
  const small = {
    tried: '1.10 GiB',
    total: '31.70 GiB',
    free: '300.00 MiB',
    self: '31.40 GiB',
    allocated: '30.60 GiB',
  };

  it('is the very flags to change, with the estimate before and after', async () => {
    const [report] = await reportsOf({ 'a.log': traceback(step, oom(small)) }, { logs: ['a.log'], preflight });
    const { fitting, remedies, verdict } = report!;
    expect(verdict).toBe('retry_smaller');
    expect(fitting?.edits[0]).toMatchObject({ place: 'command', before: '--per_device_train_batch_size 24' });
    expect(fitting!.afterBytes!).toBeLessThan(fitting!.beforeBytes!);
    // What the settings have already, or what stands in the plan, is not advised again.
    expect(remedies.map(({ id }) => id)).not.toContain('micro-batch');
    expect(remedies.map(({ id }) => id)).not.toContain('qlora');
    expect(remedies.find(({ id }) => id === 'gradient-checkpointing')?.savesBytes).toBeGreaterThan(GiB);
    // At this peak nothing that LoRA takes away is there.
    expect(remedies.map(({ id }) => id)).not.toContain('lora');
  });

  it('is a larger card, by name, only where no permitted setting is enough', async () => {
    const tiny = { tried: '90.00 MiB', total: '5.80 GiB', free: '10.00 MiB', self: '5.70 GiB', allocated: '5.20 GiB' };
    const [report] = await reportsOf(
      { 'a.log': traceback(step, oom({ ...tiny, stranded: '40.00 MiB' })) },
      { logs: ['a.log'], preflight: { ...preflight, policy: { allow: ['free', 'exact'] } } },
    );
    const { larger, verdict, fitting } = report!;
    expect([verdict, fitting]).toEqual(['upgrade_vram', undefined]);
    expect(larger!.neededBytes).toBeGreaterThan(5.8 * GiB);
    expect(larger!.cards.length).toBeGreaterThan(1);
    expect(renderDiagnosis(report!, 'en', { colour: false, width: 80 })).toMatch(/a GPU with at least [\d.]+ GiB/);
  });

  it('is not worked out where other processes are the cause', async () => {
    const shared = { ...small, self: '18.00 GiB', allocated: '17.00 GiB', processes: [[4711, '13.00 GiB']] as const };
    const [report] = await reportsOf({ 'a.log': oom(shared) }, { logs: ['a.log'], preflight });
    expect([report!.verdict, report!.fitting, report!.larger]).toEqual(['free_gpu', undefined, undefined]);
  });

  it('of host RAM is what each setting takes off, and how much must be free', async () => {
    const argv = [...ARGV, '--dataloader_num_workers', '8'];
    const [report] = await reportsOf(
      { 'a.log': 'RuntimeError: DataLoader worker (pid 77) is killed by signal: Killed. \n' },
      { logs: ['a.log'], preflight: { ...preflight, target: { kind: 'command', argv }, gpu: '48GiB' } },
    );
    expect(report!.remedies.find(({ id }) => id === 'fewer-workers')?.savesBytes).toBeGreaterThan(GiB / 4);
    expect(report!.remedies.map(({ id }) => id)).not.toContain('less-offload');
    expect(report!.neededRamBytes).toBeGreaterThan(GiB);
  });

  it('says why there is none', async () => {
    const target = { kind: 'command', argv: ['python', 'gone.py', '--model_name_or_path', 'nobody/knows-it'] } as const;
    const [report] = await reportsOf({ 'a.log': oom() }, { logs: ['a.log'], preflight: { ...preflight, target } });
    expect(report!.notes.map(({ id }) => id)).toContain('not-priced');
  });
});

describe('what stands beside the log', () => {
  const killed = 'launcher: exits with return code = -9\n';
  const kernel = (pid: number, name: string): string =>
    `[Mon Mar  2 08:11:40 2026] Memory cgroup out of memory: Killed process ${pid} (${name}) total-vm:93112kB, anon-rss:61865984kB, file-rss:12kB\n`;

  it('of the kernel proves a kill', async () => {
    const [report] = await reportsOf(
      { 'a.log': killed, 'd.txt': kernel(812, 'python3') },
      { logs: ['a.log'], dmesg: 'd.txt' },
    );
    expect(report!.failure).toMatchObject({ kind: 'cgroup', resource: 'host_ram', confidence: 'high' });
    expect(report!.notes).toContainEqual({ id: 'killed', values: { name: 'python3', pid: '812', size: '59.0 GiB' } });
  });

  it('of the kernel about another program, or beside a failure that speaks for itself, is only mentioned', async () => {
    const [stranger] = await reportsOf(
      { 'a.log': 'KeyError: 7\n', 'd.txt': kernel(99, 'mysqld') },
      { logs: ['a.log'], dmesg: 'd.txt' },
    );
    expect(stranger!.failure?.kind).toBe('not_memory');
    expect(stranger!.notes.map(({ id }) => id)).toEqual(['other-run']);
    const [own] = await reportsOf(
      { 'a.log': `${oom()}\n`, 'd.txt': kernel(812, 'python3') },
      { logs: ['a.log'], dmesg: 'd.txt' },
    );
    expect(own!.failure?.kind).toBe('vram_capacity');
  });

  it('of nvidia-smi says who is on the card', async () => {
    const smi = [
      '|   0  NVIDIA L40S                    On  |   00000000:01:00.0 Off |                    0 |',
      '| N/A   41C    P0             88W /  350W |   30211MiB /  46068MiB |      0%      Default |',
      '|    0   N/A  N/A     31337      C   /opt/env/bin/python                       29800MiB |',
      '|    0   N/A  N/A      1201      G   /usr/lib/xorg/Xorg                          90MiB |',
    ].join('\n');
    const [report] = await reportsOf(
      { 'a.log': 'RuntimeError: CUDA error: out of memory\n', 'smi.txt': smi },
      { logs: ['a.log'], nvidiaSmi: 'smi.txt' },
    );
    expect(report!.failure).toMatchObject({ kind: 'vram_capacity', candidates: ['vram_other_process'] });
    expect(report!.notes.map(({ id, values }) => [id, values.used ?? values.size])).toEqual([
      ['card-now', '29.5 GiB'],
      ['card-process', '29.1 GiB'],
    ]);
  });
});

describe('a run of snug', () => {
  const run = '/project/.snug/runs/20260302-081140-train';
  const outcome = {
    exit_code: null,
    signal: 'SIGKILL',
    evidence: {
      exit_code: null,
      signal: 'SIGKILL',
      lines: [],
      tail: [],
      cgroup_oom_kills: 1,
      cgroup_limit_bytes: 9 * GiB,
      peak_ram_bytes: 8 * GiB,
    },
  };
  const world = {
    files: {
      [`${run}/run.json`]: '{"state":"ended"}',
      [`${run}/attempts/1/output.log`]: '',
      [`${run}/attempts/2/output.log`]: '',
      [`${run}/attempts/2/outcome.json`]: JSON.stringify(outcome),
      '/project/.snug/runs/20260101-000000-older/run.json': '{}',
    },
  };
  const logs = { [`${run}/attempts/2/output.log`]: 'out| loading\n' };

  it('is read by its newest folder, with what was seen while it ran', async () => {
    const [report] = await reportsOf(logs, {}, world);
    expect(report!.failure).toMatchObject({ kind: 'cgroup', confidence: 'high' });
    expect(report!.files).toEqual(['.snug/runs/20260302-081140-train/attempts/2/output.log']);
    expect(report!.notes).toEqual([
      { id: 'run-ended', values: { folder: '.snug/runs/20260302-081140-train', attempt: '2', end: 'SIGKILL' } },
      { id: 'peak-ram', values: { size: '8.0 GiB' } },
    ]);
  });

  it('is priced by its own record, from the settings of its last attempt', async () => {
    const change = (to: number) => ({
      lever: 'micro-batch',
      class: 'exact',
      setting: 'perDeviceTrainBatchSize',
      from: 24,
      to,
      savesBytes: 0,
      reason: '',
    });
    const policy = { allow: ['micro-batch'] };
    const request = { target: { kind: 'command', argv: ARGV }, policy, set: [], starts: true };
    const recorded = (tried: readonly number[]): FakeWorld => ({
      files: {
        ...FILES,
        ...world.files,
        [`${run}/attempts/2/outcome.json`]: JSON.stringify({ exit_code: 1, signal: null }),
        [`${run}/continue.json`]: JSON.stringify({
          schemaVersion: 1,
          request,
          cwd: '/project',
          masked: false,
          processes: {},
          attempts: tried.map((to) => ({ startedMs: 0, changes: [change(to)] })),
        }),
      },
    });
    const text = traceback(
      step,
      oom({ tried: '1.10 GiB', total: '31.70 GiB', free: '300.00 MiB', self: '31.40 GiB', allocated: '30.60 GiB' }),
    );
    const batchAfter = async (tried: readonly number[]): Promise<number> => {
      const [report] = await reportsOf({ [`${run}/attempts/2/output.log`]: text }, {}, recorded(tried));
      const edit = report!.fitting?.edits.find(({ before }) => before?.startsWith('--per_device_train_batch_size'));
      expect(edit?.before).toBe('--per_device_train_batch_size 24');
      return Number(edit!.after.split(' ')[1]);
    };
    const first = await batchAfter([24]);
    expect(first).toBeLessThan(24);
    expect(await batchAfter([24, first])).toBeLessThan(first);
    // A record of another folder says nothing of the files here.
    const elsewhere = recorded([24]);
    const record = JSON.parse(String(elsewhere.files![`${run}/continue.json`]));
    const moved = {
      files: { ...elsewhere.files, [`${run}/continue.json`]: JSON.stringify({ ...record, cwd: '/other' }) },
    };
    const [report] = await reportsOf({ [`${run}/attempts/2/output.log`]: text }, {}, moved);
    expect([report!.failure?.kind, report!.fitting]).toEqual(['vram_capacity', undefined]);
  });

  it('that is none is said to be none', async () => {
    const ask = (runFolder: string | undefined, files: FakeWorld['files'] = {}) =>
      diagnose(fakePorts({ files }), { ...ASKED, runFolder }, opening({}));
    expect(await ask(undefined)).toMatchObject({ kind: 'usage' });
    expect(await ask('some/folder')).toMatchObject({ kind: 'unreadable', diagnostics: [{ code: 'no-run' }] });
  });
});

describe('logs that belong together', () => {
  const groups = (...paths: string[]) => groupLogs(paths).map(({ files }) => files.map(({ path }) => path));

  it.each([
    [['rank0.log', 'rank1.log'], 1],
    [['logs/worker-3.txt', 'logs/worker-11.txt'], 1],
    [['x/attempt_0/0/stderr.log', 'x/attempt_0/1/stderr.log', 'x/attempt_0/1/stdout.log'], 1],
    [['job.out', 'job.err'], 1],
    [['node01.log', 'node02.log', 'other.log'], 2],
    [['slurm-17_1.out', 'slurm-17_2.out'], 2],
    [['monday.log', 'tuesday.log'], 2],
    [['run-1.log', 'run-2.log'], 2],
    [['job-r-1.log', 'job-r-2.log'], 2],
    [['a/rank0.log', 'b/rank0.log'], 2],
    [['same.log', 'same.log'], 1],
  ] as const)('%j are %i', (paths, count) => {
    expect(groups(...paths)).toHaveLength(count);
  });

  it('come in by the time they name: the earliest failure is the cause', async () => {
    const late = '2026-03-02 10:20:31 ERROR Watchdog caught collective operation timeout: WorkNCCL(SeqNum=8)\n';
    const early = `2026-03-02 10:10:02 INFO step 8\n${oom()}\n`;
    const [waited] = await reportsOf({ 'rank0.log': late, 'rank1.log': early }, { logs: ['rank0.log', 'rank1.log'] });
    expect(waited!.failure).toMatchObject({
      kind: 'nccl_hang_after_oom',
      evidence: [{ source: 'rank1.log', rank: 1 }, {}],
    });
    const [timeout] = await reportsOf(
      { 'rank0.log': late.replace('10:20', '09:20'), 'rank1.log': early },
      { logs: ['rank0.log', 'rank1.log'] },
    );
    expect(timeout!.failure).toMatchObject({ kind: 'not_memory', evidence: [{ source: 'rank0.log' }, {}] });
  });
});

describe('a text for strangers', () => {
  it('holds no secrets, homes, addresses, hosts or users', async () => {
    const log = [
      'gpuhost7:918:1022 [3] NCCL WARN connect to 10.31.7.22 failed',
      'RuntimeError: cannot write /home/miriam/runs/out and /data/home/otto/x, token hf_abcdefghijklmnopqrstuv, ask miriam@lab.example',
    ].join('\n');
    const [report] = await reportsOf({ 'a.log': log }, { logs: ['a.log'] });
    const text = diagnosisMarkdown(report!, 'en', { user: 'miriam', host: 'gpuhost7' });
    expect(text).toContain('/home/USER/runs/out and /data/home/USER/x, token ***');
    expect(text).not.toMatch(/miriam|otto|gpuhost7|10\.31\.7\.22|hf_abc/);
    expect(text).toMatch(/^## /);
  });

  it('keeps the figures and the settings', async () => {
    const [report] = await reportsOf({ 'a.log': `RuntimeError: ${newText()}` }, { logs: ['a.log'], preflight });
    const text = diagnosisMarkdown(report!, 'zh', { user: undefined, host: undefined });
    expect(text).toContain('Tried to allocate 1.37 GiB');
    expect(text).toContain('`per_device_train_batch_size: 24`');
    expect(text).toContain('### 训练设置');
  });
});
