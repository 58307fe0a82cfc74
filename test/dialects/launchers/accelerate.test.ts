// biome-ignore-all lint/suspicious/noTemplateCurlyInString: ${…} is what OmegaConf and Hydra write in YAML
import { describe, expect, it } from 'vitest';
import { formatOrigin } from '../../../src/spec/index.ts';
import type { Machine } from '../reading.ts';
import { layerOf, notesOf, readLine, refusalOf } from './read-line.ts';

const DEFAULT_FILE = '/home/u/.cache/huggingface/accelerate/default_config.yaml';
const yaml = (text: string): Record<string, string> => ({ 'a.yaml': text });
const DDP = 'distributed_type: MULTI_GPU\nnum_machines: 1\nnum_processes: 6\nmixed_precision: bf16\n';

/** `strategy + offload, who says so` and the autocast. */
function sharing(line: string, machine: Machine = {}): string {
  const { reading } = layerOf(line, machine);
  const shards = reading.sharding;
  const precision = reading.spec.mixedPrecision!;
  return [
    shards ? `${[shards.strategy, ...shards.offload].join(' + ')}, ${formatOrigin(shards.origin)}` : 'no word',
    `${precision.value}, ${formatOrigin(precision.origin)}`,
  ].join(' | ');
}

describe('what accelerate launch starts', () => {
  it.each<[line: string, expected: string, machine?: Machine]>([
    ['accelerate launch train.py --x', '1 × 4 ranks, 4 visible GPUs | script train.py, 3', { gpus: 4 }],
    ['accelerate launch train.py', '1 × 1 plain, 1 visible GPU | script train.py, 3', { gpus: 1 }],
    ['accelerate launch train.py', '1 × 1 plain, no visible GPU | script train.py, 3', { gpus: 0 }],
    ['accelerate launch train.py', '1 × ? ranks, the visible GPUs, unknown here | script train.py, 3'],
    ['accelerate launch --num_processes 2 train.py', '1 × 2 ranks, argv[3] | script train.py, 5', { gpus: 4 }],
    ['accelerate launch --num-processes=2 train.py', '1 × 2 ranks, argv[2] | script train.py, 4'],
    ['accelerate launch --num_processes 1 train.py', '1 × 1 plain, argv[3] | script train.py, 5', { gpus: 4 }],
    [
      'accelerate launch --multi_gpu --num_processes 8 --num_machines 2 train.py',
      '2 × 4 ranks, argv[4] | script train.py, 8',
    ],
    ['accelerate launch --cpu train.py', '1 × 1 plain, 4 visible GPUs | script train.py, 4', { gpus: 4 }],
    ['accelerate launch -m pkg.train --x', '1 × 2 ranks, 2 visible GPUs | module pkg.train, 4', { gpus: 2 }],
    ['accelerate launch --no_python trainer', '1 × 2 ranks, 2 visible GPUs | program trainer, 4', { gpus: 2 }],
    ['accelerate-launch --num_processes 2 train.py', '1 × 2 ranks, argv[2] | script train.py, 4'],
    ['python -m accelerate.commands.launch --num_processes 2 train.py', '1 × 2 ranks, argv[4] | script train.py, 6'],
    [
      'python -m accelerate.commands.accelerate_cli launch --num_processes 2 train.py',
      '1 × 2 ranks, argv[5] | script train.py, 7',
    ],
    [
      'accelerate launch --config_file a.yaml train.py',
      '1 × 6 ranks, a.yaml:3 | script train.py, 5',
      { files: yaml(DDP), gpus: 8 },
    ],
    [
      'accelerate launch --config-file=a.yaml --num_processes 3 train.py',
      '1 × 3 ranks, argv[4] | script train.py, 6',
      { files: yaml(DDP) },
    ],
    [
      'accelerate launch --config_file a.yaml --num_machines 3 train.py',
      '3 × 2 ranks, a.yaml:3 | script train.py, 7',
      { files: yaml(DDP) },
    ],
    [
      'accelerate launch --config_file a.yaml train.py',
      '1 × 1 plain, default accelerate 1.15 | script train.py, 5',
      { files: yaml("distributed_type: 'NO'\n"), gpus: 4 },
    ],
    [
      'accelerate launch --config_file a.yaml train.py',
      '1 × 1 plain, a.yaml:2 | script train.py, 5',
      { files: yaml("distributed_type: 'NO'\nnum_processes: 4\n"), gpus: 4 },
    ],
    [
      'accelerate launch --config_file a.json train.py',
      '1 × 2 ranks, a.json:1 | script train.py, 5',
      { files: { 'a.json': '{"distributed_type": "FSDP", "num_processes": 2}' } },
    ],
    [
      'accelerate launch --config_file a.yaml train.py',
      '1 × ? ranks, a.yaml:2 | script train.py, 5',
      { files: yaml('distributed_type: FSDP\nnum_processes: ${N}\n') },
    ],
  ])('%s', (line, expected, machine) => expect(readLine(line, machine)).toBe(`accelerate | ${expected}`));

  it.each([
    ['accelerate config', 'program'],
    ['accelerate env launch', 'program'],
    ['accelerated launch train.py', 'program'],
    ['python -m accelerate.commands.test launch', 'python'],
  ])('leaves %s to %s', (line, dialect) => expect(layerOf(line).dialect.id).toBe(dialect));

  it.each<[line: string, expected: string[], machine?: Machine]>([
    ['accelerate launch', ['no-script argv[0]']],
    ['accelerate launch --num_proc 2 train.py', ['bad-option argv[2]']],
    ['accelerate launch --num_processes', ['bad-option argv[2]']],
    ['accelerate launch --config_file gone.yaml train.py', ['cannot-read gone.yaml']],
    [
      'accelerate launch --config_file a.yaml train.py',
      ['no-distributed-type a.yaml'],
      { files: yaml('num_processes: 2\n') },
    ],
    [
      'accelerate launch --config_file a.yaml train.py',
      ['yaml-tab a.yaml:2:1'],
      { files: yaml('fsdp_config:\n\tx: 1\n') },
    ],
  ])('refuses %s', (line, expected, machine) => expect(refusalOf(line, machine)).toEqual(expected));

  it('shows the ranks the GPUs it is told to use', () => {
    const machine = { gpus: 8, files: yaml(`${DDP}gpu_ids: 1,3\n`) };
    expect(layerOf('accelerate launch --config_file a.yaml train.py', machine).reading.env).toEqual({
      CUDA_VISIBLE_DEVICES: '1,3',
    });
    expect(notesOf('accelerate launch --config_file a.yaml train.py', machine)).toEqual(['too-few-gpus a.yaml:3']);
    expect(layerOf('accelerate launch --gpu_ids all train.py', machine).reading.env).toBeUndefined();
  });
});

describe('the default config file', () => {
  const files = { [DEFAULT_FILE]: DDP };
  it.each<[line: string, expected: string, machine: Machine]>([
    ['accelerate launch train.py', `1 × 6 ranks, ${DEFAULT_FILE}:3`, { files }],
    ['accelerate launch --num_processes 2 train.py', '1 × 2 ranks, argv[3]', { files }],
    ['accelerate launch --cpu train.py', '1 × 1 plain, 8 visible GPUs', { files, gpus: 8 }],
    [
      'accelerate launch --config_file a.yaml train.py',
      '1 × 2 ranks, a.yaml:2',
      { files: { ...files, ...yaml('distributed_type: FSDP\nnum_processes: 2\n') } },
    ],
    ['accelerate launch train.py', '1 × 8 ranks, 8 visible GPUs', { files, gpus: 8, environment: { HF_HOME: '/hub' } }],
    [
      'HF_HOME=/hub accelerate launch train.py',
      '1 × 6 ranks, /hub/accelerate/default_config.yaml:3',
      { files: { '/hub/accelerate/default_config.yaml': DDP }, gpus: 8 },
    ],
    [
      'accelerate launch train.py',
      '1 × 6 ranks, /home/u/x/huggingface/accelerate/default_config.yaml:3',
      {
        files: { '/home/u/x/huggingface/accelerate/default_config.yaml': DDP },
        environment: { XDG_CACHE_HOME: '~/x' },
      },
    ],
  ])('%s', (line, expected, machine) => expect(readLine(line, machine)).toContain(`accelerate | ${expected} | script`));

  it('is said, because nobody sees it in the command', () => {
    expect(notesOf('accelerate launch train.py', { files })).toEqual([`accelerate-default-config ${DEFAULT_FILE}`]);
    expect(layerOf('accelerate launch train.py', { files }).reading.files?.[0]?.pointer.kind).toBe('fixed');
  });
});

describe('who holds what', () => {
  const at = (text: string, flags = ''): [string, Machine] => [
    `accelerate launch --config_file a.yaml ${flags}train.py`,
    {
      files: {
        ...yaml(text),
        'ds.json': '{"zero_optimization": {"stage": 3, "offload_optimizer": {"device": "cpu"}}}',
        'auto.json': '{"zero_optimization": {"stage": "auto"}}',
        'none.json': '{"zero_optimization": {}}',
      },
    },
  ];
  const fsdp = 'distributed_type: FSDP\nnum_processes: 2\n';
  const deepspeed = 'distributed_type: DEEPSPEED\nnum_processes: 2\n';

  it.each<[what: string, line: [string, Machine], expected: string]>([
    ['DDP says nothing', at(DDP), 'no word | bf16, a.yaml:4'],
    ['no precision is none', at(fsdp), 'fsdp1, a.yaml:1 | no, default accelerate 1.15'],
    ['a flag wins over the file', at(DDP, '--mixed_precision fp16 '), 'no word | fp16, argv[5]'],
    ['the old fp16 switch', at(`${fsdp}fp16: true\n`), 'fsdp1, a.yaml:1 | fp16, a.yaml:3'],
    ['a quoted no', at(`${fsdp}mixed_precision: 'no'\n`), 'fsdp1, a.yaml:1 | no, a.yaml:3'],
    [
      'FSDP is version 1 without a word',
      at(`${fsdp}fsdp_config:\n  fsdp_use_orig_params: true\n`),
      'fsdp1, a.yaml:1 | no, default accelerate 1.15',
    ],
    ['FSDP 2', at(`${fsdp}fsdp_config:\n  fsdp_version: 2\n`), 'fsdp2, a.yaml:4 | no, default accelerate 1.15'],
    [
      'keys without the prefix',
      at(`${fsdp}fsdp_config:\n  version: 2\n  offload_params: true\n`),
      'fsdp2 + optimizer + parameters, a.yaml:4 | no, default accelerate 1.15',
    ],
    [
      'FSDP 2 that keeps the parameters',
      at(`${fsdp}fsdp_config: {fsdp_version: 2, fsdp_reshard_after_forward: false}\n`),
      'zero2, a.yaml:3 | no, default accelerate 1.15',
    ],
    [
      'FSDP 2 with replicas',
      at(`${fsdp}fsdp_config: {fsdp_version: 2}\nparallelism_config: {parallelism_config_dp_replicate_size: 2}\n`),
      'hsdp, a.yaml:4 | no, default accelerate 1.15',
    ],
    [
      'SHARD_GRAD_OP',
      at(`${fsdp}fsdp_config:\n  fsdp_sharding_strategy: SHARD_GRAD_OP\n`),
      'zero2, a.yaml:4 | no, default accelerate 1.15',
    ],
    [
      'HYBRID_SHARD by number',
      at(`${fsdp}fsdp_config:\n  fsdp_sharding_strategy: 4\n`),
      'hsdp, a.yaml:4 | no, default accelerate 1.15',
    ],
    [
      'NO_SHARD',
      at(`${fsdp}fsdp_config:\n  fsdp_sharding_strategy: no_shard\n`),
      'ddp, a.yaml:4 | no, default accelerate 1.15',
    ],
    [
      'an unknown strategy',
      at(`${fsdp}fsdp_config:\n  fsdp_sharding_strategy: MOST\n`),
      ', a.yaml:4 | no, default accelerate 1.15',
    ],
    ['ZeRO is stage 2 without a word', at(deepspeed), 'zero2, a.yaml:1 | no, default accelerate 1.15'],
    [
      'ZeRO 3 with offload',
      at(
        `${deepspeed}deepspeed_config:\n  zero_stage: 3\n  offload_optimizer_device: cpu\n  offload_param_device: nvme\n`,
      ),
      'zero3 + optimizer + parameters, a.yaml:4 | no, default accelerate 1.15',
    ],
    [
      'parameters stay below stage 3',
      at(`${deepspeed}deepspeed_config:\n  zero_stage: 2\n  offload_param_device: cpu\n`),
      'zero2, a.yaml:4 | no, default accelerate 1.15',
    ],
    [
      'ZeRO 0 shares nothing',
      at(`${deepspeed}deepspeed_config:\n  zero_stage: 0\n`),
      'ddp, a.yaml:4 | no, default accelerate 1.15',
    ],
    [
      'a flag over the stage of the file',
      at(`${deepspeed}deepspeed_config:\n  zero_stage: 2\n`, '--zero_stage 3 '),
      'zero3, argv[5] | no, default accelerate 1.15',
    ],
    [
      'a DeepSpeed file',
      at(`${deepspeed}deepspeed_config:\n  deepspeed_config_file: ds.json\n  zero_stage: 1\n`),
      'zero3 + optimizer, a.yaml:4 | no, default accelerate 1.15',
    ],
    [
      'a DeepSpeed file that leaves the stage open',
      at(`${deepspeed}deepspeed_config:\n  deepspeed_config_file: auto.json\n`, '--zero_stage 1 '),
      'zero1, a.yaml:4 | no, default accelerate 1.15',
    ],
    [
      "a DeepSpeed file with DeepSpeed's own default",
      at(`${deepspeed}deepspeed_config:\n  deepspeed_config_file: none.json\n`),
      'ddp, a.yaml:4 | no, default accelerate 1.15',
    ],
    [
      'a flag takes the choice from the file',
      at(`${fsdp}mixed_precision: bf16\n`, '--multi_gpu '),
      'no word | bf16, a.yaml:3',
    ],
    [
      'Megatron-LM',
      at('distributed_type: MEGATRON_LM\nnum_processes: 2\n'),
      ', a.yaml:1 | no, default accelerate 1.15',
    ],
  ])('%s', (_, [line, machine], expected) => expect(sharing(line, machine)).toBe(expected));

  it('reads flags alone', () => {
    expect(
      sharing(
        'accelerate launch --use_deepspeed --zero_stage 3 --offload_optimizer_device cpu --mixed_precision bf16 train.py',
        { gpus: 2 },
      ),
    ).toBe('zero3 + optimizer, argv[4] | bf16, argv[8]');
    expect(
      sharing('accelerate launch --use_fsdp --fsdp_version 2 --fsdp_offload_params true train.py', { gpus: 2 }),
    ).toBe('fsdp2 + optimizer + parameters, argv[4] | no, default accelerate 1.15');
  });

  it('hears that FSDP recomputes activations', () => {
    const [line, machine] = at(`${fsdp}fsdp_config:\n  fsdp_version: 2\n  activation_checkpointing: true\n`);
    expect(layerOf(line, machine).reading.spec.gradientCheckpointing).toEqual({
      value: { enabled: true, useReentrant: false, everyNLayers: 1, offload: false },
      origin: { kind: 'file', path: 'a.yaml', line: 5 },
    });
  });

  it('names the engines, the files, and what was not read', () => {
    const [line, machine] = at(
      `${deepspeed}main_process_port: 29501\nwarp: 9\ndeepspeed_config:\n  deepspeed_config_file: ds.json\n  gradient_clipping: 0.5\n`,
      '--rdzv_backend c10d ',
    );
    const { reading } = layerOf(line, machine);
    expect(reading.engines?.map(({ dialect, file }) => [dialect, file?.source.path])).toEqual([
      ['accelerate-config', undefined],
      ['deepspeed-config', 'ds.json'],
    ]);
    expect(reading.files?.map(({ source, pointer }) => [source.path, pointer])).toEqual([
      ['a.yaml', { kind: 'argv', index: 3, before: '' }],
    ]);
    expect(reading.engines?.[1]?.file?.pointer).toEqual({
      kind: 'file',
      path: 'a.yaml',
      keyPath: ['deepspeed_config', 'deepspeed_config_file'],
    });
    expect(reading.unread?.map(({ key, reason }) => `${key}: ${reason}`)).toEqual([
      'main_process_port: no-effect-on-memory',
      'warp: unknown-key',
      'deepspeed_config.gradient_clipping: not-estimated',
      'rdzv_backend: no-effect-on-memory',
    ]);
  });

  it('asks whether another key was meant', () => {
    const [line, machine] = at(`${fsdp}num_procesess: 2\n`);
    expect(layerOf(line, machine).reading.diagnostics?.[0]?.help).toBe('did you mean num_processes');
  });

  it.each<[what: string, line: [string, Machine], expected: string[]]>([
    ['no number at all', at('distributed_type: FSDP\n'), ['no-num-processes a.yaml']],
    ['an unquoted NO, which has no default', at('distributed_type: NO\n'), ['no-num-processes a.yaml']],
    ['an unquoted no', at(`${fsdp}mixed_precision: no\n`), ['unquoted-no a.yaml:3']],
    ['fp8', at(`${fsdp}mixed_precision: fp8\n`), ['unknown-value a.yaml:3']],
    ['an unknown key', at(`${fsdp}num_procesess: 2\n`), ['unknown-key a.yaml:3']],
    ['one process in spite of four', at('distributed_type: NO\nnum_processes: 4\n'), ['one-process a.yaml:2']],
    [
      'processes that do not divide',
      at('distributed_type: MULTI_GPU\nnum_processes: 7\nnum_machines: 2\n'),
      ['uneven-processes a.yaml:2'],
    ],
    [
      'tensor parallelism',
      at(`${fsdp}parallelism_config:\n  parallelism_config_tp_size: 2\n`),
      ['not-estimated a.yaml:4'],
    ],
    ['SageMaker', at('compute_environment: AMAZON_SAGEMAKER\ndistributed_type: NO\n'), ['elsewhere a.yaml']],
    ['nothing to say', at(DDP), []],
  ])('says: %s', (_, [line, machine], expected) => expect(notesOf(line, machine)).toEqual(expected));
});
