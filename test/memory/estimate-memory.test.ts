import { describe, expect, it } from 'vitest';
import { estimateMemory, type MemoryEstimate, TERM_NAMES } from '../../src/memory/index.ts';
import type { PlanValues } from '../../src/spec/index.ts';
import { CHECKPOINTING, factsOf, LORA, plan } from './plans.ts';

const facts = factsOf();
const estimate = (changes: Partial<PlanValues> = {}, of = facts): MemoryEstimate => {
  const result = estimateMemory(plan(changes), of);
  if (!result.ok) throw new Error(result.error.map((problem) => problem.message).join('; '));
  return result.value;
};
const peak = (changes: Partial<PlanValues> = {}): number => estimate(changes).vram.allocatedPeakBytes;
const codes = (changes: Partial<PlanValues>, of = facts): string[] => {
  const result = estimateMemory(plan(changes), of);
  return result.ok ? [] : result.error.map(({ code }) => code);
};

const NF4 = {
  bits: 4,
  quantType: 'nf4',
  doubleQuant: true,
  computeDtype: 'bf16',
  upcastRestToFp32: true,
} as const;

const variety: readonly Partial<PlanValues>[] = [
  {},
  { dtype: 'fp32', mixedPrecision: 'bf16', gradientCheckpointing: CHECKPOINTING, gradientAccumulationSteps: 4 },
  { method: 'lora', lora: LORA, attnImplementation: 'eager', optim: 'adamw_torch' },
  { method: 'qlora', lora: LORA, quantization: NF4, lossImpl: 'chunked', optim: 'paged_adamw_8bit' },
  { lossImpl: 'fused', optim: 'adafactor', eval: true },
  { distributed: { nodes: 1, processesPerNode: 3, strategy: 'zero3', offload: ['optimizer'] }, mixedPrecision: 'bf16' },
  { distributed: { nodes: 2, processesPerNode: 3, strategy: 'fsdp2', offload: [] }, mixedPrecision: 'bf16' },
];

describe('every estimate', () => {
  it.each(variety.map((changes, index) => [index, changes] as const))('adds up, in whole bytes (%i)', (_, changes) => {
    const { vram, ram } = estimate(changes);
    const sum = TERM_NAMES.reduce((total, name) => total + vram.terms[name], 0);
    expect(sum).toBe(vram.devicePeakBytes);
    expect(vram.terms.fragmentation).toBe(vram.reservedPeakBytes - vram.allocatedPeakBytes);
    expect(vram.terms.cudaContext).toBe(vram.devicePeakBytes - vram.reservedPeakBytes);
    expect(vram.lowBytes).toBeLessThanOrEqual(vram.devicePeakBytes);
    expect(vram.highBytes).toBeGreaterThanOrEqual(vram.devicePeakBytes);
    expect(Object.values(ram.terms).reduce((total, bytes) => total + bytes, 0)).toBe(ram.peakBytes);
    const all = [...Object.values(vram.terms), ...Object.values(ram.terms), vram.lowBytes, vram.highBytes];
    expect(all.filter((bytes) => !Number.isSafeInteger(bytes) || bytes < 0)).toEqual([]);
  });

  it.each(variety.map((changes, index) => [index, changes] as const))(
    'grows with batch and length (%i)',
    (_, changes) => {
      const grown = [3, 4, 7, 12].map((perDeviceTrainBatchSize) => peak({ ...changes, perDeviceTrainBatchSize }));
      expect(grown).toEqual([...grown].sort((a, b) => a - b));
      const longer = [256, 384, 640, 1024].map((maxLength) => peak({ ...changes, maxLength }));
      expect(longer).toEqual([...longer].sort((a, b) => a - b));
      expect(longer[3]).toBeGreaterThan(longer[0]!);
    },
  );

  it('gives the same answer twice: nothing is left behind in the facts', () => {
    for (const changes of variety) expect(estimate(changes)).toEqual(estimate(changes));
  });
});

describe('levers', () => {
  it('checkpointing lowers the peak, fewer boundaries keep more, offloaded ones less', () => {
    const every = peak({ gradientCheckpointing: CHECKPOINTING });
    const third = peak({ gradientCheckpointing: { ...CHECKPOINTING, everyNLayers: 3 } });
    const none = peak();
    expect(every).toBeLessThan(third);
    expect(third).toBeLessThan(none);
    expect(peak({ gradientCheckpointing: { ...CHECKPOINTING, offload: true } })).toBeLessThan(every);
  });

  it('reentrant checkpointing holds the gradient and the result of the layer as well', () => {
    const plain = peak({ gradientCheckpointing: CHECKPOINTING, lossImpl: 'chunked' });
    const reentrant = peak({ gradientCheckpointing: { ...CHECKPOINTING, useReentrant: true }, lossImpl: 'chunked' });
    expect(reentrant).toBeGreaterThan(plain);
    expect(reentrant - plain).toBeLessThan(6 * 3 * 384 * 768 * 4);
  });

  it('accumulation adds the gradients and nothing else, however many steps', () => {
    const long: Partial<PlanValues> = { perDeviceTrainBatchSize: 16, maxLength: 1024 };
    const one = peak(long);
    const two = peak({ ...long, gradientAccumulationSteps: 2 });
    expect(two).toBeGreaterThan(one);
    expect(two - one).toBeLessThanOrEqual(facts.parameters * 2 * 1.01);
    expect(peak({ ...long, gradientAccumulationSteps: 64 })).toBe(two);
  });

  it('chunked and fused losses remove the logits', () => {
    const logits = estimate().vram.terms.logits;
    expect(logits).toBeGreaterThan(3 * 384 * 30011 * 8);
    expect(estimate({ lossImpl: 'chunked' }).vram.terms.logits).toBeLessThan(logits / 2);
    expect(peak({ lossImpl: 'fused' })).toBeLessThan(peak());
  });

  it('LoRA keeps states for the adapter alone', () => {
    const { params, vram } = estimate({ method: 'lora', lora: LORA });
    expect(params.trainable).toBe(7 * 12 * (4 * 768 + 768 * 2 + 2 * 256 + 3 * (768 + 2304)));
    expect(vram.terms.optimizerStates).toBeLessThan(params.trainable * 8 * 1.05);
  });

  it('nf4 stores half a byte a weight of the layers and dequantises in passing', () => {
    const full = estimate({ method: 'lora', lora: LORA });
    const quantised = estimate({ method: 'qlora', lora: LORA, quantization: { ...NF4, upcastRestToFp32: false } });
    expect(quantised.vram.terms.weights).toBeLessThan(full.vram.terms.weights * 0.75);
    const upcast = estimate({ method: 'qlora', lora: LORA, quantization: NF4 });
    expect(upcast.vram.terms.weights - quantised.vram.terms.weights).toBeGreaterThan(2 * 768 * 30011 * 2 * 0.99);
  });

  it('an optimizer with smaller states has smaller states', () => {
    const states = (optim: string): number => estimate({ optim, dtype: 'fp32' }).vram.terms.optimizerStates;
    expect(states('adamw_torch_fused')).toBeGreaterThan(facts.parameters * 8);
    expect(states('adamw_8bit')).toBeLessThan(facts.parameters * 2.1);
    expect(states('adafactor')).toBeLessThan(facts.parameters * 0.1);
    expect(states('sgd')).toBe(0);
    expect(states('paged_adamw_32bit')).toBeLessThan(facts.parameters * 0.1);
  });

  it('foreach AdamW needs one more tensor a weight during the step than fused', () => {
    const tiny: Partial<PlanValues> = { perDeviceTrainBatchSize: 1, maxLength: 32, dtype: 'fp32' };
    const foreach = estimate({ ...tiny, optim: 'adamw_torch' });
    expect(foreach.vram.peakPhase).toBe('optimizer');
    expect(foreach.vram.terms.temporaryBuffers).toBeGreaterThanOrEqual(facts.parameters * 4);
  });

  it('padded rows and an older transformers cost more', () => {
    expect(peak({ versions: { torch: '2.4', transformers: '4.48.1', peft: '0.13', trl: '0.13' } })).toBeGreaterThan(
      peak(),
    );
    expect(peak({ attnImplementation: 'flash_attention_2' })).toBeLessThan(peak());
    expect(peak({ attnImplementation: 'eager' })).toBeGreaterThan(peak());
  });
});

describe('more than one device', () => {
  const spread = (
    strategy: PlanValues['distributed']['strategy'],
    offload: PlanValues['distributed']['offload'] = [],
  ) =>
    estimate({
      mixedPrecision: 'bf16',
      distributed: { nodes: 1, processesPerNode: 4, strategy, offload },
    });

  it('DDP holds the buckets beside the gradients', () => {
    expect(spread('ddp').vram.terms.communicationBuffers).toBeGreaterThan(facts.parameters * 1.9);
    expect(estimate().vram.terms.communicationBuffers).toBe(0);
  });

  it('each ZeRO stage spreads more', () => {
    const states = (['zero1', 'zero2', 'zero3'] as const).map((strategy) => spread(strategy).vram);
    const held = states.map(({ terms }) => terms.weights + terms.gradients + terms.optimizerStates);
    expect(held).toEqual([...held].sort((a, b) => b - a));
    expect(states[2]!.terms.weights).toBeLessThan(states[0]!.terms.weights / 3);
    expect(states[0]!.terms.optimizerStates).toBeGreaterThan((facts.parameters * 12) / 4);
  });

  it('offloaded states move to the host, by cause', () => {
    const on = spread('zero2');
    const off = spread('zero2', ['optimizer']);
    expect(off.vram.terms.optimizerStates).toBe(0);
    expect(off.ram.terms.offloadedStates).toBeGreaterThanOrEqual(facts.parameters * 12);
    expect(on.ram.terms.offloadedStates ?? 0).toBe(0);
  });
});

describe('objectives', () => {
  it('DPO runs two rows a row and holds a reference unless adapters can be switched off', () => {
    const dpo = estimate({ objective: 'dpo' });
    expect(dpo.vram.allocatedPeakBytes).toBeGreaterThan(peak({ perDeviceTrainBatchSize: 4 }));
    expect(dpo.vram.terms.weights).toBeGreaterThan(1.9 * estimate().vram.terms.weights);
    const adapted = estimate({ objective: 'dpo', method: 'lora', lora: LORA });
    expect(adapted.vram.terms.weights).toBeLessThan(1.2 * estimate().vram.terms.weights);
  });

  it('a reward model has no logits', () => {
    expect(estimate({ objective: 'reward' }).vram.terms.logits).toBeLessThan(1e6);
  });

  it('a classifier has a scored row for every label and no token head', () => {
    const bert = (labels: number) => factsOf({ model_type: 'bert', num_hidden_layers: 2, num_labels: labels });
    const counted = (labels: number) => estimate({ objective: 'classification' }, bert(labels)).params.total;
    expect(counted(9) - counted(4)).toBe(5 * (768 + 1));
    // A reward is one number, whatever the config says.
    expect(estimate({ objective: 'reward' }, bert(9)).params.total).toBe(counted(1));
  });

  it('shorter targets cost less than targets as long as the source', () => {
    const t5 = factsOf({ model_type: 't5', num_layers: 2 });
    const long = estimate({ objective: 'seq2seq' }, t5);
    const short = estimate({ objective: 'seq2seq', maxTargetLength: 96 }, t5);
    expect(short.vram.terms.logits).toBeLessThan(long.vram.terms.logits / 3.5);
    expect(long.assumptions).toContain('targets are as long as sources, max_length tokens');
    expect(short.assumptions).not.toContain('targets are as long as sources, max_length tokens');
  });

  it('a large evaluation batch can be the peak', () => {
    const changes: Partial<PlanValues> = {
      gradientCheckpointing: CHECKPOINTING,
      lossImpl: 'full',
      perDeviceTrainBatchSize: 1,
      perDeviceEvalBatchSize: 64,
    };
    expect(estimate({ ...changes, eval: true }).vram.peakPhase).toBe('eval');
    expect(estimate({ ...changes, eval: false }).vram.peakPhase).not.toBe('eval');
  });
});

describe('what is refused, with a code', () => {
  it.each([
    ['missing-prompt-tuning', { method: 'prompt_tuning' }],
    ['unsupported-attention', { attnImplementation: 'flex_attention' }],
    ['unsupported-objective', { objective: 'grpo' }],
    ['unsupported-objective', { objective: 'seq2seq' }],
    ['unsupported-optimizer', { optim: 'adamw_torch_xla' }],
    ['unsupported-optimizer', { optim: 'adamw_turbo' }],
    ['missing-lora', { method: 'lora' }],
    ['quantised-full', { quantization: NF4 }],
    ['no-target-modules', { method: 'lora', lora: { ...LORA, targetModules: ['query'] } }],
    ['bad-setting', { maxLength: 0 }],
  ] as const)('%s', (code, changes) => {
    expect(codes(changes as Partial<PlanValues>)).toEqual([code]);
  });

  it('a target that is only the end of a name matches nothing, one after a dot does', () => {
    const targets = (...names: string[]): Partial<PlanValues> => ({
      method: 'lora',
      lora: { ...LORA, targetModules: names },
    });
    expect(codes(targets('proj'))).toEqual(['no-target-modules']);
    expect(codes(targets('self_attn.q_proj'))).toEqual([]);
  });

  it('an objective whose trainer has no class for the model', () => {
    const types = { causal: 'bert', masked: 'modernbert', both: 't5', decoder: 'llama' };
    const refused = (objective: PlanValues['objective'], model_type: string): string[] =>
      codes({ objective, maxLength: 128 }, factsOf({ model_type, num_hidden_layers: 2 }));
    expect(refused('clm', types.masked)).toEqual(['unsupported-objective']);
    expect(refused('clm', types.causal)).toEqual([]);
    expect(refused('sft', types.both)).toEqual(['unsupported-objective']);
    expect(refused('seq2seq', types.decoder)).toEqual(['unsupported-objective']);
    expect(refused('seq2seq', types.both)).toEqual([]);
    for (const type of Object.values(types)) expect(refused('classification', type)).toEqual([]);
  });

  it('more tokens than a model has learned positions for', () => {
    const gpt2 = factsOf({ model_type: 'gpt2', n_positions: 256, n_layer: 2 });
    expect(codes({ maxLength: 257 }, gpt2)).toEqual(['too-long']);
    expect(codes({ maxLength: 256 }, gpt2)).toEqual([]);
  });

  it('experts with dropout, or half of a fused projection', () => {
    const mixtral = factsOf({ model_type: 'mixtral', num_hidden_layers: 1, hidden_size: 256, intermediate_size: 512 });
    const lora = (targetModules: string[], loraDropout = 0): Partial<PlanValues> => ({
      method: 'lora',
      lora: { ...LORA, targetModules, loraDropout },
    });
    expect(codes(lora(['w1', 'w2']), mixtral)).toEqual(['bad-targets']);
    expect(codes(lora(['w1', 'w2', 'w3'], 0.1), mixtral)).toEqual(['bad-targets']);
    expect(codes(lora(['w1', 'w2', 'w3']), mixtral)).toEqual([]);
    expect(codes(lora(['q_proj'], 0.1), mixtral)).toEqual([]);
  });
});

describe('beside PyTorch', () => {
  it('a known card narrows the interval', () => {
    const unknown = estimateMemory(plan(), facts);
    const known = estimateMemory(plan(), facts, { computeCapability: { major: 8, minor: 6 } });
    if (!unknown.ok || !known.ok) throw new Error('refused');
    const width = ({ vram }: MemoryEstimate): number => vram.highBytes - vram.lowBytes;
    expect(width(known.value)).toBeLessThan(width(unknown.value));
    expect(known.value.vram.allocatedPeakBytes).toBe(unknown.value.vram.allocatedPeakBytes);
  });

  it('expandable segments leave fewer holes', () => {
    const plain = estimate().vram.terms.fragmentation;
    expect(estimate({ allocatorConf: 'expandable_segments:True' }).vram.terms.fragmentation).toBeLessThan(plain);
    expect(estimate({ allocatorConf: 'expandable_segments:False' }).vram.terms.fragmentation).toBe(plain);
  });
});
