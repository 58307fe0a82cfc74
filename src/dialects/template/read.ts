import { fail, ok, type Result } from '../../core/index.ts';
import type { TrainingSpec } from '../../spec/index.ts';
import type { Claim, Position, Reading } from '../dialect.ts';
import { toBoolean, toInteger, toText } from '../hf-argparser/convert.ts';
import { type FlagLaunch, readFlags } from '../hf-argparser/flag-launch.ts';
import { idleOrUnknown, leftOver } from '../hf-argparser/left-over.ts';
import { settingReader } from '../hf-argparser/settings.ts';
import { GRAMMAR, IDLE, TOOL_1_0 } from './fields.ts';

/** What `write` needs of the reading. */
export interface TemplateDetail {
  readonly launch: FlagLaunch;
}

/** Settings with their origins; what the tool decides by itself as a default with its version. */
export function readTemplate(claim: Claim, position: Position): Result<Reading<TemplateDetail>> {
  const launch = readFlags(position.argv, claim.from + 2, GRAMMAR);
  const reader = settingReader(launch.values, true);
  const origin = TOOL_1_0;
  const model = reader.given(['model'], toText);
  const recompute = reader.setting<boolean>(['recompute'], toBoolean, { value: false, origin });
  const spec: TrainingSpec = {
    ...(model ? { modelNameOrPath: model } : {}),
    objective: { value: 'sft', origin },
    method: { value: 'full', origin },
    dtype: { value: 'bf16', origin },
    mixedPrecision: { value: 'no', origin },
    perDeviceTrainBatchSize: reader.setting<number>(['rows'], toInteger(1), { value: 4, origin }),
    gradientAccumulationSteps: reader.setting<number>(['accumulate'], toInteger(1), { value: 1, origin }),
    // null: the setting applies, and the launch does not say it.
    maxLength: reader.setting<number>(['tokens'], toInteger(1), { value: null, origin }),
    gradientCheckpointing: {
      value: { enabled: recompute.value === true, useReentrant: false, everyNLayers: 1, offload: false },
      origin: recompute.origin,
    },
    optim: { value: 'adamw_torch', origin },
  };
  const diagnostics = [...launch.problems, ...reader.diagnostics];
  if (diagnostics.some((each) => each.severity === 'error')) return fail(...diagnostics);
  return ok({
    spec,
    via: 'cli',
    processes: {
      nodes: 1,
      perNode: 1,
      distributed: false,
      origin: { kind: 'derived', from: 'tool starts one process' },
    },
    // Nothing that was given is dropped: it is in the spec, or it is named with a reason.
    unread: [...reader.unread, ...leftOver(reader, idleOrUnknown(IDLE))],
    diagnostics,
    resume: { kind: 'unsupported', reason: 'the tool cannot go on from a checkpoint' },
    detail: { launch },
  });
}
