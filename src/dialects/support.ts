import { error, fail, ok, type Result } from '../core/index.ts';
import type { SettingName, TrainingSpec } from '../spec/index.ts';
import { applyEdits } from './apply-edits.ts';
import type { DialectKind, LaunchReading, ReadContext } from './contract.ts';
import type { Dialect, Example, Layer, StackView } from './dialect.ts';
import { NATIVE_SIGN } from './native/claim-file.ts';
import { NATIVE_EXAMPLE } from './native/example.ts';
import { readNativeConfig } from './native/read.ts';
import { probeValues } from './probe-values.ts';
import { readLaunch } from './read-launch.ts';
import { REGISTRY } from './registry.ts';
import { splitCommand } from './split-command.ts';

/** A setting that is read, and whether it can be changed. */
export interface SettingSupport {
  readonly setting: SettingName;
  /** true: it can be told another value; a clause: why not; undefined: another layer of the launch has it. */
  readonly write: true | string | undefined;
}

/** One dialect as `snug dialects` shows it: what its own examples give when they are read and written. */
export interface DialectSupport {
  readonly id: string;
  readonly kind: DialectKind | 'wrapper' | 'native';
  readonly title: string;
  readonly docs: string;
  /** How a file given alone is known. */
  readonly fileSign: string | undefined;
  readonly commands: readonly string[];
  /** Why nothing is written, one clause. */
  readonly readOnly: string | undefined;
  /** In the order of the spec; empty for wrappers. */
  readonly settings: readonly SettingSupport[];
}

/** Every dialect of the registry with what it reads and writes, found by reading its examples and trying each setting on them. */
export function supportedDialects(): readonly DialectSupport[] {
  return [nativeSupport(), ...REGISTRY.filter((dialect) => dialect.id !== 'program').map(supportOf)];
}

function supportOf(dialect: Dialect): DialectSupport {
  const found = new Map<SettingName, SettingSupport>();
  for (const example of dialect.examples ?? []) {
    const reading = readExample(example);
    const layer = reading.ok ? layerOf(dialect, reading.value) : undefined;
    if (!reading.ok || !layer) throw new Error(`the example of ${dialect.id} is not read: ${example.command}`);
    note(found, settingsOf(layer), reading.value.spec, (setting, to) =>
      writes(layer, setting, to, reading.value.internals!.view),
    );
  }
  return {
    id: dialect.id,
    kind: dialect.kind,
    title: dialect.title,
    docs: dialect.docs,
    fileSign: dialect.claimFile ? dialect.fileSign : undefined,
    commands: (dialect.examples ?? []).map((example) => example.command),
    readOnly: dialect.readOnly,
    settings: inOrder(found),
  };
}

function nativeSupport(): DialectSupport {
  const found = new Map<SettingName, SettingSupport>();
  const config = readNativeConfig('snug.yaml', exampleContext(NATIVE_EXAMPLE));
  if (!config.ok) throw new Error(`the native example is not read: ${config.error[0]!.message}`);
  const { reading } = config.value;
  note(found, Object.keys(reading.spec) as SettingName[], reading.spec, (setting, to) => reading.writable(setting, to));
  return {
    id: 'native',
    kind: 'native',
    title: 'snug.yaml, for any trainer',
    docs: 'README.md',
    fileSign: NATIVE_SIGN,
    commands: [NATIVE_EXAMPLE.command],
    readOnly: undefined,
    settings: inOrder(found),
  };
}

type Write = (setting: SettingName, to: never) => true | string | undefined;

/** Adds what one example shows; a setting that some example can write is writable. */
function note(
  found: Map<SettingName, SettingSupport>,
  read: readonly SettingName[],
  spec: TrainingSpec,
  write: Write,
): void {
  for (const [name, values] of Object.entries(probeValues(spec))) {
    const setting = name as SettingName;
    const answers = values.map((to) => write(setting, to as never));
    const answer = answers.includes(true) ? true : answers.find((each) => each !== undefined);
    const before = found.get(setting);
    const written = before?.write === true ? true : (answer ?? before?.write);
    // What can be written reads back, or the contract test fails.
    if (before || written === true || read.includes(setting)) found.set(setting, { setting, write: written });
  }
}

const inOrder = (found: ReadonlyMap<SettingName, SettingSupport>): readonly SettingSupport[] =>
  [...found.values()].sort((a, b) => a.setting.localeCompare(b.setting));

/** What this layer says: its settings, and `distributed` where it starts processes or shards. */
function settingsOf({ reading }: Layer): readonly SettingName[] {
  const own = Object.keys(reading.spec) as SettingName[];
  return reading.processes || reading.sharding ? [...own, 'distributed'] : own;
}

/** Whether this very layer can tell the launch `to`; a value that stands there already proves nothing. */
function writes(layer: Layer, setting: SettingName, to: unknown, view: StackView): true | string | undefined {
  const written = layer.dialect.write?.(layer, setting, to, view);
  if (!written) return undefined;
  if (!written.ok) return written.reason;
  if (written.edits.length === 0) return undefined;
  const applied = applyEdits(view, written.edits, '/nowhere');
  return applied.ok ? true : applied.error[0]!.message;
}

/** The layer of `dialect` in a launch that was read; of an engine that its launcher reads, the launcher's. */
export function layerOf(dialect: Dialect, reading: LaunchReading): Layer | undefined {
  const layers = reading.internals?.view.layers ?? [];
  return (
    layers.find((layer) => layer.dialect === dialect) ??
    layers.find((layer) => layer.reading.engines?.some((use) => use.dialect === dialect.id))
  );
}

/** Reads an example of a dialect as if its files stood in the working directory. */
export function readExample(example: Example): Result<LaunchReading> {
  const argv = splitCommand(example.command);
  return argv.ok ? readLaunch(argv.value, exampleContext(example)) : argv;
}

/** A machine with nothing but the example's files, and two GPUs. */
export function exampleContext({ files = {} }: Example): ReadContext {
  const textOf = (path: string): string | undefined => files[path.replace(/^\/example\//, '')];
  return {
    cwd: '/example',
    homeDir: '/home/example',
    environment: {},
    visibleGpus: 2,
    source: (path) => {
      const text = textOf(path);
      return text === undefined
        ? fail(error('unreadable-file', `the example has no ${path}`, { location: path }))
        : ok({ path, absolutePath: path.startsWith('/') ? path : `/example/${path}`, text });
    },
    files: {
      info: (path) => {
        const text = textOf(path);
        return text === undefined ? undefined : { kind: 'file', sizeBytes: text.length, modifiedMs: 0 };
      },
      readText: (path) => {
        const text = textOf(path);
        return text === undefined ? { ok: false, code: 'ENOENT' } : { ok: true, value: text };
      },
      readBytes: () => ({ ok: false, code: 'ENOENT' }),
      list: () => [],
      volume: () => undefined,
    },
  };
}
