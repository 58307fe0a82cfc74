import type {
  AttnImplementation,
  Distributed,
  GradientCheckpointing,
  Lora,
  Method,
  Quantization,
  SettingName,
} from '../../spec/index.ts';
import type { FileValue, Layer, StackView, Written } from '../dialect.ts';
import { writeAccumulation, writeMicroBatch } from '../global-batch.ts';
import { cannot, together, wrote } from '../hf-argparser/written.ts';
import { NAMES, type Name } from './fields.ts';
import type { OpenRlhfDetail } from './read.ts';

/** Writes into the flags, in the spelling of the release that the command is written for. */
export function writeOpenRlhf(
  { reading: { detail } }: Layer<OpenRlhfDetail>,
  setting: SettingName,
  to: unknown,
  { spec }: StackView,
): Written | undefined {
  const { launch, version, batch } = detail;
  const nameOf = (name: Name): string => NAMES[name][version.spelling];
  const set = (name: Name, value: FileValue): Written => launch.values.assign(nameOf(name), value, NAMES[name]);
  const turn = (name: Name, on: boolean): Written => launch.switchTo(on, nameOf(name), ...NAMES[name]);
  const micro = (rows: number): Written => set('micro', rows);
  switch (setting) {
    case 'perDeviceTrainBatchSize':
      return writeMicroBatch(batch, to as number, micro);
    case 'gradientAccumulationSteps':
      return writeAccumulation(batch, to as number, micro);
    case 'perDeviceEvalBatchSize':
      return cannot('OpenRLHF evaluates with the micro batch of training');
    case 'maxLength':
      return set('length', to as number);
    case 'maxGradNorm':
      return set('maxNorm', to as number);
    case 'outputDir':
      return set('output', to as string);
    case 'dataloaderNumWorkers':
      return version.origin.kind === 'default' && version.origin.version === '0.7'
        ? cannot('this release of OpenRLHF has no such flag')
        : set('workers', to as number);
    case 'gradientCheckpointing':
      return writeCheckpointing(to as GradientCheckpointing, turn);
    case 'attnImplementation':
      return writeAttention(detail, to as AttnImplementation, set, spec.paddingFree?.value === true);
    case 'method':
      return writeMethod(to as Method, spec.lora !== undefined, set, turn);
    case 'quantization':
      return spec.lora ? writeQuantization(to as Quantization | null, turn) : cannot(BY_RANK);
    case 'lora':
      return spec.lora ? writeLora(detail, to as Lora | null, set) : cannot(BY_RANK);
    case 'distributed':
      return writeSharding(to as Distributed, spec.distributed?.value ?? undefined, set, turn);
    default:
      return undefined;
  }
}

type SetName = (name: Name, value: FileValue) => Written;
type Turn = (name: Name, on: boolean) => Written;

function writeCheckpointing(
  { enabled, useReentrant, everyNLayers, offload }: GradientCheckpointing,
  turn: Turn,
): Written {
  if (everyNLayers !== 1) return cannot('OpenRLHF checkpoints every layer or none');
  if (offload) return cannot('OpenRLHF does not move activations to host RAM');
  if (!enabled) return turn('checkpointing', false);
  return together(turn('checkpointing', true), turn('reentrant', useReentrant));
}

function writeAttention(
  { launch, version }: OpenRlhfDetail,
  to: AttnImplementation,
  set: SetName,
  packs: boolean,
): Written {
  const flash = to === 'flash_attention_2';
  if (packs && !to.startsWith('flash_attention')) return cannot('--packing_samples needs a flash kernel');
  if (version.attention === 'flash_attention_2') return set('attention', to);
  // Before 0.8 there is only a switch, and eager attention without it.
  return flash || to === 'eager'
    ? launch.switchTo(flash, 'flash_attn')
    : cannot('this release takes --flash_attn or nothing');
}

const BY_RANK = 'only a rank says that adapters are trained, and none is given';

function writeMethod(to: Method, hasLora: boolean, set: SetName, turn: Turn): Written {
  switch (to) {
    case 'full':
      return together(hasLora ? set('rank', 0) : wrote(), turn('loadIn4bit', false));
    case 'lora':
      return hasLora ? turn('loadIn4bit', false) : cannot(BY_RANK);
    case 'qlora':
      return hasLora ? turn('loadIn4bit', true) : cannot(BY_RANK);
    default:
      return cannot(`OpenRLHF has no ${to}`);
  }
}

function writeQuantization(to: Quantization | null, turn: Turn): Written {
  if (to === null) return turn('loadIn4bit', false);
  if (to.bits !== 4 || to.quantType !== 'nf4' || !to.doubleQuant)
    return cannot('OpenRLHF quantises to NF4 twice or not at all');
  if (to.computeDtype !== 'bf16') return cannot('a base in 4 bits computes in bf16');
  if (to.upcastRestToFp32) return cannot('OpenRLHF does not prepare a quantised model for k-bit training');
  return turn('loadIn4bit', true);
}

function writeLora({ launch: { values } }: OpenRlhfDetail, to: Lora | null, set: SetName): Written {
  if (to === null) return set('rank', 0);
  if (to.modulesToSave.length > 0) return cannot('OpenRLHF trains no other modules beside adapters');
  if (to.targetModules === 'default') return cannot("OpenRLHF does not take PEFT's list for the architecture");
  if (to.adapterDtype !== 'bf16') return cannot('DeepSpeed casts the adapters to bf16');
  const targets = to.targetModules === 'all-linear' ? ['all-linear'] : to.targetModules;
  const given = (name: Name, value: FileValue, stands: FileValue): Written =>
    values.find(...NAMES[name]) || value !== stands ? set(name, value) : wrote();
  const unsaid = to.targetModules === 'all-linear' && !values.find(...NAMES.targets);
  return together(
    set('rank', to.r),
    given('alpha', to.loraAlpha, 16),
    given('dropout', to.loraDropout, 0),
    unsaid ? wrote() : set('targets', targets),
  );
}

const STAGES: Readonly<Partial<Record<Distributed['strategy'], number>>> = { ddp: 0, zero1: 1, zero2: 2, zero3: 3 };

function writeSharding(to: Distributed, now: Distributed | undefined, set: SetName, turn: Turn): Written | undefined {
  if (!now || to.nodes !== now.nodes || to.processesPerNode !== now.processesPerNode) return undefined;
  const stage = STAGES[to.strategy];
  if (stage === undefined) return cannot(`OpenRLHF shards with DeepSpeed, not with ${to.strategy}`);
  if (to.offload.some((target) => target !== 'optimizer')) return cannot('OpenRLHF offloads the optimizer alone');
  const offload = to.offload.join() === now.offload.join() ? wrote() : turn('adamOffload', to.offload.length > 0);
  return together(to.strategy === now.strategy ? wrote() : set('stage', stage), offload);
}
