import { spawnSync } from 'node:child_process';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { GiB } from '../src/core/index.ts';
import { estimateMemory, memoryBudget } from '../src/memory/index.ts';
import { describeModel, type ModelFacts } from '../src/model/index.ts';
import { DEFAULT_POLICY, planRun, stepPredictor } from '../src/planner/index.ts';
import { NEUTRAL_VALUES, type PlanValues } from '../src/spec/index.ts';
import { type ReferenceRow, readReferenceRows } from './reference-rows.ts';

const ROOT = resolve(import.meta.dirname, '..');
const REFERENCE = resolve(ROOT, '../shared/reference');

/** Levers whose effect a trace shows; the allocator's is in the allowance. */
const TRACED_LEVERS = [
  'micro-batch',
  'gradient-checkpointing',
  'attention',
  'loss',
  'frozen-base-16bit',
  'optimizer-8bit',
  'qlora',
  'allocator',
];

const lora = {
  r: 16,
  loraAlpha: 32,
  loraDropout: 0,
  targetModules: 'all-linear',
  adapterDtype: 'fp32',
  modulesToSave: [],
} as const;

/** A trace clips no gradients and knows one card. */
const start = (values: Partial<PlanValues>): PlanValues => ({
  ...NEUTRAL_VALUES,
  dtype: 'bf16',
  perDeviceTrainBatchSize: 8,
  maxLength: 1024,
  maxGradNorm: 0,
  ...values,
});

const STARTS: readonly (readonly [string, PlanValues])[] = [
  ['full, fp32 under autocast', start({ dtype: 'fp32', mixedPrecision: 'bf16' })],
  ['full, bf16', start({ maxLength: 2048, optim: 'adamw_torch' })],
  ['LoRA on fp32', start({ method: 'lora', lora, dtype: 'fp32', perDeviceTrainBatchSize: 4 })],
  ['LoRA on bf16', start({ method: 'lora', lora, mixedPrecision: 'bf16', perDeviceTrainBatchSize: 16 })],
];
const CARDS = [6, 8, 12, 16, 24, 40, 48, 80] as const;

interface Cell {
  readonly name: string;
  readonly verdict: 'rewrite' | 'refuse';
  /** What is traced: the rewritten plan, or the smallest one of a refusal. */
  readonly values: PlanValues;
  readonly config: ReferenceRow['config'];
  readonly facts: ModelFacts;
  readonly estimatedBytes: number;
  /** What comes on top of tensors: context, and memory reserved but not allocated; as estimated. */
  readonly allowanceBytes: number;
  readonly usableBytes: number;
  readonly capacityBytes: number;
}

function cellsOf(arch: string, config: ReferenceRow['config']): readonly Cell[] {
  const described = describeModel(config);
  if (!described.ok) return [];
  const facts = described.value;
  const computeCapability = { major: 8, minor: 6 };
  return STARTS.flatMap(([startName, values]) =>
    CARDS.flatMap((card): readonly Cell[] => {
      const capacityBytes = card * GiB;
      const budget = memoryBudget(capacityBytes, 0, DEFAULT_POLICY.headroom);
      const estimate = (at: PlanValues) => estimateMemory(at, facts, { computeCapability, capacityBytes });
      if (!estimate(values).ok) return [];
      const plan = planRun({
        values,
        budget,
        policy: { ...DEFAULT_POLICY, allow: TRACED_LEVERS },
        surroundings: {
          writable: () => true,
          packages: { bitsandbytes: true, flashAttn: false, liger: false },
          computeCapability,
          hostRamBytes: undefined,
          platform: 'linux',
        },
        estimate,
        stepSeconds: stepPredictor(facts, computeCapability),
      });
      if (plan.verdict === 'fits') return [];
      const changes = plan.verdict === 'refuse' ? plan.refusal.smallest.changes : plan.changes;
      const at: PlanValues = { ...values, ...Object.fromEntries(changes.map(({ setting, to }) => [setting, to])) };
      const { vram } = plan.verdict === 'refuse' ? plan.refusal.smallest.estimate : plan.estimate;
      return [
        {
          name: `${arch}, ${startName}, ${card} GiB`,
          verdict: plan.verdict,
          values: at,
          config,
          facts,
          estimatedBytes: vram.allocatedPeakBytes,
          allowanceBytes: vram.devicePeakBytes - vram.allocatedPeakBytes,
          usableBytes: budget.usableBytes,
          capacityBytes,
        },
      ];
    }),
  );
}

/** A plan as a case of trace.py; its id is the plan itself, so that equal plans are traced once. */
function caseOf({ values: at, config }: Cell): Readonly<Record<string, unknown>> {
  const method = at.quantization ? 'qlora' : at.method;
  const traced = {
    config,
    method,
    dtype: at.dtype,
    ...(at.mixedPrecision === 'no' ? {} : { amp: at.mixedPrecision }),
    ...(at.quantization
      ? {
          quant: 'nf4',
          double_quant: at.quantization.doubleQuant,
          kbit_prepare: at.quantization.upcastRestToFp32,
          compute_dtype: at.quantization.computeDtype,
        }
      : {}),
    ...(at.lora ? { rank: at.lora.r, targets: at.lora.targetModules } : {}),
    ckpt: at.gradientCheckpointing.enabled,
    ...(at.lossImpl === 'full' ? {} : { loss: 'chunked' }),
    optim: /8bit/.test(at.optim) ? 'adamw_8bit' : at.optim,
    batch: at.perDeviceTrainBatchSize,
    seq: at.maxLength,
    accum: Math.min(2, at.gradientAccumulationSteps),
    attn: at.attnImplementation,
  };
  return { id: JSON.stringify(traced), ...traced };
}

const spread = (list: readonly Cell[]): readonly Cell[] =>
  [...list.keys()].sort((a, b) => (a % 7) - (b % 7) || a - b).map((index) => list[index]!);

/** One of each model after the other, so that a run that is broken off has seen all of them. */
const byTurns = (lists: readonly (readonly Cell[])[]): readonly Cell[] =>
  Array.from({ length: Math.max(...lists.map(({ length }) => length)) }).flatMap((_, turn) =>
    // Every seventh of a model, so that starts and cards are mixed as well.
    lists.flatMap((list) => spread(list)[turn] ?? []),
  );

const share = (part: number, of: number): string => (of === 0 ? '-' : `${((100 * part) / of).toFixed(1)} %`);

/**
 * `npm run bench:plans-traced -- OUT.jsonl [models, 10] [peaks.jsonl] [trace.py]`: the planner's rewritten and refused plans traced as
 * real training steps. Fits: traced tensors and the estimated allowance are within what the card leaves. OUT.jsonl keeps the traces: a run that was broken off goes on, and `--judge` traces nothing more.
 */
export function main(argv: readonly string[]): number {
  const [out, count = '10', peaks, tracer] = argv.filter((word) => !word.startsWith('--'));
  if (!out) {
    console.error('usage: npm run bench:plans-traced -- OUT.jsonl [MODELS] [PEAKS.jsonl] [TRACE.py] [--judge]');
    return 2;
  }
  const rows = readReferenceRows(peaks ?? resolve(REFERENCE, 'peaks.jsonl')).filter(
    (row) => !row.class || row.class === 'causal',
  );
  const models = [...new Map(rows.map((row) => [row.arch ?? row.id, row.config]))];
  const cells = byTurns(models.slice(0, Number(count)).map(([arch, config]) => cellsOf(arch, config)));
  const cases = new Map(cells.map((cell) => [caseOf(cell).id as string, caseOf(cell)]));
  writeFileSync(`${out}.cases`, `${[...cases.values()].map((one) => JSON.stringify(one)).join('\n')}\n`);
  console.log(`${cells.length} plans, ${cases.size} of them different`);
  const python = resolve(ROOT, '.python-env/bin/python');
  if (!argv.includes('--judge'))
    spawnSync('nice', [python, tracer ?? resolve(REFERENCE, 'trace.py'), `${out}.cases`, out], { stdio: 'inherit' });
  if (!existsSync(out)) return 1;
  const traces = new Map(
    readFileSync(out, 'utf8')
      .split('\n')
      .filter((line) => line !== '')
      .map((line) => JSON.parse(line) as { id: string; peak_bytes?: number; error?: string })
      .map(({ id, peak_bytes: bytes }) => [id, bytes]),
  );
  const judged = cells.flatMap((cell) => {
    const traced = traces.get(caseOf(cell).id as string);
    return traced === undefined ? [] : [{ ...cell, traced, needs: traced + cell.allowanceBytes }];
  });
  const rewritten = judged.filter(({ verdict }) => verdict === 'rewrite');
  const refused = judged.filter(({ verdict }) => verdict === 'refuse');
  const fits = ({ needs, usableBytes }: (typeof judged)[number]): boolean => needs <= usableBytes;
  for (const cell of judged.filter((one) => fits(one) !== (one.verdict === 'rewrite'))) {
    const gib = (bytes: number): string => (bytes / GiB).toFixed(2);
    console.log(
      `${cell.verdict}: ${cell.name}: traced ${gib(cell.traced)}, estimated ${gib(cell.estimatedBytes)}, with ${gib(cell.allowanceBytes)} on top, of ${gib(cell.usableBytes)} GiB`,
    );
  }
  const fit = rewritten.filter(fits).length;
  const would = refused.filter(fits).length;
  const inHeadroom = refused.filter(({ needs, capacityBytes }) => needs <= capacityBytes).length;
  console.log(`models ${new Set(judged.map(({ config }) => config)).size}, not traced ${cells.length - judged.length}`);
  console.log(`rewritten ${rewritten.length}: ${fit} fit (${share(fit, rewritten.length)})`);
  console.log(
    `refused ${refused.length}: ${would} would have fitted (${share(would, refused.length)}); ${inHeadroom} into the headroom as well`,
  );
  return 0;
}
