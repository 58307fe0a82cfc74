import { error, fail, ok, type Result } from '../../core/index.ts';
import type { Origin, Setting, TrainingSpec } from '../../spec/index.ts';
import type { Position, Reading } from '../dialect.ts';
import { accumulationOf, worldSize } from '../global-batch.ts';
import { toInteger, toOneOf, toText } from '../hf-argparser/convert.ts';
import { readFlags } from '../hf-argparser/flag-launch.ts';
import type { FieldKind, Grammar } from '../hf-argparser/grammar.ts';
import { settingReader } from '../hf-argparser/settings.ts';
import type { XtunerStart } from './detect.ts';

const V1: Origin = { kind: 'default', tool: 'xtuner', version: '1.0' };

const VALUES = `config load_from model_cfg max_length pack_max_length global_batch_size optim work_dir num_workers
  chat_template tokenizer_path dataset lr epoch_num total_step`;
const FIELDS: ReadonlyMap<string, FieldKind> = new Map(
  VALUES.trim()
    .split(/\s+/)
    .map((name) => [name, 'value']),
);
const GRAMMAR: Grammar = { fields: FIELDS, negatable: new Set(), open: true };
const IDLE = ['chat_template', 'tokenizer_path', 'dataset', 'lr', 'epoch_num', 'total_step'];

/** Reads the flags of XTuner's newer trainer: packed rows of one length, a model of its own under FSDP. */
export function readXtunerV1(start: XtunerStart, position: Position): Result<Reading> {
  const { values, problems } = readFlags(position.argv, start.argsFrom, GRAMMAR);
  const reader = settingReader(values, true);
  const config = reader.given(['config'], toText);
  // A config decides everything that is not a flag, and it is a program.
  const otherwise = <T>(value: T): Setting<T> =>
    config ? { value: null, origin: config.origin } : { value, origin: V1 };
  const rows = reader.given(['global_batch_size'], toInteger(1));
  const world = worldSize(position);
  const model = reader.given(['load_from', 'model_cfg'], toText);
  const output = reader.given(['work_dir'], toText);
  reader.note('max_length');
  const spec: TrainingSpec = {
    ...(model ? { modelNameOrPath: model } : {}),
    objective: { value: 'sft', origin: V1 },
    method: otherwise('full'),
    dtype: otherwise('fp32'),
    mixedPrecision: otherwise('bf16'),
    perDeviceTrainBatchSize: otherwise(1),
    gradientAccumulationSteps: rows
      ? accumulationOf(world ? { rows: rows.value, replicas: world } : undefined, 1, Math.floor, rows.origin)
      : otherwise(1),
    // Rows are packed to this length; `max_length` cuts one example.
    maxLength: reader.setting(['pack_max_length'], toInteger(1), otherwise(4096)),
    packing: { value: true, origin: V1 },
    optim:
      reader.setting(['optim'], toOneOf('AdamW', 'Muon'), otherwise('AdamW')).value === 'AdamW'
        ? { value: 'adamw_torch', origin: V1 }
        : { value: null, origin: V1 },
    gradientCheckpointing: otherwise({ enabled: true, useReentrant: false, everyNLayers: 1, offload: false }),
    lossImpl: otherwise('chunked'),
    dataloaderNumWorkers: reader.setting(['num_workers'], toInteger(0), otherwise(0)),
    ...(output ? { outputDir: output } : {}),
  };
  const errors = [...problems, ...reader.diagnostics].filter((each) => each.severity === 'error');
  if (errors.length > 0) return fail(...errors);
  return ok({
    spec,
    sharding: { strategy: config ? null : 'fsdp2', offload: [], origin: V1 },
    notEstimated: error('not-estimated', "XTuner's newer trainer has models of its own, whose memory is not modelled", {
      location: `argv[${start.claim.from}]`,
      help: 'run it with --mode warn: snug then watches the run and says what ended it',
    }),
    unread: [
      ...reader.unread,
      ...values
        .all()
        .filter((found) => !reader.noted.has(found.key))
        .map(({ key, origin }) => ({
          key,
          origin,
          reason: IDLE.includes(key) ? 'no-effect-on-memory' : 'not-estimated',
        })),
    ],
    diagnostics: reader.diagnostics,
    resume: { kind: 'unsupported', reason: 'how it goes on is said in its config, which is a program' },
    detail: undefined,
  });
}
