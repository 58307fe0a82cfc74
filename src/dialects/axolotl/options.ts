import type { FileValue } from '../dialect.ts';
import type { Flag } from '../hf-argparser/grammar.ts';
import { AXOLOTL_KEYS, SWITCHES } from './fields.ts';

/** A command line of axolotl in its parts. */
export interface AxolotlOptions {
  /** Token that names the config. */
  readonly config: number | undefined;
  /** Keys of the config given as options. */
  readonly flags: readonly Flag[];
  /** `launcher`, `sweep`, `cloud`. */
  readonly own: ReadonlyMap<string, { readonly value: string; readonly index: number }>;
  /** Tokens that go on to the launcher: what stands behind `--`, and options that axolotl does not know. */
  readonly passed: readonly { readonly text: string; readonly index: number }[];
}

const OWN = new Set(['launcher', 'sweep', 'cloud']);

/**
 * click: a switch takes no value and has a `--no-` form, other options take one, and what is not known goes to the launcher.
 * Python Fire (`-m axolotl.cli.train`): every option may have a value, and any name is a key of the config. Source:
 * axolotl/cli/main.py, cli/utils/args.py, cli/train.py.
 */
export function scanAxolotl(argv: readonly string[], from: number, form: 'cli' | 'module'): AxolotlOptions {
  const flags: Flag[] = [];
  const own = new Map<string, { value: string; index: number }>();
  const passed: { text: string; index: number }[] = [];
  let config: number | undefined;
  for (let at = from; at < argv.length; ) {
    const token = argv[at]!;
    if (token === '--' && form === 'cli') {
      passed.push(...argv.slice(at + 1).map((text, offset) => ({ text, index: at + 1 + offset })));
      break;
    }
    if (!token.startsWith('--')) {
      if (config === undefined && !token.startsWith('-')) config = at;
      at += 1;
      continue;
    }
    const flag = form === 'cli' ? clickFlag(argv, at) : fireFlag(argv, at);
    const value = flag.values[0];
    if (form === 'cli' && OWN.has(flag.key)) own.set(flag.key, { value: value?.text ?? '', index: value?.index ?? at });
    else if (form === 'module' || flag.known) flags.push(flag);
    else passed.push(...argv.slice(at, flag.end).map((text, offset) => ({ text, index: at + offset })));
    at = flag.end;
  }
  return { config, flags, own, passed };
}

interface Spelled {
  readonly spelling: string;
  readonly key: string;
  readonly text: string | undefined;
}

function spell(token: string): Spelled {
  const equals = token.indexOf('=');
  const spelling = equals < 0 ? token : token.slice(0, equals);
  const key = spelling.slice(2).replaceAll('-', '_');
  return { spelling, key, text: equals < 0 ? undefined : token.slice(equals + 1) };
}

function clickFlag(argv: readonly string[], index: number): Flag {
  const { spelling, key, text } = spell(argv[index]!);
  const positive = key.startsWith('no_') ? key.slice(3) : key;
  if (SWITCHES.has(positive) && text === undefined) {
    const common = { known: true, spelling, index, values: [], end: index + 1, style: 'bare' } as const;
    return { ...common, key: positive, negated: positive !== key };
  }
  const known = AXOLOTL_KEYS.has(key) || OWN.has(key) || key.includes('.');
  return withValue(argv, index, { spelling, key, text }, known);
}

function fireFlag(argv: readonly string[], index: number): Flag {
  const spelled = spell(argv[index]!);
  const { spelling, key, text } = spelled;
  const next = argv[index + 1];
  if (text === undefined && (next === undefined || next.startsWith('--'))) {
    const positive = /^no_?/.test(key) && !AXOLOTL_KEYS.has(key) ? key.replace(/^no_?/, '') : key;
    const common = { known: AXOLOTL_KEYS.has(positive), spelling, index, values: [], end: index + 1 } as const;
    return { ...common, style: 'bare', key: positive, negated: positive !== key };
  }
  return withValue(argv, index, spelled, AXOLOTL_KEYS.has(key));
}

function withValue(argv: readonly string[], index: number, { spelling, key, text }: Spelled, known: boolean): Flag {
  const common = { key, known, spelling, index, negated: false } as const;
  if (text !== undefined) return { ...common, style: 'equals', values: [{ text, index }], end: index + 1 };
  const next = argv[index + 1];
  if (next === undefined || next.startsWith('--')) return { ...common, style: 'bare', values: [], end: index + 1 };
  return { ...common, style: 'space', values: [{ text: next, index: index + 1 }], end: index + 2 };
}

/** A switch as it must stand in the command; Fire takes `--x=false`, click does not. */
export function switchToken(flag: Flag, to: FileValue, form: 'cli' | 'module'): string | undefined {
  if (form === 'module' || flag.style !== 'bare' || typeof to !== 'boolean') return undefined;
  const name = flag.spelling.replace(/^--no-/, '--');
  return to ? name : name.replace(/^--/, '--no-');
}
