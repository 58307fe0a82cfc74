import { type Diagnostic, warning } from '../core/index.ts';
import { formatOrigin, type Setting } from '../spec/index.ts';
import { orNull, toBoolean, toText } from './hf-argparser/convert.ts';
import type { SettingReader } from './hf-argparser/settings.ts';

/** Optimizer classes by the name of transformers that has the same states. */
const CLASSES: Readonly<Record<string, string>> = {
  'torch.optim.SGD': 'sgd',
  'torch.optim.Adagrad': 'adagrad',
  'torch.optim.RMSprop': 'rmsprop',
  'bitsandbytes.optim.PagedAdamW': 'paged_adamw_32bit',
  'bitsandbytes.optim.PagedAdamW32bit': 'paged_adamw_32bit',
  'bitsandbytes.optim.PagedAdamW8bit': 'paged_adamw_8bit',
  'bitsandbytes.optim.PagedAdam8bit': 'paged_adamw_8bit',
  'bitsandbytes.optim.AdamW8bit': 'adamw_bnb_8bit',
  'bitsandbytes.optim.Adam8bit': 'adamw_bnb_8bit',
  'bitsandbytes.optim.Lion8bit': 'lion_8bit',
  'bitsandbytes.optim.PagedLion8bit': 'paged_lion_8bit',
  'bitsandbytes.optim.AdEMAMix8bit': 'ademamix_8bit',
  'bitsandbytes.optim.PagedAdEMAMix8bit': 'paged_ademamix_8bit',
  'torchao.optim.AdamW8bit': 'adamw_torch_8bit',
  'torchao.optim.AdamW4bit': 'adamw_torch_4bit',
  'torchao.optim.AdamWFp8': 'adamw_torch_8bit',
  'schedulefree.AdamWScheduleFree': 'schedule_free_adamw',
};

/** torchao moved its optimizers; bitsandbytes has each class in a module of its own, too. */
const plainName = (component: string): string =>
  component
    .replace(/^torchao\.prototype\.low_bit_optim\./, 'torchao.optim.')
    .replace(/^torchao\.optim\.\w+\.(?=[A-Z])/, 'torchao.optim.')
    .replace(/^bitsandbytes\.optim\.\w+\.(?=[A-Z])/, 'bitsandbytes.optim.')
    .replace(/^torch\.optim\.\w+\.(?=[A-Z])/, 'torch.optim.');

/** `optimizer` of a class path and its arguments; an Adam of PyTorch is the foreach one unless it is `fused`. */
export function readOptimizerClass(
  reader: SettingReader,
  classKey: string,
  fusedKey: string,
  otherwise: Setting<string>,
): { readonly setting: Setting<string>; readonly diagnostics: readonly Diagnostic[] } {
  const given = reader.given([classKey], orNull(toText));
  const fused = reader.given([fusedKey], orNull(toBoolean));
  if (!given?.value) return { setting: otherwise, diagnostics: [] };
  const { origin } = given;
  const name = plainName(given.value);
  if (/^torch\.optim\.AdamW?$/.test(name)) {
    return {
      setting: fused?.value ? { value: 'adamw_torch_fused', origin } : { value: 'adamw_torch', origin },
      diagnostics: [],
    };
  }
  const value = CLASSES[name];
  if (value) return { setting: { value, origin }, diagnostics: [] };
  return {
    setting: { value: null, origin },
    diagnostics: [
      warning('not-estimated', `optimizer ${given.value} is not estimated`, { location: formatOrigin(origin) }),
    ],
  };
}

/** The class that has the states of an optimizer of transformers; `fused`: undefined where its constructor takes no such word. */
export function classOf(optim: string): { readonly path: string; readonly fused: boolean | undefined } | undefined {
  switch (optim) {
    case 'adamw_torch':
      return { path: 'torch.optim.AdamW', fused: false };
    case 'adamw_torch_fused':
      return { path: 'torch.optim.AdamW', fused: true };
    default: {
      const path = Object.keys(CLASSES).find((name) => CLASSES[name] === optim);
      return path === undefined ? undefined : { path, fused: undefined };
    }
  }
}
