import type { Versions } from '../spec/index.ts';

/** What a version of the trainer's libraries does with memory. */
export interface VersionFacts {
  /** The loss copies the logits without their last row; from 4.49 on the labels are shifted. Source: loss/loss_utils.py, before 4.46 each modeling file. */
  readonly shiftsLogits: boolean;
  /** The model's own frame binds the fp32 logits over the 16-bit ones, so that these end; from 4.46 on the loss has a frame of its own. */
  readonly rebindsLogits: boolean;
  /** Experts are modules of their own, called one after the other; stacked weights came with 5.0. */
  readonly loopsExperts: boolean;
  /** 4-bit layers keep their input (bitsandbytes MatMul4Bit up to 0.43.0). */
  readonly keepsQuantisedInputs: boolean;
  /** Accumulation leaves FSDP 2's gradients unreduced, as FSDP 1's: accelerate does so from 1.11 on, of the time of transformers 5. */
  readonly unsyncedFsdp2: boolean;
  /** Checkpoints are read one file at a time, each weight into a copy, and written in files of 5 GB: transformers before 5. */
  readonly smallFiles: boolean;
}

const KNOWN = new WeakMap<Versions, VersionFacts>();

/** Remembered: it is asked several times an estimate, and plans of one launch have their versions in common. */
export function versionFacts(versions: Versions): VersionFacts {
  let facts = KNOWN.get(versions);
  if (!facts) {
    facts = read(versions);
    KNOWN.set(versions, facts);
  }
  return facts;
}

const read = ({ transformers, bitsandbytes }: Versions): VersionFacts => ({
  shiftsLogits: isBefore(transformers, '4.49'),
  rebindsLogits: isBefore(transformers, '4.46'),
  loopsExperts: isBefore(transformers, '5'),
  keepsQuantisedInputs: bitsandbytes !== undefined && isBefore(bitsandbytes, '0.43.1'),
  unsyncedFsdp2: !isBefore(transformers, '5'),
  smallFiles: isBefore(transformers, '5'),
});

/** Whether `version` (`4.48.1`) comes before `other` (`4.50`); text that is not a version counts as the newest. */
export function isBefore(version: string, other: string): boolean {
  const [a, b] = [parts(version), parts(other)];
  if (!a || !b) return false;
  for (let i = 0; i < Math.max(a.length, b.length); i += 1) {
    const difference = (a[i] ?? 0) - (b[i] ?? 0);
    if (difference !== 0) return difference < 0;
  }
  return false;
}

function parts(version: string): number[] | undefined {
  const match = /^v?(\d+(?:\.\d+)*)/.exec(version.trim());
  return match ? match[1]!.split('.').map(Number) : undefined;
}
