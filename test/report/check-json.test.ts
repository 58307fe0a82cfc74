import { describe, expect, it } from 'vitest';
import { error, GiB } from '../../src/core/index.ts';
import {
  type CheckReport,
  checkJson,
  diagnosticsJson,
  estimateErrorJson,
  estimateJson,
} from '../../src/report/index.ts';
import { after, baseReport, before, refusePlan, rewritePlan, values } from './reports.ts';

const fitted = {
  argv: [
    'accelerate',
    'launch',
    'tune.py',
    '--per_device_train_batch_size',
    '2',
    '--hub_token',
    'hf_qwertyuiopasdfghjk',
  ],
  env: { PYTORCH_CUDA_ALLOC_CONF: 'expandable_segments:True' },
  files: [{ source: 'tune.yaml', copy: '/run/tune.yaml', before: 'a: 1\n', text: 'a: 2\n' }],
};

describe('checkJson', () => {
  it('has the parts of the contract', () => {
    const json = checkJson({ ...baseReport, plan: rewritePlan, fitted });
    expect(json.schema_version).toBe(1);
    expect(json.launch).toEqual({
      argv: ['accelerate', 'launch', 'tune.py', '--per_device_train_batch_size', '6', '--hub_token', '***'],
      env: { WANDB_API_KEY: '***', OMP_NUM_THREADS: '4' },
      stack: [
        { dialect: 'accelerate', kind: 'launcher' },
        { dialect: 'hf-trainer', kind: 'trainer' },
      ],
      wrappers: ['srun'],
      files: ['tune.yaml'],
    });
    expect(json.unread[2]).toEqual({ key: 'zebra_mode', origin: 'tune.yaml:11', reason: 'unknown-key' });
    expect(json.budget).toEqual({
      capacity_bytes: 24 * GiB,
      used_by_others_bytes: GiB,
      headroom_bytes: Math.ceil(24 * GiB * 0.05),
      usable_bytes: 23 * GiB - Math.ceil(24 * GiB * 0.05),
    });
    expect(json.plan).toMatchObject({
      verdict: 'rewrite',
      command: [...fitted.argv.slice(0, -1), '***'],
      env: fitted.env,
      files: [{ source: 'tune.yaml', copy: '/run/tune.yaml' }],
    });
    expect(JSON.stringify(json)).not.toContain('qwertyuiop');
  });

  it('spells every setting with its origin', () => {
    expect(checkJson(baseReport).spec).toEqual({
      model_name_or_path: { value: 'acme/lynx-7b', origin: 'tune.yaml:1' },
      method: { value: 'lora', origin: 'argv[2]' },
      dtype: { value: 'bf16', origin: 'tune.yaml:3' },
      per_device_train_batch_size: { value: 6, origin: 'argv[4]' },
      gradient_accumulation_steps: { value: 3, origin: 'tune.yaml:5' },
      max_length: { value: null, origin: 'env MAX_LEN' },
      gradient_checkpointing: {
        value: true,
        origin: 'default trl 1.13',
        details: { use_reentrant: false, every_n_layers: 1, offload: false },
      },
      lora: {
        value: {
          r: 64,
          lora_alpha: 16,
          lora_dropout: 0.1,
          target_modules: ['q_proj', 'k_proj', 'v_proj', 'o_proj', 'up_proj'],
          adapter_dtype: 'fp32',
          modules_to_save: [],
        },
        origin: 'tune.yaml:7',
      },
      quantization: { value: null, origin: 'default trl 1.13' },
      distributed: {
        value: { nodes: 1, processes_per_node: 2, strategy: 'zero2', offload: ['optimizer'] },
        origin: '2 visible GPUs',
      },
    });
  });

  it('says none for no offload, and keeps the keys of a model config', () => {
    const json = checkJson({
      ...baseReport,
      spec: {
        distributed: {
          value: { nodes: 2, processesPerNode: 8, strategy: 'fsdp2', offload: [] },
          origin: { kind: 'file', path: 'f.yaml', line: 3 },
        },
        modelConfig: { value: { nLayer: 2, inner: { nHead: 4 } }, origin: { kind: 'file', path: 'f.yaml', line: 4 } },
      },
    });
    expect(json.spec.distributed?.value).toEqual({
      nodes: 2,
      processes_per_node: 8,
      strategy: 'fsdp2',
      offload: 'none',
    });
    expect(json.spec.model_config?.value).toEqual({ nLayer: 2, inner: { nHead: 4 } });
  });

  it('gives a change its price', () => {
    const json = checkJson({ ...baseReport, plan: rewritePlan });
    expect(json.plan?.changes[0]).toEqual({
      setting: 'per_device_train_batch_size',
      from: 6,
      to: 2,
      lever: 'micro-batch',
      class: 'exact',
      saves_bytes: 12 * GiB,
      cost: 'about 1.1 × the step time',
    });
  });

  it('starts the launch as it came when it fits, and nothing when it is refused', () => {
    const plan = { verdict: 'fits', values, changes: [], before: after, estimate: after } as const;
    expect(checkJson({ ...baseReport, plan }).plan).toMatchObject({ verdict: 'fits', changes: [], files: [] });
    expect(checkJson({ ...baseReport, plan }).plan?.command).toHaveLength(baseReport.argv.length);
    const refused = checkJson({ ...baseReport, plan: refusePlan }).plan;
    expect(refused).toMatchObject({
      verdict: 'refuse',
      changes: [],
      command: [],
      refusal: {
        shortfall_bytes: 2 * GiB,
        would_fit: [{ allow: 'data', changes: [{ setting: 'max_length', to: 512 }] }],
      },
    });
  });

  it('has a refusal among the diagnostics, once', () => {
    const codes = (report: CheckReport) => checkJson(report).diagnostics.map(({ code }) => code);
    expect(codes({ ...baseReport, plan: refusePlan })).toEqual(['does-not-fit']);
    expect(codes({ ...baseReport, plan: refusePlan, diagnostics: [error('does-not-fit', 'x')] })).toEqual([
      'does-not-fit',
    ]);
    expect(codes({ ...baseReport, plan: rewritePlan })).toEqual([]);
  });

  it('leaves null what is not known', () => {
    const { model: _m, estimate: _e, budget: _b, device: _d, ...rest } = baseReport;
    const reason = error('unknown-model', 'nothing is known of it');
    const json = checkJson({ ...rest, plan: { verdict: 'unknown', reason } });
    expect(json).toMatchObject({
      model: null,
      estimate: null,
      budget: null,
      plan: { verdict: 'unknown', estimate: null },
    });
    expect(json.hardware).toMatchObject({ shared_memory: null, host: { available_bytes: 48 * GiB } });
  });

  it('is JSON: nothing is lost by writing and reading it', () => {
    const json = checkJson({ ...baseReport, plan: refusePlan, diagnostics: [error('x', 'y', { help: 'z' })] });
    expect(JSON.parse(JSON.stringify(json))).toEqual(json);
  });
});

describe('estimateJson', () => {
  it('is the contract, in integers', () => {
    const json = estimateJson('row-1', { ...before, params: { total: 10.4, trainable: 2 } });
    expect(Object.keys(json)).toEqual(['id', 'params', 'vram', 'ram', 'assumptions']);
    expect(Object.keys(json.vram)).toEqual([
      'allocated_peak_bytes',
      'reserved_peak_bytes',
      'device_peak_bytes',
      'low_bytes',
      'high_bytes',
      'peak_phase',
      'terms',
    ]);
    expect(Object.keys(json.vram.terms)).toEqual([
      'weights',
      'gradients',
      'optimizer_states',
      'activations',
      'logits',
      'temporary_buffers',
      'communication_buffers',
      'fragmentation',
      'cuda_context',
    ]);
    expect(json.params).toEqual({ total: 10, trainable: 2 });
    expect(json.ram).toEqual({
      peak_bytes: 6 * GiB,
      needed_bytes: 6 * GiB,
      terms: { python_stack: 4 * GiB, dataloader_workers: 2 * GiB },
    });
    const sum = Object.values(json.vram.terms).reduce((total, bytes) => total + bytes, 0);
    expect(sum).toBe(json.vram.device_peak_bytes);
  });

  it('says why there is no estimate', () => {
    expect(estimateErrorJson('row-2', { code: 'unknown-model', message: 'no such thing' })).toEqual({
      id: 'row-2',
      error: { code: 'unknown-model', message: 'no such thing' },
    });
    expect(diagnosticsJson([error('a', 'b')])).toEqual({
      schema_version: 1,
      diagnostics: [{ code: 'a', severity: 'error', message: 'b' }],
    });
  });
});
