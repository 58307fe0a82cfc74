import { error, fail, ok, type Ports, type Result } from '../core/index.ts';
import { findJsonError } from './json-position.ts';

type JsonObject = Readonly<Record<string, unknown>>;

/** Python writes and reads NaN and Infinity in JSON (`time_step_limit` of Mamba configs); JavaScript does not. */
const asStandardJson = (text: string): string =>
  text.replace(/"[^"\\]*(?:\\.[^"\\]*)*"|-?\bInfinity\b|\bNaN\b/g, (token) =>
    token.startsWith('"') ? token : token === 'NaN' ? 'null' : token.replace('Infinity', '1e999'),
  );

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return JSON.parse(asStandardJson(text));
  }
}

/** Parses the text of a config.json; `location` is its path or URL. */
export function parseConfig(text: string, location: string): Result<JsonObject> {
  let value: unknown;
  try {
    value = parseJson(text);
  } catch {
    return fail(brokenJson(text, location));
  }
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return ok(value as JsonObject);
  const kind = Array.isArray(value) ? 'a list' : value === null ? 'null' : `a ${typeof value}`;
  return fail(
    error('broken-model-config', `the model's config is ${kind}, not an object of settings`, {
      location,
      help: 'fetch the file again, or point at another folder: model: FOLDER, or --model FOLDER',
    }),
  );
}

function brokenJson(text: string, location: string) {
  if (text.startsWith('version https://git-lfs.github.com/spec/')) {
    return error('broken-model-config', "the model's config is a Git LFS pointer, not the file itself", {
      location,
      help: 'run `git lfs pull` in that folder',
    });
  }
  if (text.trim() === '') {
    return error('broken-model-config', "the model's config is empty", { location, help: 'fetch the file again' });
  }
  const { line, column } = findJsonError(text);
  return error('broken-model-config', "the model's config is not valid JSON", {
    location: `${location}:${line}:${column}`,
    excerpt: (text.split('\n')[line - 1] ?? '').trim().slice(0, 200),
    help: 'correct it there, or fetch the file again',
  });
}

/** Reads a config.json (or adapter_config.json) from disk. */
export function readConfigFile(ports: Ports, path: string): Result<JsonObject> {
  const outcome = ports.files.readText(path);
  if (outcome.ok) return parseConfig(outcome.value, path);
  return fail(
    error('broken-model-config', `the model's config cannot be read (${outcome.code})`, {
      location: path,
      help: 'make the file readable, or point at another folder: model: FOLDER, or --model FOLDER',
    }),
  );
}
