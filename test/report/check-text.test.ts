import { stripVTControlCharacters } from 'node:util';
import { describe, expect, it } from 'vitest';
import { error, GiB, warning } from '../../src/core/index.ts';
import { memoryBudget } from '../../src/memory/index.ts';
import { DEFAULT_POLICY, type PolicyMode } from '../../src/planner/index.ts';
import { type CheckReport, renderCheck, renderEstimate } from '../../src/report/index.ts';
import type { SettingName } from '../../src/spec/index.ts';
import {
  after,
  baseReport,
  batchChanges,
  before,
  budget,
  estimateOf,
  refusePlan,
  rewritePlan,
  values,
} from './reports.ts';

const plain = { colour: false, width: 80 };
const rewrite = { ...baseReport, plan: rewritePlan };

describe('renderCheck', () => {
  it('shows what was understood, the memory, and the rewrite', () => {
    expect(renderCheck(rewrite, plain)).toBe(
      [
        'launch    accelerate + hf-trainer inside srun; read tune.yaml',
        'model     acme/lynx-7b: 7.24 B parameters, 42 M of them trained (folder',
        '          /models/lynx-7b)',
        'card      GPU 1 NVIDIA RTX A5000: 24.0 GiB, 1.0 GiB in use, 1.2 GiB kept free,',
        '          21.8 GiB for the run',
        '',
        '  method                       lora                  argv[2]',
        '  dtype                        bf16                  tune.yaml:3',
        '  per_device_train_batch_size  6                     argv[4]',
        '  gradient_accumulation_steps  3                     tune.yaml:5',
        '  max_length                   not known             env MAX_LEN',
        '  gradient_checkpointing       on                    default trl 1.13',
        '  lora                         r 64, alpha 16, q_proj, k_proj, v_proj and 2 more',
        '                               tune.yaml:7',
        '  distributed                  2 processes, zero2, optimizer offloaded',
        '                               2 visible GPUs',
        '',
        'memory    one GPU at its peak, in the backward phase',
        '  weights                  13.5 GiB ██████████████████             ┊',
        '  gradients                 102 MiB                   █            ┊',
        '  optimizer states          307 MiB                    ▏           ┊',
        '  activations              14.0 GiB                    ███████████████████',
        '  logits                    2.0 GiB                                ┊      ███',
        '  fragmentation             1.0 GiB                                ┊         █',
        '  CUDA context              512 MiB                                ┊          █',
        '  device peak              31.4 GiB ███████████████████████████████████████████',
        '                                         23.0 GiB free on the card ╵',
        '  allocated 29.9, reserved 30.9, device 31.4 GiB (29.8 to 33.0)',
        '  host RAM 6.0 GiB of 48.0 GiB available, all processes of a node',
        '',
        'assumed   every row is full',
        'unread    unknown key: zebra_mode (tune.yaml:11)',
        '          2 keys without effect on memory',
        '',
        'fits after a rewrite: 31.4 GiB -> 18.7 GiB of 21.8 GiB usable',
        '  per_device_train_batch_size 6 -> 2, gradient_accumulation_steps 3 -> 9 (global',
        '      batch 36 kept)  saves 12.0 GiB, about 1.1 × the step time',
        '  loss_impl full -> chunked  saves 922 MiB, costs nothing',
        '  then allocated 17.9, reserved 18.2, device 18.7 GiB (17.8 to 19.6)',
      ].join('\n'),
    );
  });

  it('says what is missing and what would help', () => {
    const text = renderCheck({ ...baseReport, plan: refusePlan }, { ...plain, unicode: false });
    expect(text.split('\n\n').at(-1)).toBe(
      [
        'error[does-not-fit]: this run needs 31.4 GiB on a GPU with 23.0 GiB free, 1.2',
        '  GiB of it kept as headroom',
        '  --> argv[4]  --per_device_train_batch_size 6',
        '  note: activations 14.0, weights 13.5, logits 2.0, other 1.9 GiB',
        '  note: the smallest the policy permits needs 24.0 GiB:',
        '        per_device_train_batch_size 6 -> 2, gradient_accumulation_steps 3 -> 9',
        '        (global batch 36 kept)',
        '  note: smallest card: a100-40gb as it is, rtx-5090 with those changes',
        "  note: left out: qlora (bitsandbytes does not import in the trainer's Python)",
        '  help: --allow free,exact,near,qlora,data would fit with 18.7 GiB: max_length',
        '        1024 -> 512',
      ].join('\n'),
    );
  });

  it('quotes the line of the file where the batch was set', () => {
    const spec = {
      ...baseReport.spec,
      perDeviceTrainBatchSize: { value: 6, origin: { kind: 'file', path: 'tune.yaml', line: 2 } },
    } as const;
    const sources = { 'tune.yaml': 'seed: 1\n  bs: 6 # rows\n' };
    const text = renderCheck({ ...baseReport, spec, sources, plan: refusePlan }, plain);
    expect(text).toContain('\n  --> tune.yaml:2  bs: 6 # rows\n');
  });

  it('names a card when no class of changes would help', () => {
    const refusal = { ...refusePlan.refusal, wouldFit: [] };
    const text = renderCheck({ ...baseReport, plan: { ...refusePlan, refusal } }, plain);
    expect(text).toContain('  help: a GPU with 25.3 GiB free, or a smaller model');
  });

  it('asks first for the memory that other programs hold, where that is enough', () => {
    const refusal = { ...refusePlan.refusal, wouldFit: [], smallest: { changes: batchChanges, estimate: after } };
    const plan = { ...refusePlan, refusal };
    const shared = (gib: number) => ({ ...baseReport, budget: memoryBudget(24 * GiB, gib * GiB, 0.05), plan });
    const wide = { ...plain, width: 400 };
    expect(renderCheck(shared(20), wide)).toContain(
      '\n  help: free the 20.0 GiB of GPU 1 that other programs hold (nvidia-smi lists them): then it can be made to fit with 18.7 GiB',
    );
    const small = { ...plan, before: after };
    expect(renderCheck({ ...shared(6), plan: small }, wide)).toContain('lists them): then the run fits as it is');
    // A desktop's own memory is not worth a word, but the card must be freer than it is.
    expect(renderCheck(shared(0.5), wide)).toContain('\n  help: a GPU with 19.9 GiB free');
    const huge = { ...plan, refusal: { ...refusal, smallest: { changes: [], estimate: before } } };
    expect(renderCheck({ ...shared(20), plan: huge }, wide)).toContain('\n  help: a GPU with 33.1 GiB free');
  });

  it('says in one line what cannot be told, and what to add to a command of its own', () => {
    const untold = (lever: string, setting: SettingName, key: string) => ({
      lever,
      reason: `${key}: the command has no {${key}}, so it cannot be told ${key}`,
      untold: [setting],
    });
    const refusal = {
      ...refusePlan.refusal,
      wouldFit: [],
      ifTold: { settings: ['gradientCheckpointing'] as SettingName[], changes: [], estimate: after },
      unavailable: [
        untold('gradient-checkpointing', 'gradientCheckpointing', 'gradient_checkpointing'),
        untold('loss', 'lossImpl', 'loss_impl'),
        untold('fused-loss', 'lossImpl', 'loss_impl'),
        { lever: 'qlora', reason: 'bitsandbytes does not import' },
      ],
    };
    const report = { ...baseReport, plan: { ...refusePlan, refusal } };
    const wide = { ...plain, width: 400 };
    expect(renderCheck(report, wide)).toContain(
      '\n  note: the launch cannot be told gradient_checkpointing, loss_impl; left out: qlora (bitsandbytes does not import)\n',
    );
    expect(renderCheck(report, wide)).toContain(
      '\n  help: let the launch be told gradient_checkpointing: 18.7 GiB would fit',
    );
    const reading = { ...baseReport.reading, stack: [{ dialect: 'native', kind: 'trainer' }] } as const;
    expect(renderCheck({ ...report, reading }, wide)).toContain(
      '\n  help: add {gradient_checkpointing} to command: 18.7 GiB would fit',
    );
  });

  it('says that a change brings nothing by itself', () => {
    const changes = batchChanges.map((change) => (change.lever === 'loss' ? { ...change, savesBytes: 0 } : change));
    const text = renderCheck({ ...baseReport, plan: { ...rewritePlan, changes } }, plain);
    expect(text).toContain('  loss_impl full -> chunked  saves nothing by itself, costs nothing');
  });

  it('asks for RAM only when RAM is what is missing', () => {
    const refusal = { ...refusePlan.refusal, wouldFit: [], shortfallBytes: 0, hostShortfallBytes: 3 * GiB };
    const text = renderCheck({ ...baseReport, plan: { ...refusePlan, refusal } }, plain);
    expect(text).toContain('  help: 3.0 GiB more host RAM,');
    expect(renderCheck({ ...baseReport, plan: refusePlan }, plain)).not.toMatch(/more host RAM/);
  });

  it('says that it fits', () => {
    const plan = { verdict: 'fits', values, changes: [], before: after, estimate: after } as const;
    const text = renderCheck({ ...baseReport, estimate: after, plan }, plain);
    expect(text.split('\n\n').at(-1)).toBe('fits: 18.7 GiB of 21.8 GiB usable');
  });

  it('says what the mode makes of it', () => {
    const inMode = (mode: PolicyMode) => ({ ...rewrite, policy: { ...DEFAULT_POLICY, mode } });
    const last = (report: CheckReport) => renderCheck(report, plain).split('\n').at(-1);
    expect(last(inMode('refuse'))).toBe('mode refuse: snug run starts nothing that does not fit as it came');
    expect(last(inMode('warn'))).toBe('mode warn: snug run starts it as it came and watches it');
    expect(renderCheck(inMode('rewrite'), plain)).not.toMatch(/^mode /m);
    expect(renderCheck(inMode('refuse'), { ...plain, quiet: true })).toContain('mode refuse');
    const plan = { verdict: 'fits', values, changes: [], before: after, estimate: after } as const;
    expect(renderCheck({ ...inMode('refuse'), plan }, plain)).not.toMatch(/^mode /m);
  });

  it('says why nothing can be said', () => {
    const reason = error('unknown-model', 'nothing is known of acme/lynx-7b', { help: '--model FOLDER' });
    const { model: _m, estimate: _e, ...rest } = baseReport;
    const text = renderCheck({ ...rest, plan: { verdict: 'unknown', reason }, diagnostics: [reason] }, plain);
    expect(text).toContain('model     acme/lynx-7b: architecture not known');
    expect(text.match(/error\[unknown-model\]/g)).toHaveLength(1);
    expect(text).not.toContain('memory  ');
  });

  it('is ASCII where it must be, and never wider than the terminal', () => {
    for (const plan of [rewritePlan, refusePlan]) {
      for (const width of [60, 80, 100]) {
        const text = renderCheck({ ...baseReport, plan }, { colour: false, width, unicode: false });
        expect(text).toMatch(/^[\x20-\x7e\n]*$/);
        expect(Math.max(...text.split('\n').map((line) => line.length))).toBeLessThanOrEqual(width);
      }
    }
  });

  it('looks the same without colour', () => {
    const coloured = renderCheck(rewrite, { colour: true, width: 80 });
    expect(coloured).toContain('\u001b[');
    expect(stripVTControlCharacters(coloured)).toBe(renderCheck(rewrite, plain));
  });

  it('quiet: errors only', () => {
    const diagnostics = [warning('a', 'a warning'), error('b', 'an error')];
    expect(renderCheck({ ...rewrite, diagnostics }, { ...plain, quiet: true })).toBe('error[b]: an error');
    expect(renderCheck(rewrite, { ...plain, quiet: true })).toBe('');
    expect(renderCheck({ ...baseReport, plan: refusePlan }, { ...plain, quiet: true })).toMatch(
      /^error\[does-not-fit\]/,
    );
  });

  it('keeps the mark of a card with room left within the columns', () => {
    const roomy = { ...budget, capacityBytes: 80 * GiB, usableBytes: 76 * GiB };
    const text = renderCheck(
      { ...baseReport, estimate: estimateOf({ weights: 3, cudaContext: 0.5 }), budget: roomy },
      plain,
    );
    const drawn = text.split('\n').filter((line) => /[┊╵]/.test(line));
    expect(drawn.length).toBeGreaterThan(2);
    expect(Math.max(...drawn.map((line) => line.length))).toBeLessThanOrEqual(80);
  });

  it('draws the smallest card and the largest term within the columns', () => {
    const tiny = { ...budget, capacityBytes: 2 * GiB, usableBytes: GiB };
    const text = renderCheck(
      { ...baseReport, estimate: estimateOf({ weights: 600, cudaContext: 0.01 }), budget: tiny },
      plain,
    );
    const drawn = text.split('\n').filter((line) => /[█▏]/.test(line));
    expect(drawn).toHaveLength(3);
    expect(Math.max(...drawn.map((line) => line.length))).toBeLessThanOrEqual(80);
  });
});

describe('renderEstimate', () => {
  it('has the peaks and no verdict', () => {
    const text = renderEstimate(rewrite, plain);
    expect(text).toContain('allocated 29.9, reserved 30.9, device 31.4 GiB (29.8 to 33.0)');
    expect(text).not.toMatch(/^fits/m);
    expect(before.vram.devicePeakBytes).toBeGreaterThan(after.vram.devicePeakBytes);
  });
});
