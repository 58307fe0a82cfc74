import { distance } from 'fastest-levenshtein';
import { error, fail, formatBytes, GiB, MiB, ok, parseBytes, type Result, TiB } from '../core/index.ts';
import { type CatalogueGpu, GPU_CATALOGUE } from './gpu-catalogue.ts';
import type { Gpu } from './hardware.ts';

const FORMS = 'name a card (--gpu rtx3090, --gpu a100-80gb:8) or its size (--gpu 24GiB, --gpu 80GiB:2)';
/** Below, CUDA's own context does not fit; above, there is no such card. */
const SIZE_LIMITS = { least: 256 * MiB, most: 2 * TiB };
const MOST_CARDS = 1024;
/** A bare number up to here is meant as a size in GiB. */
const LARGEST_GIB = 512;

interface SpokenName {
  /** Words and numbers that tell cards apart, sorted: `rtx3090ti` → `3090 ti`. */
  readonly words: readonly string[];
  readonly sizeGb: number | undefined;
}

/** Words that say how a card is built or branded, not which it is; `quadro` and `titan` do tell cards apart. */
const NOISE =
  /nvidia|geforce|[rg]tx|tesla|generation|workstation|server|edition|max-?q|graphics|\bgpu\b|sxm\d?|pcie|hbm\d?e?|blackwell/g;

/** Words a short name may leave out: `rtx 6000` could be three cards, `a100` two. */
const QUALIFIERS = new Set(['ada', 'laptop', 'nvl', 'pro', 'quadro', 'sff']);

function parseName(text: string): SpokenName {
  const plain = text
    .toLowerCase()
    .replace(/mobile/g, 'laptop')
    .replace(NOISE, ' ')
    .replace(/(super|laptop|ada\b)/g, ' $1 ');
  const size = /(\d+)\s*-?\s*g(?:i?b)?(?![a-z0-9])/.exec(plain.replace(/\ba10g\b/g, 'a10_'));
  const rest = size ? plain.replace(size[0], ' ') : plain;
  return { words: (rest.match(/[a-z]+|\d+/g) ?? []).sort(), sizeGb: size ? Number(size[1]) : undefined };
}

const NAMES: readonly (SpokenName & { readonly gpu: CatalogueGpu })[] = GPU_CATALOGUE.map((gpu) => ({
  ...parseName(gpu.id),
  sizeGb: gpu.sizeGb,
  gpu,
}));

/**
 * The smallest whole card of the catalogue with so much memory, bytes, as one types it; of equal ones the first listed. undefined:
 * there is none.
 */
export function smallestGpuWith(bytes: number): string | undefined {
  const isSlice = ({ id }: CatalogueGpu): boolean => /\dg\.\d/.test(id);
  const [card] = GPU_CATALOGUE.filter((gpu) => !isSlice(gpu) && gpu.memoryMiB * MiB >= bytes).sort(
    (a, b) => a.memoryMiB - b.memoryMiB,
  );
  return card && typedGpuName(card);
}

const isSame = (a: readonly string[], b: readonly string[]): boolean => a.join(' ') === b.join(' ');
const leavesOutQualifiers = (short: readonly string[], full: readonly string[]): boolean =>
  short.length > 0 &&
  short.every((word) => full.includes(word)) &&
  full.every((word) => short.includes(word) || QUALIFIERS.has(word));

/** `a100-80gb`: a card of the catalogue as one types it after `--gpu`. */
export const typedGpuName = ({ id, sizeGb }: CatalogueGpu): string => {
  const name = id.replace(/ /g, '-');
  return GPU_CATALOGUE.filter((other) => other.id === id).length > 1 ? `${name}-${sizeGb}gb` : name;
};

/** Every catalogue card that `text` can mean: one, several when it is ambiguous, none. */
function matchName(text: string): CatalogueGpu[] {
  const { words, sizeGb } = parseName(text);
  const sized = NAMES.filter((name) => sizeGb === undefined || name.sizeGb === sizeGb);
  const exact = sized.filter((name) => isSame(words, name.words));
  const found = exact.length > 0 ? exact : sized.filter((name) => leavesOutQualifiers(words, name.words));
  return found.map(({ gpu }) => gpu);
}

/** Compute capability of a card by the driver's name, where the driver itself does not tell (before 510). */
export function computeCapabilityOf(name: string): Gpu['computeCapability'] {
  const capabilities = new Set(matchName(name).map((gpu) => gpu.computeCapability));
  const [only] = [...capabilities];
  return capabilities.size === 1 ? capabilityIn(only) : undefined;
}

/** `8.6` → its parts; undefined stays so. */
function capabilityIn(text: string | undefined): Gpu['computeCapability'] {
  if (text === undefined) return undefined;
  const [major, minor] = text.split('.').map(Number);
  return { major: major!, minor: minor! };
}

function closestNames(text: string): string[] {
  const plain = (name: string): string => parseName(name).words.join('');
  const asked = plain(text);
  const number = parseName(text).words.find((word) => /^\d{3,}$/.test(word));
  return (
    [...new Set(GPU_CATALOGUE.map(typedGpuName))]
      .map((name) => ({ name, distance: distance(asked, plain(name)) }))
      .map((each) => ({ ...each, sameNumber: number !== undefined && parseName(each.name).words.includes(number) }))
      .filter((each) => each.sameNumber || each.distance <= Math.max(1, Math.floor(asked.length / 3)))
      // `4090 ti` is more likely a 4090 than a 3090 Ti.
      .sort((a, b) => Number(b.sameNumber) - Number(a.sameNumber) || a.distance - b.distance)
      .slice(0, 3)
      .map(({ name }) => name)
  );
}

interface Card {
  readonly name: string;
  readonly totalBytes: number;
  readonly computeCapability: Gpu['computeCapability'];
}

function resolveSize(text: string): Result<Card> {
  const bytes = parseBytes(text);
  const { least, most } = SIZE_LIMITS;
  if (bytes === undefined || bytes < least || bytes > most) {
    return fail(
      error(
        'bad-gpu',
        `--gpu ${text} is not the size of a GPU: it must lie between ${formatBytes(least)} and ${formatBytes(most)}`,
        {
          help: FORMS,
        },
      ),
    );
  }
  return ok({ name: `GPU with ${formatBytes(bytes)}`, totalBytes: bytes, computeCapability: undefined });
}

function resolveCard(text: string): Result<Card> {
  // A slice's name holds two sizes, so it must be typed as it is listed.
  const listed = GPU_CATALOGUE.find((card) => typedGpuName(card) === text.toLowerCase());
  const found = listed ? [listed] : matchName(text);
  if (found.length === 1) {
    const [gpu] = found;
    return ok({
      name: typedGpuName(gpu!),
      totalBytes: gpu!.memoryMiB * MiB,
      computeCapability: capabilityIn(gpu!.computeCapability),
    });
  }
  if (found.length > 1) {
    const choices = found.map((gpu) => `${typedGpuName(gpu)} (${((gpu.memoryMiB * MiB) / GiB).toFixed(1)} GiB)`);
    return fail(
      error('ambiguous-gpu', `"${text}" names several cards: ${choices.join(', ')}`, {
        help: `say which: --gpu ${typedGpuName(found[0]!)}`,
      }),
    );
  }
  if (/^\d+(\.\d+)?$/.test(text) && Number(text) <= LARGEST_GIB) {
    return fail(
      error('unknown-gpu', `no card is called "${text}"`, { help: `did you mean its size? --gpu ${text}GiB` }),
    );
  }
  const closest = closestNames(text);
  const help = closest.length > 0 ? `did you mean ${closest.join(', ')}? otherwise ${FORMS}` : FORMS;
  return fail(error('unknown-gpu', `no card is called "${text}"`, { help }));
}

/**
 * Reads `--gpu`: `NAME`, `NAME:COUNT`, `SIZE` or `SIZE:COUNT` (`rtx3090`, `a100-80gb:8`, `10GiB`, `24GiB:2`).
 * Names ignore case, spaces, dashes and the maker's prefixes. Errors: `unknown-gpu`, `ambiguous-gpu`, `bad-gpu`.
 */
export function resolveGpuName(text: string): Result<{ gpus: Gpu[] }> {
  const [, name = '', countText] = /^([^:]*)(?::(.*))?$/s.exec(text.trim()) ?? [];
  const count = countText === undefined ? 1 : /^\d+$/.test(countText.trim()) ? Number(countText) : Number.NaN;
  if (!(count >= 1 && count <= MOST_CARDS)) {
    return fail(
      error('bad-gpu', `--gpu ${text}: the number of cards after ":" must lie between 1 and ${MOST_CARDS}`, {
        help: FORMS,
      }),
    );
  }
  if (name.trim() === '') return fail(error('bad-gpu', `--gpu "${text}" names no card`, { help: FORMS }));
  const isSize = /^\s*[-+]?\d+(\.\d+)?\s*([kmgt]i?b|bytes?|b)\s*$/i.test(name);
  const card = isSize ? resolveSize(name.trim()) : resolveCard(name.trim());
  if (!card.ok) return card;
  const { totalBytes } = card.value;
  const gpus = Array.from({ length: count }, (_, index) => ({
    index,
    uuid: `planned-${index}`,
    ...card.value,
    usedBytes: 0,
    freeBytes: totalBytes,
  }));
  return ok({ gpus });
}
