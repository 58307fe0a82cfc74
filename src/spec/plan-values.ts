import { type Diagnostic, error, type FloatDType, fail, ok, type Result } from '../core/index.ts';
import { formatOrigin } from './origin.ts';
import { type SettingName, settingKey, type TrainingSpec, type TrainingValues } from './training-spec.ts';

/** Settings that name things instead of sizing them; the estimator and the planner never look at them. */
type Naming = 'modelNameOrPath' | 'modelConfig' | 'outputDir' | 'resumeFromCheckpoint';

/** Settings of few runs: what is absent is off, or has the default of its tool. */
type Rare =
  | 'optimArgs'
  | 'optimTargetModules'
  | 'promptTuning'
  | 'maxTargetLength'
  | 'generation'
  | 'precomputeRefLogProbs'
  | 'labelSmoothingFactor'
  | 'neftuneNoiseAlpha'
  | 'torchCompile';

/** Every setting that sizes a run, all known: what the estimator reads and the planner moves. */
export interface PlanValues extends Omit<TrainingValues, Naming | Rare | 'dtype'>, Partial<Pick<TrainingValues, Rare>> {
  readonly dtype: FloatDType;
}

/** What holds for a setting that a launch says nothing about because it does not apply there. */
export const NEUTRAL_VALUES: Omit<PlanValues, 'perDeviceTrainBatchSize' | 'maxLength' | 'dtype'> = {
  objective: 'clm',
  method: 'full',
  mixedPrecision: 'no',
  perDeviceEvalBatchSize: 8,
  eval: false,
  gradientAccumulationSteps: 1,
  packing: false,
  paddingFree: false,
  attentionMask: false,
  attnImplementation: 'sdpa',
  gradientCheckpointing: { enabled: false, useReentrant: false, everyNLayers: 1, offload: false },
  optim: 'adamw_torch_fused',
  maxGradNorm: 1,
  quantization: null,
  lora: null,
  ia3: null,
  distributed: { nodes: 1, processesPerNode: 1, strategy: 'ddp', offload: [] },
  dataloaderNumWorkers: 0,
  dataloaderPinMemory: true,
  lossImpl: 'full',
  versions: { torch: '2.13', transformers: '5.17', peft: '0.21', trl: '1.13' },
  saveTotalLimit: null,
  allocatorConf: '',
};

/** Settings no estimate can do without when they are named but unknown (`max_length` of an interpolated key). */
const NEEDED: readonly SettingName[] = [
  'perDeviceTrainBatchSize',
  'maxLength',
  'method',
  'gradientAccumulationSteps',
  'distributed',
];

/**
 * The sizing settings of a spec. `checkpointDtype` answers `dtype: auto`. Errors name every needed setting that is
 * unknown, with where it came from.
 */
export function planValues(spec: TrainingSpec, checkpointDtype: FloatDType | undefined): Result<PlanValues> {
  const missing: Diagnostic[] = [];
  for (const name of NEEDED) {
    const setting = spec[name];
    if (setting ? setting.value === null : !(name in NEUTRAL_VALUES)) {
      missing.push(
        error('unknown-setting', `${settingKey(name)} cannot be known from this launch`, {
          ...(setting ? { location: formatOrigin(setting.origin) } : {}),
          help: `say it in the launch config, or with --set ${settingKey(name)}=VALUE`,
        }),
      );
    }
  }
  if (missing.length > 0) return fail(...missing);
  const known = Object.fromEntries(
    Object.entries(spec).flatMap(([name, setting]) =>
      setting && setting.value !== null ? [[name, setting.value]] : [],
    ),
  ) as Partial<TrainingValues>;
  const { modelNameOrPath: _m, modelConfig: _c, outputDir: _o, resumeFromCheckpoint: _r, dtype, ...sizing } = known;
  const resolved = dtype && dtype !== 'auto' ? dtype : (checkpointDtype ?? 'fp32');
  return ok({
    ...NEUTRAL_VALUES,
    ...(sizing as Pick<PlanValues, 'perDeviceTrainBatchSize' | 'maxLength'>),
    dtype: resolved,
  });
}
