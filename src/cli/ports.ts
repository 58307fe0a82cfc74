import { homedir } from 'node:os';
import type { Ports, StorePort } from '../core/index.ts';
import { filePort } from './file-port.ts';
import { programPort } from './program-port.ts';

const DOWNLOAD_TIMEOUT_MS = 10_000;
const HUB = 'https://huggingface.co';

/** The folder may have been removed under us; PWD then still names it. */
function workingDirectory(): string {
  try {
    return process.cwd();
  } catch {
    return process.env.PWD ?? '/';
  }
}

/** Containers run as a user id without a passwd entry, where there is no home at all. */
function homeDirectory(): string {
  try {
    return homedir();
  } catch {
    return '/';
  }
}

/** The Hub's own token, sent only to the Hub the user configured and only over https, as huggingface_hub does. */
function authorization(url: string, environment: NodeJS.ProcessEnv): Record<string, string> {
  const { HF_TOKEN, HUGGING_FACE_HUB_TOKEN, HF_ENDPOINT, HF_HUB_DISABLE_IMPLICIT_TOKEN } = environment;
  const token = (HF_TOKEN || HUGGING_FACE_HUB_TOKEN)?.trim();
  const hub = (HF_ENDPOINT || HUB).replace(/\/+$/, '');
  const switchedOff = /^(1|on|yes|true)$/i.test(HF_HUB_DISABLE_IMPLICIT_TOKEN ?? '');
  return token && !switchedOff && url.startsWith(`${hub}/`) && url.startsWith('https://')
    ? { authorization: `Bearer ${token}` }
    : {};
}

function downloader(environment: NodeJS.ProcessEnv, fetchUrl: typeof fetch): NonNullable<Ports['download']> {
  return async (url) => {
    try {
      const response = await fetchUrl(url, {
        headers: { 'user-agent': 'snug', ...authorization(url, environment) },
        signal: AbortSignal.timeout(DOWNLOAD_TIMEOUT_MS),
      });
      if (!response.ok) {
        await response.body?.cancel();
        return { ok: false, status: response.status, error: response.statusText || `HTTP ${response.status}` };
      }
      return { ok: true, text: await response.text() };
    } catch (thrown) {
      // undici says `fetch failed` and keeps the reason (ENOTFOUND, ECONNREFUSED) in `cause`.
      const { cause, message } = thrown as Error & { cause?: { message?: string } };
      return { ok: false, status: 0, error: cause?.message ?? message };
    }
  };
}

const writesNothing = (): never => {
  throw new Error('this command writes nothing');
};

/** Of the commands that only look: they do without the code that writes. */
const NO_STORE: StorePort = {
  makeFolder: writesNothing,
  writeAtomic: writesNothing,
  link: writesNothing,
  remove: writesNothing,
};

export interface PortsOptions {
  /** `--online`: without it nothing is ever fetched. */
  readonly online: boolean;
  /** Where the command writes; absent: nowhere, and trying to is a fault of ours. */
  readonly store?: StorePort;
  /** For tests; the process's own otherwise. */
  readonly environment?: NodeJS.ProcessEnv;
  readonly fetch?: typeof fetch;
}

/** The real `Ports`: this machine, this process's environment and folder. */
export function createPorts({
  online,
  store = NO_STORE,
  environment = process.env,
  fetch: fetchUrl = fetch,
}: PortsOptions): Ports {
  return {
    files: filePort,
    programs: programPort(environment),
    store,
    environment: { ...environment },
    cwd: workingDirectory(),
    homeDir: homeDirectory(),
    platform: process.platform,
    now: () => new Date(),
    ...(online && { download: downloader(environment, fetchUrl) }),
  };
}
