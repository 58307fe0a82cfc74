import { basename, join } from 'node:path';
import { distance } from 'fastest-levenshtein';
import { error, fail, ok, type Ports, type Result } from '../core/index.ts';
import { readConfigFile } from './config-file.ts';
import { downloadConfig } from './download-config.ts';
import { findSnapshot, hubCacheFolder } from './hub-cache.ts';
import type { LocatedModel } from './located.ts';
import { findInModelScopeCache } from './modelscope-cache.ts';
import { resolvePath } from './resolve-path.ts';
import { measureCheckpoint } from './safetensors.ts';

export interface LocateOptions {
  /** Folder that a relative path is taken from; default: the working directory. */
  readonly cwd?: string;
  /** Branch, tag or commit on the Hub; default `main`. */
  readonly revision?: string;
}

const FOLDER = 'point at a folder with its config.json: model: FOLDER, or --model FOLDER';
const WAYS_OUT = `${FOLDER}; or let snug fetch it with --online`;

/** An adapter can name a base that is itself an adapter folder; more levels than this are a circle. */
const MOST_ADAPTERS = 4;

/** One search, handed down the places it looks through. */
interface Search {
  readonly name: string;
  readonly ports: Ports;
  readonly cwd: string;
  readonly revision: string;
  readonly depth: number;
}

/** A place looked through in vain; `odd` ones are worth saying even where another place has the model. */
interface Looked {
  readonly text: string;
  readonly odd: boolean;
}

/** A place either answers (found, or broken), or adds to what was looked through. */
type Answer = Result<LocatedModel> | { readonly looked: readonly Looked[] };

const inVain = (text: string): Answer => ({ looked: [{ text, odd: false }] });
const oddly = (...texts: string[]): Answer => ({ looked: texts.map((text) => ({ text, odd: true })) });

/** Something no Hub id can be: those hold one slash at most, and no leading dot, slash or tilde. */
const isPath = (name: string): boolean => /^[./~]|^[a-z]:|\\|\/.*\//i.test(name);

/** The last two parts of a path, where they are a Hub id: `/models/org/name/` → `org/name`. */
const idAtEnd = (path: string): string => path.replace(/\/+$/, '').split('/').slice(-2).join('/');

async function followAdapter(search: Search, folder: string): Promise<Result<LocatedModel>> {
  const path = join(folder, 'adapter_config.json');
  const adapter = readConfigFile(search.ports, path);
  return adapter.ok ? locateBase(search, adapter.value, path) : adapter;
}

async function locateBase(
  search: Search,
  adapter: Readonly<Record<string, unknown>>,
  path: string,
): Promise<Result<LocatedModel>> {
  const { base_model_name_or_path: base, revision } = adapter;
  if (typeof base !== 'string' || base === '' || search.depth >= MOST_ADAPTERS) {
    const why = search.depth >= MOST_ADAPTERS ? 'its adapters name each other in a circle' : 'it names no base model';
    return fail(
      error('adapter-without-base', `${search.name} is a PEFT adapter and ${why}`, { location: path, help: WAYS_OUT }),
    );
  }
  const found = await locate({
    ...search,
    name: base,
    revision: typeof revision === 'string' && revision ? revision : 'main',
    depth: search.depth + 1,
  });
  if (!found.ok)
    return fail(...found.error.map((each) => ({ ...each, notes: [...(each.notes ?? []), `named by ${path}`] })));
  const { notes = [], ...model } = found.value;
  const note = `${search.name} is a PEFT adapter of ${base}`;
  return ok({ ...model, nameOrPath: search.name, adapter: search.name, notes: [note, ...notes] });
}

function describe(
  search: Search,
  source: 'folder' | 'cache',
  folder: string,
  path: string,
  notes: readonly string[],
): Result<LocatedModel> {
  const config = readConfigFile(search.ports, path);
  if (!config.ok) return config;
  const { notes: checkpointNotes, ...checkpoint } = measureCheckpoint(search.ports, folder);
  const allNotes = [...notes, ...checkpointNotes];
  return ok({
    nameOrPath: search.name,
    source,
    place: path,
    config: config.value,
    ...checkpoint,
    ...(allNotes.length > 0 && { notes: allNotes }),
  });
}

async function readModelFolder(
  search: Search,
  source: 'folder' | 'cache',
  folder: string,
  notes: readonly string[] = [],
): Promise<Result<LocatedModel> | undefined> {
  const { files } = search.ports;
  const path = join(folder, 'config.json');
  if (files.info(path)) return describe(search, source, folder, path, notes);
  return files.info(join(folder, 'adapter_config.json')) ? followAdapter(search, folder) : undefined;
}

/** Folders right below that would do: checkpoints of a run, mostly. */
const usableBelow = ({ files }: Ports, folder: string): string[] =>
  files
    .list(folder)
    .filter((name) =>
      ['config.json', 'adapter_config.json'].some((file) => files.info(join(folder, name, file))?.kind === 'file'),
    );

async function lookInFolder(search: Search): Promise<Answer> {
  const { name, ports, cwd } = search;
  const folder = resolvePath(name, ports, cwd);
  const info = ports.files.info(folder);
  if (!info) return inVain(`there is no folder ${folder}`);
  if (info.kind === 'folder') {
    const model = await readModelFolder(search, 'folder', folder);
    if (model) return model;
    const below = usableBelow(ports, folder);
    const nearest = below.at(-1);
    return fail(
      error('no-model-config', `the folder ${folder} holds no config.json`, {
        ...(below.length > 0 && { notes: [`below it, these do: ${below.slice(0, 8).join(', ')}`] }),
        help: nearest === undefined ? FOLDER : `model: ${join(name, nearest)}, or --model ${join(name, nearest)}`,
      }),
    );
  }
  if (basename(folder) === 'config.json') return describe(search, 'folder', join(folder, '..'), folder, []);
  return fail(
    error('no-model-config', `${folder} is a file, not a model folder`, {
      help: 'point at the folder with its config.json: model: FOLDER, or --model FOLDER',
    }),
  );
}

async function lookInCache(search: Search): Promise<Answer> {
  const { name, ports, revision } = search;
  const cache = hubCacheFolder(ports);
  const snapshot = findSnapshot(ports, name, revision);
  if ('problems' in snapshot) {
    const { problems } = snapshot;
    return problems.length > 0 ? oddly(...problems) : inVain(`it is not in the Hugging Face cache ${cache}`);
  }
  const model = await readModelFolder(search, 'cache', snapshot.folder, snapshot.notes);
  return model ?? oddly(`the cached snapshot ${snapshot.folder} holds no config.json`);
}

/** The table is large and most launches never look into it, so it is loaded when one does. */
const knownTable = () => import('./known-models.ts');

/** Where ms-swift downloads to unless told otherwise. Silent when it has nothing: few machines have this cache. */
async function lookInModelScopeCache(search: Search): Promise<Answer> {
  const folder = findInModelScopeCache(search.ports, search.name);
  const model = folder === undefined ? undefined : await readModelFolder(search, 'cache', folder);
  return model ?? { looked: [] };
}

async function lookInTable(search: Search, trail: readonly Looked[]): Promise<Answer> {
  const { findKnownModel, findNamesake, knownModels } = await knownTable();
  const path = isPath(search.name);
  const id = path ? idAtEnd(search.name) : search.name;
  const known = findKnownModel(id) ?? (path ? findNamesake(basename(id)) : undefined);
  if (!known) return inVain(`it is not among the ${knownModels.length} models snug knows`);
  const notes = [
    ...(path ? [`${search.name} is not on this machine: read as ${known.id} by its name`] : []),
    ...trail.filter(({ odd }) => odd).map(({ text }) => text),
    ...(search.revision === 'main'
      ? []
      : [`the config of ${known.id} is that of its main branch, not of "${search.revision}"`]),
  ];
  return ok({
    nameOrPath: search.name,
    source: 'table',
    place: known.id,
    config: known.config,
    ...(notes.length > 0 && { notes }),
  });
}

async function lookOnline(search: Search): Promise<Answer> {
  const { name, ports, revision } = search;
  if (!ports.download || isPath(name)) return { looked: [] };
  const config = await downloadConfig(ports, ports.download, name, revision);
  if (!config.ok) return config;
  const { kind, url, value } = config.value;
  if (kind === 'adapter') return locateBase(search, value, url);
  return ok({ nameOrPath: name, source: 'online', place: url, config: value });
}

async function closestKnown(name: string): Promise<string[]> {
  const { knownModels } = await knownTable();
  const asked = name.toLowerCase();
  return knownModels
    .map(({ id }) => ({ id, distance: distance(asked, id.toLowerCase()) }))
    .filter((each) => each.distance <= Math.max(2, Math.floor(asked.length / 6)))
    .sort((a, b) => a.distance - b.distance)
    .slice(0, 3)
    .map(({ id }) => id);
}

async function unknownModel({ name, ports }: Search, looked: readonly Looked[]): Promise<Result<never>> {
  const closest = await closestKnown(name);
  const online = ports.download ? FOLDER : WAYS_OUT;
  return fail(
    error('unknown-model', `the config of ${name} was not found`, {
      notes: looked.map(({ text }) => text),
      help: closest.length > 0 ? `did you mean ${closest.join(' or ')}? otherwise ${online}` : online,
    }),
  );
}

async function locate(search: Search): Promise<Result<LocatedModel>> {
  if (search.name === '') return fail(error('unknown-model', 'the name of the model is empty', { help: WAYS_OUT }));
  const looked: Looked[] = [];
  const places = isPath(search.name)
    ? [lookInFolder, lookInTable]
    : [lookInFolder, lookInCache, lookInModelScopeCache, lookInTable, lookOnline];
  for (const look of places) {
    const answer = await look(search, looked);
    if (!('looked' in answer)) return answer;
    looked.push(...answer.looked);
  }
  return unknownModel(search, looked);
}

/**
 * Finds the config.json of a model, as the trainer would and then a little further: a local folder (of a PEFT adapter:
 * its base model), the caches of Hugging Face and ModelScope, the table that ships with snug, and with `--online` the Hub.
 * Errors: `unknown-model`, `no-model-config`, `broken-model-config`, `adapter-without-base`, `gated-model`,
 * `download-failed`.
 */
export function locateModel(
  nameOrPath: string,
  ports: Ports,
  options: LocateOptions = {},
): Promise<Result<LocatedModel>> {
  const { cwd = ports.cwd, revision = 'main' } = options;
  return locate({ name: nameOrPath.trim(), ports, cwd, revision, depth: 0 });
}
