import { type Diagnostic, fail, note, ok, type Result } from '../../core/index.ts';
import { type AccelerateConfig, readAccelerateConfig } from '../accelerate-config/index.ts';
import type { ReadContext } from '../contract.ts';
import type { FileReference, Options, Position } from '../dialect.ts';

export interface ConfigFile {
  readonly config: AccelerateConfig;
  readonly reference: FileReference;
  readonly diagnostics: readonly Diagnostic[];
}

/**
 * The config file that the launch uses: the one it names, else the default one, which accelerate applies without a word
 * wherever it exists (unless with --cpu). Source: accelerate/commands/launch.py `_validate_launch_command`.
 */
export function readConfigFile(
  options: Options,
  position: Position,
  context: ReadContext,
): Result<ConfigFile | undefined> {
  const named = options.get('config_file');
  if (named) {
    const pointer = named.pointer ?? { kind: 'fixed', reason: 'the launch does not name it in a place of its own' };
    return readFrom(String(named.value), pointer, [], context);
  }
  if (options.has('cpu')) return ok(undefined);
  const path = defaultConfigPath(position, context);
  if (context.files.info(path)?.kind !== 'file') return ok(undefined);
  const silently = note(
    'accelerate-default-config',
    'accelerate launch applies this file, which the command does not name',
    {
      location: path,
      help: 'name a file with --config_file, or rename this one',
    },
  );
  const pointer = { kind: 'fixed', reason: 'it is the default config of accelerate, which no command names' } as const;
  return readFrom(path, pointer, [silently], context);
}

function readFrom(
  path: string,
  pointer: FileReference['pointer'],
  diagnostics: readonly Diagnostic[],
  context: ReadContext,
): Result<ConfigFile> {
  const source = context.source(path);
  if (!source.ok) return source;
  const config = readAccelerateConfig(source.value);
  if (!config.ok) return fail(...config.error);
  const format = path.endsWith('.json') ? 'json' : 'yaml';
  return ok({ config: config.value, reference: { source: source.value, format, pointer }, diagnostics });
}

function defaultConfigPath({ environment }: Position, { homeDir }: ReadContext): string {
  const home = (path: string): string => path.replace(/^~(?=\/|$)/, homeDir);
  const hub = environment.HF_HOME || `${environment.XDG_CACHE_HOME || '~/.cache'}/huggingface`;
  return `${home(hub)}/accelerate/default_config.yaml`;
}
