import { ok, type Ports, type Result } from '../core/index.ts';
import { computeCapabilityOf, resolveGpuName } from './gpu-name.ts';
import type { Gpu, Hardware, HostMemory } from './hardware.ts';
import { readHostMemory } from './host-memory.ts';
import { readMigSlices } from './mig.ts';
import { queryGpus } from './nvidia-smi.ts';
import { type AmdReport, queryAmdGpus } from './rocm-smi.ts';
import { applyVisibleDevices } from './visible-devices.ts';

export interface DetectOptions {
  /** `--gpu`: plan for this card instead of asking the driver. */
  readonly gpu?: string;
  /** Folder the run writes to; its volume is measured. Default: the working directory. */
  readonly outputDir?: string;
  /** Environment of the launch (its own variables over ours); decides CUDA_VISIBLE_DEVICES. Default: `ports.environment`. */
  readonly environment?: Readonly<Record<string, string | undefined>>;
}

type Cards = Pick<Hardware, 'gpus' | 'source' | 'notes'>;

/** Cards on the host's own memory, by name: a discrete card whose figures are lost must not pass for one. */
const INTEGRATED = /\b(GB10|N1X|Orin|Thor|Xavier|Tegra)\b/i;

/** Gives an integrated card the host's figures. Available memory counts, not free: page cache is given up on demand. */
function shareHostMemory(gpu: Gpu, host: HostMemory | undefined): Gpu {
  if (gpu.totalBytes !== undefined || !host || !INTEGRATED.test(gpu.name)) return gpu;
  const { totalBytes, availableBytes } = host;
  return {
    ...gpu,
    totalBytes,
    usedBytes: totalBytes - availableBytes,
    freeBytes: availableBytes,
    sharesHostMemory: true,
  };
}

/** What PyTorch for ROCm looks at, the first that is set: HIP's own names, then CUDA's, which it takes as well. */
const ROCM_VISIBLE = ['HIP_VISIBLE_DEVICES', 'CUDA_VISIBLE_DEVICES', 'ROCR_VISIBLE_DEVICES'];

function amdCards(report: AmdReport, environment: Readonly<Record<string, string | undefined>>): Cards {
  const variable = ROCM_VISIBLE.find((name) => environment[name] !== undefined);
  const value = variable && environment[variable];
  const visible = applyVisibleDevices(report.gpus, new Map(), {
    CUDA_VISIBLE_DEVICES: value,
    CUDA_DEVICE_ORDER: 'PCI_BUS_ID',
  });
  const notes = visible.notes.map((note) =>
    note.replaceAll('CUDA_VISIBLE_DEVICES', variable ?? 'CUDA_VISIBLE_DEVICES'),
  );
  return { gpus: visible.gpus, source: report.source, notes: [...report.notes, ...notes] };
}

async function measureCards(
  ports: Ports,
  environment: Readonly<Record<string, string | undefined>>,
  host: HostMemory | undefined,
): Promise<Cards> {
  const report = await queryGpus(ports);
  const all = report.gpus.map((gpu) =>
    shareHostMemory({ ...gpu, computeCapability: gpu.computeCapability ?? computeCapabilityOf(gpu.name) }, host),
  );
  const visible = applyVisibleDevices(all, await readMigSlices(ports, all), environment);
  const unknown = visible.gpus.filter(({ totalBytes }) => totalBytes === undefined);
  const shared = visible.gpus.filter(({ sharesHostMemory }) => sharesHostMemory);
  const amd = all.length === 0 && ports.files.info('/dev/kfd') !== undefined ? await queryAmdGpus(ports) : undefined;
  if (amd && amd.gpus.length > 0) return amdCards(amd, environment);
  const notes = [
    ...report.notes,
    ...(amd ? [...amd.notes, 'there is an AMD GPU, but no tool to ask it: plan for it by its size, --gpu 192GiB'] : []),
    ...visible.notes,
    ...unknown.map(({ index, name }) => `the driver does not tell the memory of GPU ${index} (${name})`),
    ...shared.map(({ index, name }) => `GPU ${index} (${name}) uses the host's memory: one budget for both`),
  ];
  return { gpus: visible.gpus, source: all.length > 0 ? 'nvidia-smi' : 'none', notes };
}

/**
 * What this machine (or the card named with `--gpu`) gives a run. Fails only on a bad `--gpu`; whatever cannot be
 * measured is undefined, with a note.
 */
export async function detectHardware(ports: Ports, options: DetectOptions = {}): Promise<Result<Hardware>> {
  const host = await readHostMemory(ports);
  const planned = options.gpu === undefined ? undefined : resolveGpuName(options.gpu);
  if (planned && !planned.ok) return planned;
  const cards: Cards = planned
    ? { gpus: planned.value.gpus, source: 'planned', notes: [] }
    : await measureCards(ports, options.environment ?? ports.environment, host);
  return ok({
    ...cards,
    notes: host ? cards.notes : [...cards.notes, 'the memory of this host cannot be read'],
    host,
    sharedMemory:
      ports.platform === 'linux' && ports.files.info('/dev/shm') ? ports.files.volume('/dev/shm') : undefined,
    disk: ports.files.volume(options.outputDir ?? ports.cwd),
  });
}
