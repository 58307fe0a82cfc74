import { error, fail, ok, type Result } from '../../core/index.ts';
import { formatOrigin } from '../../spec/index.ts';
import { readAccelerateOptions } from '../accelerate/index.ts';
import type { ReadContext } from '../contract.ts';
import type { Options, Position, Reading } from '../dialect.ts';
import type { Grammar } from '../hf-argparser/grammar.ts';
import type { SettingReader } from '../hf-argparser/settings.ts';
import type { Found } from '../hf-argparser/values.ts';
import { ACCELERATE_CONFIGS } from './accelerate-configs.ts';

/** What `trl COMMAND` hands to `accelerate launch`, and which keys went there. */
export interface TrlLaunch extends Reading {
  readonly taken: readonly string[];
}

/**
 * Keys and flags that the trainer's parser does not know go to `accelerate launch`; `accelerate_config` names a file or a
 * config that TRL ships. Source: trl/cli/commands/training.py, trl/cli/accelerate_config.py.
 */
export function readTrlLaunch(
  reader: SettingReader,
  grammar: Grammar,
  position: Position,
  context: ReadContext,
): Result<TrlLaunch> {
  const passed = reader.values.all().filter((found) => !grammar.fields.has(found.key) && !reader.noted.has(found.key));
  const options = new Map<string, Options extends ReadonlyMap<string, infer Option> ? Option : never>();
  for (const found of passed) {
    if (found.key === 'accelerate_config') {
      const named = namedConfig(found, context);
      if (!named.ok) return named;
      for (const [key, option] of named.value) options.set(key, option);
    }
  }
  for (const found of passed) {
    if (found.key !== 'accelerate_config')
      options.set(found.key, { value: found.raw, origin: found.origin, ...pointerOf(found, reader) });
  }
  const read = readAccelerateOptions(options, position, context);
  if (!read.ok) return read;
  const left = new Set((read.value.unread ?? []).map((each) => each.key));
  return ok({ ...read.value, unread: [], taken: passed.map((found) => found.key).filter((key) => !left.has(key)) });
}

function namedConfig(found: Found, context: ReadContext): Result<Options> {
  const name = String(found.raw);
  const absolute = name.startsWith('/') ? name : `${context.cwd}/${name}`;
  if (context.files.info(absolute)?.kind === 'file') {
    return ok(new Map([['config_file', { value: name, origin: found.origin, ...pointerAt(found) }]]));
  }
  const builtin = ACCELERATE_CONFIGS[name];
  if (!builtin) {
    return fail(
      error('unknown-accelerate-config', `${name} is neither a file nor an accelerate config that TRL ships`, {
        location: formatOrigin(found.origin),
        help: `name one of ${Object.keys(ACCELERATE_CONFIGS).join(', ')}, or a file`,
      }),
    );
  }
  return ok(new Map(Object.entries(builtin).map(([key, value]) => [key, { value, origin: found.origin }])));
}

function pointerAt(found: Found): { pointer?: { kind: 'argv'; index: number; before: string } } {
  if (found.place.kind !== 'flag') return {};
  const { flag } = found.place;
  const before = flag.style === 'equals' ? `${flag.spelling}=` : '';
  return { pointer: { kind: 'argv', index: flag.values[0]?.index ?? flag.index, before } };
}

const pointerOf = (found: Found, reader: SettingReader): ReturnType<typeof pointerAt> | object =>
  found.place.kind === 'file'
    ? { pointer: { kind: 'file', path: reader.values.file!.source.path, keyPath: [found.key] } }
    : pointerAt(found);
