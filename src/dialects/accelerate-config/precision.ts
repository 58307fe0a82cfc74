import { type Diagnostic, warning } from '../../core/index.ts';
import { formatOrigin, type MixedPrecision, type Setting } from '../../spec/index.ts';
import { ACCELERATE_DEFAULT } from './keys.ts';
import type { Lookup } from './sharding.ts';

/** Autocast that accelerate hands to what it starts. */
export function readMixedPrecision(lookup: Lookup): {
  readonly setting: Setting<MixedPrecision>;
  readonly diagnostics: readonly Diagnostic[];
} {
  const given = lookup('mixed_precision');
  // The form before 0.4: a switch of its own, which counts where the new key is absent.
  const old = lookup('fp16');
  if (!given && old?.value === true) return { setting: { value: 'fp16', origin: old.origin }, diagnostics: [] };
  if (!given || (given.value === null && given.keyPath === undefined)) {
    return { setting: { value: 'no', origin: ACCELERATE_DEFAULT }, diagnostics: [] };
  }
  const { value, origin } = given;
  const name = String(value ?? 'no').toLowerCase();
  if (name === 'no' || name === 'bf16' || name === 'fp16') return { setting: { value: name, origin }, diagnostics: [] };
  if (value === false) {
    return {
      setting: { value: 'no', origin },
      diagnostics: [
        warning('unquoted-no', 'mixed_precision: no is false in YAML, and accelerate stops at it', {
          location: formatOrigin(origin),
          help: "mixed_precision: 'no'",
        }),
      ],
    };
  }
  const message =
    name === 'fp8' ? 'mixed_precision fp8 is not estimated' : `${name} is no mixed precision that accelerate knows`;
  return {
    setting: { value: null, origin },
    diagnostics: [warning('unknown-value', message, { location: formatOrigin(origin), help: 'bf16, fp16 or no' })],
  };
}
