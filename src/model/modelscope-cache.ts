import { join } from 'node:path';
import type { Ports } from '../core/index.ts';
import { resolvePath } from './resolve-path.ts';

/**
 * The folder in which ModelScope keeps a model, if it does: `<cache>/models/<org>/<name>` today, `<cache>/hub/…` before
 * 1.20, with each dot of the name written as three underscores. Source: modelscope/utils/file_utils.py.
 */
export function findInModelScopeCache(ports: Ports, id: string): string | undefined {
  const cache = resolvePath(ports.environment.MODELSCOPE_CACHE || '~/.cache/modelscope', ports, ports.cwd);
  const masked = id.replaceAll('.', '___');
  return ['models', 'hub/models', 'hub', '']
    .flatMap((below) => [join(cache, below, masked), join(cache, below, id)])
    .find((folder) => ports.files.info(join(folder, 'config.json'))?.kind === 'file');
}
