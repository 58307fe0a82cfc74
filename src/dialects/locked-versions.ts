import type { FoundVersions } from './versions.ts';

/**
 * Exact versions of `packages` that a lock or requirements file pins. A range says nothing about what will be installed and is
 * passed over. `path` is how messages name the file.
 */
export function lockedVersions(path: string, text: string, packages: ReadonlySet<string>): FoundVersions {
  const found: Record<string, { version: string; place: string }> = {};
  let name: string | undefined;
  for (const [at, line] of text.split(/\r?\n/).entries()) {
    const pin = pinIn(line);
    const place = `${path}:${at + 1}`;
    if (pin) add(found, packages, pin.name, pin.version, place);
    // `name = "trl"` and then `version = "0.21.0"`: the tables of uv, poetry and pdm.
    if (/^\s*\[\[package\]\]/.test(line)) name = undefined;
    name = /^\s*name\s*=\s*"([^"]+)"/.exec(line)?.[1] ?? name;
    const version = /^\s*version\s*=\s*"([^"]+)"/.exec(line)?.[1];
    if (version !== undefined && name !== undefined) {
      add(found, packages, name, version, place);
      name = undefined;
    }
  }
  return found;
}

const PIN = /^\s*[-"'\s]*([A-Za-z][\w.-]*)(?:\[[^\]]*\])?\s*={2,3}\s*v?(\d[\w.!+]*)/;

/** `trl==0.21.0`, also in a list of strings; `"trl": {"version": "==0.21.0"}` of Pipfile.lock on one line. */
function pinIn(line: string): { readonly name: string; readonly version: string } | undefined {
  if (line.trimStart().startsWith('#')) return undefined;
  const match = PIN.exec(line) ?? /["']([A-Za-z][\w.-]*)(?:\[[^\]]*\])?==(\d[\w.!+]*)["']/.exec(line);
  return match ? { name: match[1]!, version: match[2]! } : undefined;
}

function add(
  found: Record<string, { version: string; place: string }>,
  packages: ReadonlySet<string>,
  name: string,
  version: string,
  place: string,
): void {
  const known = name.toLowerCase().replace(/[_.]/g, '-');
  if (packages.has(known)) found[known] ??= { version, place };
}
