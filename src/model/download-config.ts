import { error, fail, ok, type Ports, type Result } from '../core/index.ts';
import { parseConfig } from './config-file.ts';

/** A config from the Hub: the model's own, or that of an adapter which names its base. */
export interface DownloadedConfig {
  readonly kind: 'model' | 'adapter';
  readonly url: string;
  readonly value: Readonly<Record<string, unknown>>;
}

const FOLDER = 'point at a folder with its config.json: model: FOLDER, or --model FOLDER';

/** Fetches config.json of a Hub id, or adapter_config.json where the repository is an adapter. `HF_ENDPOINT` names a mirror. */
export async function downloadConfig(
  ports: Ports,
  download: NonNullable<Ports['download']>,
  id: string,
  revision: string,
): Promise<Result<DownloadedConfig>> {
  const hub = (ports.environment.HF_ENDPOINT || 'https://huggingface.co').replace(/\/+$/, '');
  for (const [kind, file] of [
    ['model', 'config.json'],
    ['adapter', 'adapter_config.json'],
  ] as const) {
    const url = `${hub}/${id.split('/').map(encodeURIComponent).join('/')}/resolve/${encodeURIComponent(revision)}/${file}`;
    const answer = await download(url);
    if (answer.ok) {
      const config = parseConfig(answer.text, url);
      return config.ok ? ok({ kind, url, value: config.value }) : config;
    }
    // Only "not found" leaves the other file to try.
    if (answer.status !== 404) return fail(refused(id, url, hub, answer));
  }
  return fail(
    error('unknown-model', `${hub} has no config of ${id} at revision "${revision}"`, {
      help: `check the spelling of the id and the revision, or ${FOLDER}`,
    }),
  );
}

function refused(id: string, url: string, hub: string, { status, error: reason }: { status: number; error: string }) {
  if (status === 401 || status === 403) {
    return error('gated-model', `${hub} does not show ${id} (${status}): it is gated, private or does not exist`, {
      location: url,
      help: `accept its terms at ${hub}/${id} and set HF_TOKEN to a token of that account, or ${FOLDER}`,
    });
  }
  return error(
    'download-failed',
    `the config of ${id} could not be fetched: ${reason}${status > 0 ? ` (${status})` : ''}`,
    {
      location: url,
      help: `try again, set HF_ENDPOINT to a mirror that can be reached, or ${FOLDER}`,
    },
  );
}
