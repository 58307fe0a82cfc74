import type { Gpu } from './hardware.ts';
import type { MigSlices } from './mig.ts';

/** The cards a process sees, and what is worth saying about the choice. */
export interface VisibleGpus {
  readonly gpus: readonly Gpu[];
  readonly notes: readonly string[];
}

const VARIABLE = 'CUDA_VISIBLE_DEVICES';

/** What an entry names: one card, or why none. */
type Choice = { readonly gpu: Gpu } | { readonly problem: string };

/** As C's strtoul does: the leading digits count (`1gpu` is 1); anything else is no ordinal. */
const leadingInteger = (entry: string): number | undefined => {
  const digits = /^\+?\d+/.exec(entry)?.[0];
  return digits === undefined ? undefined : Number(digits);
};

function chooseByOrdinal(entry: string, gpus: readonly Gpu[]): Choice {
  const ordinal = leadingInteger(entry);
  if (ordinal === undefined) return { problem: `"${entry}" is not a device` };
  const gpu = gpus[ordinal];
  return gpu ? { gpu } : { problem: `there is no device ${ordinal}` };
}

function chooseByUuid(entry: string, candidates: readonly Gpu[]): Choice {
  const matching = candidates.filter(({ uuid }) => uuid.toLowerCase().startsWith(entry.toLowerCase()));
  const exact = matching.find(({ uuid }) => uuid.length === entry.length);
  if (exact ?? matching.length === 1) return { gpu: exact ?? matching[0]! };
  return { problem: matching.length > 1 ? `"${entry}" fits several devices` : `no device is called "${entry}"` };
}

/** The kind of the first entry holds for the whole list: an entry of another kind ends it. */
function chooser(first: string, gpus: readonly Gpu[], slices: MigSlices): (entry: string) => Choice {
  const prefixed = (prefix: string, candidates: readonly Gpu[]) => (entry: string) =>
    entry.toUpperCase().startsWith(prefix)
      ? chooseByUuid(entry, candidates)
      : { problem: `"${entry}" is not a ${prefix}… name like the first entry` };
  if (/^GPU-/i.test(first)) return prefixed('GPU-', gpus);
  if (/^MIG-/i.test(first)) return prefixed('MIG-', [...slices.values()].flat());
  return (entry) => chooseByOrdinal(entry, gpus);
}

function chooseListed(value: string, gpus: readonly Gpu[], slices: MigSlices): VisibleGpus {
  const entries = value.split(',').map((entry) => entry.trim());
  const choose = chooser(entries[0]!, gpus, slices);
  const chosen: Gpu[] = [];
  for (const entry of entries) {
    const choice = choose(entry);
    if ('problem' in choice) {
      const rest = chosen.length === 0 ? 'no GPU is visible' : `only the ${chosen.length} before it count`;
      return { gpus: chosen, notes: [`${VARIABLE}=${value}: ${choice.problem}, so ${rest}`] };
    }
    if (chosen.includes(choice.gpu)) {
      return { gpus: [], notes: [`${VARIABLE}=${value} names a device twice, so CUDA shows none`] };
    }
    chosen.push(choice.gpu);
  }
  return { gpus: chosen, notes: [] };
}

/** CUDA shows a process one slice of cards in MIG mode: the first, unless MIG names choose another. */
function replaceByFirstSlice(gpus: readonly Gpu[], slices: MigSlices): VisibleGpus {
  const whole = gpus.filter((gpu) => !slices.has(gpu.uuid));
  if (whole.length === gpus.length) return { gpus, notes: [] };
  if (whole.length > 0) return { gpus: whole, notes: ['cards in MIG mode are left out beside whole cards'] };
  const first = slices.get(gpus[0]!.uuid)![0]!;
  return { gpus: [first], notes: [`MIG mode is on: a process sees one slice, ${first.name} (${first.uuid})`] };
}

/**
 * Applies `CUDA_VISIBLE_DEVICES` as CUDA and PyTorch do (torch/cuda/__init__.py, `_parse_visible_devices`): ordinals,
 * UUIDs and unambiguous UUID prefixes, MIG names; empty or -1 hides all, the list ends at the first invalid entry, a
 * repeated device hides all.
 */
export function applyVisibleDevices(
  gpus: readonly Gpu[],
  slices: MigSlices,
  environment: Readonly<Record<string, string | undefined>>,
): VisibleGpus {
  const value = environment[VARIABLE]?.trim();
  if (gpus.length === 0) return { gpus, notes: [] };
  if (value === undefined) return withOrderNote(replaceByFirstSlice(gpus, slices), gpus, environment);
  if (value === '' || value === 'NoDevFiles' || /^-\d/.test(value)) {
    return { gpus: [], notes: [`${VARIABLE}=${value === '' ? '""' : value} hides every GPU`] };
  }
  const listed = chooseListed(value, gpus, slices);
  if (/^(GPU|MIG)-/i.test(value)) return listed;
  const shown = replaceByFirstSlice(listed.gpus, slices);
  return withOrderNote({ gpus: shown.gpus, notes: [...listed.notes, ...shown.notes] }, gpus, environment);
}

/** nvidia-smi counts in PCI order, CUDA by default fastest first: with different cards an ordinal can mean another one. */
function withOrderNote(
  visible: VisibleGpus,
  all: readonly Gpu[],
  environment: Readonly<Record<string, string | undefined>>,
): VisibleGpus {
  const names = [...new Set(all.map(({ name }) => name))];
  if (names.length < 2 || environment.CUDA_DEVICE_ORDER === 'PCI_BUS_ID') return visible;
  const note = `the cards differ (${names.join(', ')}) and CUDA_DEVICE_ORDER is not PCI_BUS_ID: CUDA may number them differently from nvidia-smi`;
  return { ...visible, notes: [...visible.notes, note] };
}
