/** Exit codes of our own; the trainer's pass through `run`. Scripts rely on these numbers. */
export const EXIT = {
  fits: 0,
  usage: 2,
  unreadableConfig: 3,
  fitsAfterRewrite: 10,
  doesNotFit: 11,
  cannotEstimate: 12,
  outOfVram: 13,
  outOfHostRam: 14,
  nothingRecognised: 15,
  ownFault: 70,
  notExecutable: 126,
  commandNotFound: 127,
} as const;

/** Several configs: the worst decides. */
const WORST_FIRST: readonly number[] = [
  EXIT.unreadableConfig,
  EXIT.cannotEstimate,
  EXIT.doesNotFit,
  EXIT.fitsAfterRewrite,
  EXIT.fits,
];

export const worstExitCode = (codes: readonly number[]): number =>
  WORST_FIRST.find((code) => codes.includes(code)) ?? EXIT.fits;
