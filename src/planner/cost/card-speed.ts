/** How fast a card is, as far as the ratio of two plans depends on it. */
export interface CardSpeed {
  /** Dense 16-bit matrix multiplication with fp32 accumulation, FLOP/s. */
  readonly flops: number;
  /** Device memory, bytes/s. */
  readonly memoryBytes: number;
  /** What collectives of the cards of one machine reach, bytes/s. */
  readonly linkBytes: number;
}

const T = 1e12;

/**
 * A usual card of each compute capability. What counts is arithmetic against memory, which differs little within a generation.
 * Sources: NVIDIA's data sheets and architecture white papers of the V100, T4, A100, RTX 3090 (GA102), RTX 4090 and L40S
 * (AD102), H100 and B200. Links: a fifth of NVLink where boards of the generation are sold with it (what FSDP runs on two
 * A100 show), else PCI Express.
 */
const BY_CAPABILITY: readonly (readonly [capability: number, flops: number, memory: number, link: number])[] = [
  [12.0, 210 * T, 1.79 * T, 0.03 * T],
  [10.0, 2250 * T, 8.0 * T, 0.25 * T],
  [9.0, 989 * T, 3.35 * T, 0.12 * T],
  [8.9, 165 * T, 1.0 * T, 0.015 * T],
  [8.6, 71 * T, 0.94 * T, 0.015 * T],
  [8.0, 312 * T, 2.0 * T, 0.06 * T],
  [7.5, 65 * T, 0.32 * T, 0.008 * T],
  [7.0, 112 * T, 0.9 * T, 0.04 * T],
  [0, 19 * T, 0.73 * T, 0.008 * T],
];

/** Without a known card: one of data centres, of the generation most are rented of. */
const USUAL = { major: 8, minor: 0 } as const;

/** The speed of a card by its compute capability. */
export function cardSpeed(capability: { readonly major: number; readonly minor: number } = USUAL): CardSpeed {
  const number = capability.major + capability.minor / 10;
  const [, flops, memoryBytes, linkBytes] = BY_CAPABILITY.find(([from]) => number >= from)!;
  return { flops, memoryBytes, linkBytes };
}
