export class PythonEnvError extends Error {
  readonly help: string;
}
export function hashOf(text: string | Uint8Array): string;
export function decide(state: {
  pythonStarts: boolean;
  stamp: string | undefined;
  wanted: string;
}): 'ready' | 'create' | 'install';
export function ensurePythonEnv(options?: {
  folder?: string;
  requirements?: string;
  given?: string | undefined;
  say?: (text: string) => void;
}): Promise<string>;
