import { type SettingName, settingKey } from '../spec/index.ts';
import { applyEdits } from './apply-edits.ts';
import type { LaunchInternals, LaunchReading } from './contract.ts';
import type { Layer, SourceEdit, StackView, Written } from './dialect.ts';
import { ALLOCATOR_NAMES, mergeAllocatorConf } from './environment.ts';
import { cannot, wrote } from './hf-argparser/written.ts';

type Environment = Readonly<Record<string, string | undefined>>;

/** Asks the layers who can tell the launch `setting`, the trainer first; edits of the one that answers. */
export function editSetting(view: StackView, environment: Environment, setting: SettingName, to: unknown): Written {
  if (setting === 'allocatorConf') return editAllocator(view, environment, String(to));
  const own = setting === 'optim' ? ownOptimizer(view) : undefined;
  if (own) return cannot(own);
  const rank = { trainer: 0, engine: 1, launcher: 2, wrapper: 3 } as const;
  const layers = [...view.layers].reverse().sort((a, b) => rank[a.dialect.kind] - rank[b.dialect.kind]);
  for (const layer of layers) {
    const written = layer.dialect.write?.(layer, setting, to, view);
    if (written?.ok) return wrote(...written.edits, ...followers(view, layer, setting, to));
    if (written) return written;
  }
  const trainer = view.layers.find((layer) => layer.dialect.kind === 'trainer');
  return cannot(
    `${trainer ? trainer.dialect.title : 'a trainer that is not known here'} cannot be told ${settingKey(setting)}`,
  );
}

/** DeepSpeed takes the optimizer of its own config, whatever the trainer is told. */
function ownOptimizer({ layers }: StackView): string | undefined {
  const engine = layers.find(({ dialect, reading }) => dialect.kind === 'engine' && reading.spec.optim);
  return engine && `the ${engine.dialect.title} brings its own optimizer`;
}

const followers = (view: StackView, writer: Layer, setting: SettingName, to: unknown): readonly SourceEdit[] =>
  view.layers.flatMap((layer) => (layer === writer ? [] : (layer.dialect.follow?.(layer, setting, to) ?? [])));

/** `writable` of a reading: the very edits that `writeLaunch` would make, tried on the texts and thrown away. */
export function writableIn(internals: LaunchInternals): LaunchReading['writable'] {
  const answers = new Map<string, true | string>();
  return (setting, to, together) => {
    const key = `${setting} ${JSON.stringify([to, together])}`;
    const known = answers.get(key);
    if (known !== undefined) return known;
    const wanted = together && new Map(Object.entries(together) as [SettingName, unknown][]);
    const answer = tryOut(internals, internals.edit(setting, to, wanted));
    answers.set(key, answer);
    return answer;
  };
}

function tryOut(internals: LaunchInternals, written: Written): true | string {
  if (!written.ok) return written.reason;
  const applied = applyEdits(internals.view, written.edits, '/nowhere');
  return applied.ok ? true : applied.error[0]!.message;
}

/**
 * Adds to the allocator setting where it stands: an assignment of the command, the trainer's own `env:` map, else the
 * environment. Where only the newer name is set the older one is set too, since PyTorch before 2.12 may read just one.
 */
function editAllocator(view: StackView, environment: Environment, added: string): Written {
  const set = ALLOCATOR_NAMES.filter((name) => environment[name]);
  const merged = mergeAllocatorConf(environment[set[0] ?? 'PYTORCH_CUDA_ALLOC_CONF'], added);
  if (set.length > 0 && set.every((name) => environment[name] === merged)) return wrote();
  const names = new Set<string>([...set, 'PYTORCH_CUDA_ALLOC_CONF']);
  return wrote(...[...names].map((name) => editVariable(view, name, merged)));
}

function editVariable(view: StackView, name: string, value: string): SourceEdit {
  const program = view.layers.find((layer) => layer.dialect.kind !== 'wrapper')?.claim.from ?? view.argv.length;
  const index = view.argv.findLastIndex((token, at) => at < program && token.startsWith(`${name}=`));
  if (index >= 0) return { kind: 'token', index, text: `${name}=${value}` };
  for (const { reading } of view.layers) {
    const file = reading.files?.find((each) => each.format === 'yaml');
    if (file && reading.envFromFile && reading.env?.[name] !== undefined) {
      return { kind: 'file', path: file.source.path, keyPath: [...reading.envFromFile, name], value };
    }
  }
  return { kind: 'env', name, value };
}
