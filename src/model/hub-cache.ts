import { join } from 'node:path';
import type { Ports } from '../core/index.ts';
import { resolvePath } from './resolve-path.ts';

/** `$NAME` and `${NAME}` from the environment, as Python's expandvars: unknown ones stay. */
const expandVariables = (text: string, environment: Ports['environment']): string =>
  text.replace(
    /\$(?:\{(\w+)\}|(\w+))/g,
    (whole, braced?: string, bare?: string) => environment[braced ?? bare!] ?? whole,
  );

/** The folder where the Hugging Face libraries keep downloads. Source: huggingface_hub/constants.py. */
export function hubCacheFolder(ports: Ports): string {
  const { HF_HUB_CACHE, HUGGINGFACE_HUB_CACHE, HF_HOME, XDG_CACHE_HOME } = ports.environment;
  const home = HF_HOME || join(XDG_CACHE_HOME || '~/.cache', 'huggingface');
  const folder = HF_HUB_CACHE || HUGGINGFACE_HUB_CACHE || join(home, 'hub');
  return resolvePath(expandVariables(folder, ports.environment), ports, ports.cwd);
}

/** What the cache holds of a model: a snapshot folder, or why none can be used (empty: the model is not there at all). */
export type CachedSnapshot =
  | { readonly folder: string; readonly notes: readonly string[] }
  | { readonly problems: readonly string[] };

const isCommit = (text: string): boolean => /^[0-9a-f]{40}$/.test(text);

/** Finds the snapshot of a revision (branch, tag or commit): `models--org--name/refs/<revision>` names its commit. */
export function findSnapshot(ports: Ports, id: string, revision: string): CachedSnapshot {
  const repository = join(hubCacheFolder(ports), `models--${id.split('/').join('--')}`);
  if (ports.files.info(repository)?.kind !== 'folder') return { problems: [] };
  const snapshots = ports.files.list(join(repository, 'snapshots'));
  const snapshot = (commit: string) => join(repository, 'snapshots', commit);

  if (isCommit(revision) && snapshots.includes(revision)) return { folder: snapshot(revision), notes: [] };
  const refPath = join(repository, 'refs', revision);
  const ref = ports.files.readText(refPath);
  if (ref.ok) {
    const commit = ref.value.trim();
    if (snapshots.includes(commit)) return { folder: snapshot(commit), notes: [] };
    return { problems: [`${refPath} names the commit ${commit || '""'}, which is not among the snapshots`] };
  }
  if (ref.code !== 'ENOENT') return { problems: [`${refPath} cannot be read (${ref.code})`] };
  const [only] = snapshots;
  if (revision === 'main' && only !== undefined && snapshots.length === 1) {
    return {
      folder: snapshot(only),
      notes: [`the cache has no branch "main" of ${id}: its only snapshot ${only} was read`],
    };
  }
  return { problems: [`${repository} holds no revision "${revision}"`] };
}
