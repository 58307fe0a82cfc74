import type { Distributed, MixedPrecision } from '../../spec/index.ts';
import { keyPathOf } from '../accelerate-config/index.ts';
import type { Dialect, FileValue, SourceEdit, Written } from '../dialect.ts';
import { cannot, together, wrote } from '../hf-argparser/written.ts';
import type { AccelerateDetail } from './read.ts';

/**
 * Tells accelerate: processes, ZeRO stage and offload, FSDP's offload, autocast. What a flag says is changed in the flag, what
 * a named file says in a copy of the file, what nobody says where there is a place.
 */
export const writeAccelerate: NonNullable<Dialect<AccelerateDetail>['write']> = (layer, setting, to, { spec }) => {
  const { detail } = layer.reading;
  if (setting === 'mixedPrecision') {
    const ours = layer.reading.spec.mixedPrecision;
    const holds = ours && JSON.stringify(spec.mixedPrecision?.origin) === JSON.stringify(ours.origin);
    return holds ? setOption('mixed_precision', to as MixedPrecision, detail) : undefined;
  }
  const now = spec.distributed?.value;
  return setting === 'distributed' && now ? writeDistributed(now, to as Distributed, detail) : undefined;
};

/** Without autocast of its own a trainer takes accelerate's, so that `no` must stand in both places. */
export const followAccelerate: NonNullable<Dialect<AccelerateDetail>['follow']> = ({ reading }, setting, to) => {
  const ours = reading.spec.mixedPrecision?.value;
  if (setting !== 'mixedPrecision' || to !== 'no' || ours === undefined || ours === 'no') return [];
  const written = setOption('mixed_precision', 'no', reading.detail);
  return written.ok ? written.edits : [];
};

function writeDistributed(now: Distributed, to: Distributed, detail: AccelerateDetail): Written | undefined {
  if (to.nodes !== now.nodes) return cannot('accelerate is started on each machine by somebody else');
  const count = to.nodes * to.processesPerNode;
  const processes = to.processesPerNode === now.processesPerNode ? wrote() : setOption('num_processes', count, detail);
  const same = to.strategy === now.strategy && to.offload.join() === now.offload.join();
  if (same) return processes;
  if (to.offload.includes('activations')) return undefined;
  if (detail.paradigm === 'deepspeed') return together(processes, writeDeepSpeed(to, detail));
  if (detail.paradigm === 'fsdp') return together(processes, writeFsdp(now, to, detail));
  return cannot('accelerate is not set up for DeepSpeed or FSDP in this launch');
}

function writeDeepSpeed({ strategy, offload }: Distributed, detail: AccelerateDetail): Written {
  const stage = /^zero([123])$/.exec(strategy)?.[1];
  if (stage === undefined) return cannot(`DeepSpeed has no stage for ${strategy}`);
  if (offload.includes('parameters') && stage !== '3')
    return cannot('DeepSpeed offloads parameters only at ZeRO stage 3');
  const optimizer = offload.includes('optimizer') ? 'cpu' : 'none';
  const parameters = offload.includes('parameters') ? 'cpu' : 'none';
  const { deepspeedFile } = detail;
  if (deepspeedFile) {
    const { path } = deepspeedFile.source;
    const edit = (value: FileValue, ...keyPath: string[]): SourceEdit => ({
      kind: 'file',
      path,
      keyPath: ['zero_optimization', ...keyPath],
      value,
    });
    return wrote(
      edit(Number(stage), 'stage'),
      edit(optimizer, 'offload_optimizer', 'device'),
      edit(parameters, 'offload_param', 'device'),
    );
  }
  return together(
    setOption('zero_stage', Number(stage), detail),
    setDevice('offload_optimizer_device', optimizer, detail),
    setDevice('offload_param_device', parameters, detail),
  );
}

/** `none` is what holds anyway where nothing is said. */
const setDevice = (option: string, device: string, detail: AccelerateDetail): Written =>
  device === 'none' && !detail.lookup(option) ? wrote() : setOption(option, device, detail);

function writeFsdp(now: Distributed, to: Distributed, detail: AccelerateDetail): Written {
  if (to.strategy !== now.strategy)
    return cannot(`a change from ${now.strategy} to ${to.strategy} needs another FSDP setup`);
  const both = to.offload.includes('optimizer') && to.offload.includes('parameters');
  if (!both && to.offload.length > 0)
    return cannot('FSDP offloads parameters and optimizer states together or not at all');
  return setOption('fsdp_offload_params', both, detail);
}

/** Sets one option where the launch has it, or where it can have it. */
export function setOption(option: string, value: string | number | boolean, detail: AccelerateDetail): Written {
  const given = detail.options.get(option);
  const file = detail.file?.reference;
  if (given) {
    const { pointer } = given;
    if (pointer?.kind === 'argv')
      return wrote({ kind: 'token', index: pointer.index, text: `${pointer.before}${value}` });
    if (pointer?.kind === 'file') return wrote({ kind: 'file', path: pointer.path, keyPath: pointer.keyPath, value });
    return cannot(`${option} comes from a config that this launch only names`);
  }
  if (file && file.pointer.kind !== 'fixed') {
    const keyPath = detail.file!.config.values.get(option)?.keyPath ?? keyPathOf(option);
    return wrote({ kind: 'file', path: file.source.path, keyPath, value });
  }
  if (detail.optionsFrom === undefined) return cannot(`the launch has no place for ${option}`);
  return wrote({ kind: 'insert', at: detail.optionsFrom, key: `--${option}`, tokens: [`--${option}`, String(value)] });
}
