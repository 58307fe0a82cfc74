import { type Diagnostic, fail, note, ok, type Result } from '../../core/index.ts';
import { formatOrigin, type Origin, type Setting, type TrainingSpec } from '../../spec/index.ts';
import type { ReadContext, ResumeSupport } from '../contract.ts';
import type { Position, Processes, Reading } from '../dialect.ts';
import { type GlobalBatch, worldSize } from '../global-batch.ts';
import { orNull, toBoolean, toInteger, toText } from '../hf-argparser/convert.ts';
import { leftOver } from '../hf-argparser/left-over.ts';
import { leftOut, type SettingReader, settingReader } from '../hf-argparser/settings.ts';
import { lastOption } from '../scan-options.ts';
import { type FoundryArguments, readArguments } from './arguments.ts';
import type { FoundryStart } from './detect.ts';
import { readModel } from './model.ts';
import { FOUNDRY, readBatch, readFsdp, readLength, readTraining } from './settings.ts';

export interface FoundryDetail extends FoundryArguments {
  readonly batch: GlobalBatch | undefined;
  /** FSDP is on: with one process alone its config is dropped, and its checkpointing with it. */
  readonly sharded: boolean;
}

/** Reads a launch of LLM Foundry: `key=value` over the file over the defaults of its dataclass. */
export function readFoundry(
  start: FoundryStart,
  position: Position,
  context: ReadContext,
): Result<Reading<FoundryDetail>> {
  const args = readArguments(start, position, context);
  if (!args.ok) return args;
  const { values, config } = args.value;
  const reader = settingReader(values, true);
  const processes = readProcesses(start, position);
  const world = processes ? product(processes) : worldSize(position);
  const batch = readBatch(reader, world);
  const fsdp = readFsdp(reader, world);
  const model = readModel(reader);
  const output = reader.given(['save_folder'], orNull(toText));
  const kept = reader.given(['save_num_checkpoints_to_keep'], toInteger(-1));
  const resumed = reader.given(['load_path'], orNull(toText));
  const spec: TrainingSpec = {
    ...model.spec,
    ...readTraining(reader),
    // Composer's `ddp_sync_context` leaves FSDP as it is.
    syncsEachMicroBatch: { value: true, origin: FOUNDRY },
    ...batch.spec,
    ...readLength(reader),
    gradientCheckpointing: fsdp.gradientCheckpointing,
    saveTotalLimit: { value: kept && kept.value > 0 ? kept.value : null, origin: kept?.origin ?? FOUNDRY },
    ...(output?.value ? { outputDir: output as Setting<string> } : {}),
    ...(resumed?.value ? { resumeFromCheckpoint: resumed } : {}),
  };
  const diagnostics = [...reader.diagnostics, ...model.diagnostics, ...batch.diagnostics, ...fsdp.diagnostics];
  const errors = diagnostics.filter((each) => each.severity === 'error');
  if (errors.length > 0) return fail(...errors);
  return ok({
    spec,
    files: [config.reference],
    ...(processes ? { processes } : {}),
    ...(fsdp.sharding ? { sharding: fsdp.sharding, engines: [{ dialect: 'fsdp', origin: fsdp.sharding.origin }] } : {}),
    env: allocator(reader),
    ...(start.via ? { via: start.via } : {}),
    unread: [...reader.unread, ...config.unread, ...leftOver(reader, reasonOf), ...leftOut(reader, diagnostics)],
    diagnostics: [...diagnostics, ...alone(start, fsdp.dropped)],
    resume: resumeOf(reader),
    detail: { ...args.value, batch: batch.batch, sharded: fsdp.sharding !== undefined },
  });
}

const product = ({ nodes, perNode }: Processes): number | undefined =>
  nodes === null || perNode === null ? undefined : nodes * perNode;

/** `-n`, else LOCAL_WORLD_SIZE, else every visible GPU. Source: composer/cli/launcher.py `_parse_args`. */
function readProcesses({ composer, via, claim }: FoundryStart, position: Position): Processes | undefined {
  if (!composer) {
    const origin: Origin = { kind: 'derived', from: 'llmfoundry train starts one process' };
    return via && claim.from === position.index && !position.target
      ? { nodes: 1, perNode: 1, distributed: false, origin }
      : undefined;
  }
  const { environment, visibleGpus } = position;
  const option = lastOption(composer, '--nproc');
  const count = (text: string | undefined): number | undefined =>
    text !== undefined && /^\d+$/.test(text) ? Number(text) : undefined;
  const named = environment.LOCAL_WORLD_SIZE;
  const perNode = count(option?.value ?? named) ?? visibleGpus ?? null;
  const origin: Origin = option
    ? { kind: 'argv', index: option.valueIndex }
    : named !== undefined
      ? { kind: 'env', name: 'LOCAL_WORLD_SIZE' }
      : { kind: 'derived', from: visibleGpus === undefined ? 'the visible GPUs, unknown here' : 'the visible GPUs' };
  const world = count(lastOption(composer, '--world_size')?.value ?? environment.WORLD_SIZE);
  const each = perNode === null ? null : Math.max(1, perNode);
  return { nodes: world && each ? Math.max(1, world / each) : 1, perNode: each, distributed: true, origin };
}

/** On unless it is switched off, in the place of what was there. Source: command_utils/train.py `train`. */
function allocator(reader: SettingReader): Readonly<Record<string, string>> {
  const on = reader.setting(['expandable_segments'], toBoolean, { value: true, origin: FOUNDRY });
  const split = reader.given(['max_split_size_mb'], orNull(toInteger(1)));
  const options = [
    ...(split?.value ? [`max_split_size_mb:${split.value}`] : []),
    ...(on.value ? ['expandable_segments:True'] : []),
  ];
  return options.length > 0 ? { PYTORCH_CUDA_ALLOC_CONF: options.join(',') } : {};
}

/** Only `composer` and launchers like it make several processes. */
const alone = ({ claim }: FoundryStart, dropped: Origin | undefined): readonly Diagnostic[] =>
  dropped
    ? [
        note(
          'fsdp-dropped',
          'with one process LLM Foundry drops fsdp_config, and its activation checkpointing with it',
          {
            location: formatOrigin(dropped),
            help: `start several: composer -n 2 … (argv[${claim.from}])`,
          },
        ),
      ]
    : [];

/** By itself where run and folder have names that stay. Source: composer/trainer/trainer.py, `autoresume`. */
function resumeOf(reader: SettingReader): ResumeSupport {
  const [run, folder] = [reader.given(['run_name'], orNull(toText)), reader.given(['save_folder'], orNull(toText))];
  const overwrites = reader.given(['save_overwrite'], toBoolean)?.value === true;
  const asked = reader.given(['autoresume'], toBoolean)?.value === true;
  reader.note('save_weights_only', 'save_filename', 'save_interval');
  if (asked || (run?.value && folder?.value && !overwrites)) {
    return { kind: 'supported', how: 'load_path: FILE, or by itself from the last checkpoint in save_folder' };
  }
  return { kind: 'supported', how: 'load_path: FILE' };
}

/** Keys of one place without effect on the memory of the step. */
const IDLE =
  /^(?:variables|tokenizer|scheduler|max_duration|eval_interval|eval_first|eval_subset_num_batches|seed|run_name|progress_bar|log_to_console|console_log_interval|python_log_level|log_config|loggers|callbacks|save_|train_loader\.dataset|eval_loader|dist_timeout|autoresume|load_|metadata|icl_|eval_gauntlet|optimizer\.|algorithms\.|model\.use_auth_token|model\.config_overrides\.(?:max_seq_len|n_positions|max_position_embeddings|attn_config\.attn_uses_sequence_id)$|model\.pretrained$|model\.init_device|train_loader\.|fsdp_config\.(?:limit_all_gathers|state_dict_type|sync_module_states|verbose|backward_prefetch|forward_prefetch|use_orig_params))/;

function reasonOf(key: string): string {
  if (key.startsWith('fsdp_config.') && !IDLE.test(key)) return 'not-estimated';
  return IDLE.test(key) ? 'no-effect-on-memory' : 'unknown-key';
}
