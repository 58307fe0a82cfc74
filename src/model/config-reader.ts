import { type Diagnostic, error } from '../core/index.ts';
import { ACTIVATIONS, type Activation } from './ops.ts';

/** Keys that count layers: each of them is described by itself, so that a slip of the pen must not fill the memory here. */
const LAYERS = /layers?$|^depth$|blocks$/;
const MOST_LAYERS = 100_000;

/** Reads keys of a config.json and collects what is wrong with them; every getter takes transformers' default for an absent key. */
export class ConfigReader {
  readonly problems: Diagnostic[];
  /** What a description takes for granted. */
  readonly assumptions: string[];

  constructor(
    private readonly config: Readonly<Record<string, unknown>>,
    parent?: ConfigReader,
  ) {
    this.problems = parent?.problems ?? [];
    this.assumptions = parent?.assumptions ?? [];
  }

  /** A config inside this one (`text_config`), which reports to the same lists; undefined when absent. */
  part(key: string): ConfigReader | undefined {
    const value = this.config[key];
    if (value === undefined || value === null) return undefined;
    if (typeof value === 'object' && !Array.isArray(value)) {
      return new ConfigReader(value as Record<string, unknown>, this);
    }
    this.wrong(key, value, 'an object');
    return undefined;
  }

  /** The same config without a key. */
  without(key: string): ConfigReader {
    const { [key]: _, ...rest } = this.config;
    return new ConfigReader(rest, this);
  }

  /** The config as it is. */
  entries(): Readonly<Record<string, unknown>> {
    return this.config;
  }

  /** One of a few words. */
  word(key: string, fallback: string, allowed: readonly string[]): string {
    const value = this.config[key] ?? fallback;
    if (typeof value === 'string' && allowed.includes(value)) return value;
    this.wrong(key, value, `one of ${allowed.join(', ')}`);
    return fallback;
  }

  /** A whole number, or the first of a list of them (a side of an image or a patch). */
  side(key: string, fallback: number): number {
    const value = this.config[key];
    const first = Array.isArray(value) ? value[0] : (value ?? fallback);
    if (typeof first === 'number' && Number.isSafeInteger(first) && first > 0) return first;
    this.wrong(key, value, 'a positive integer or a list of them');
    return fallback;
  }

  /** The first of `keys` that is present and not null. */
  private find(keys: readonly string[]): [string, unknown] | undefined {
    for (const key of keys) {
      const value = this.config[key];
      if (value !== undefined && value !== null) return [key, value];
    }
    return undefined;
  }

  private wrong(key: string, value: unknown, wanted: string): void {
    this.problems.push(
      error('bad-model-config', `${key} of the model config must be ${wanted}, not ${JSON.stringify(value)}`, {
        help: `correct ${key} in config.json`,
      }),
    );
  }

  has(...keys: string[]): boolean {
    return this.find(keys) !== undefined;
  }

  raw(key: string): unknown {
    return this.config[key];
  }

  /** A positive integer; `fallback` when absent or null. */
  count(keys: string | readonly string[], fallback: number): number {
    const found = this.find(typeof keys === 'string' ? [keys] : keys);
    if (!found) return fallback;
    const [key, value] = found;
    const most = LAYERS.test(key) ? MOST_LAYERS : Number.MAX_SAFE_INTEGER;
    if (typeof value === 'number' && Number.isSafeInteger(value) && value > 0 && value <= most) return value;
    this.wrong(key, value, Number(value) > most ? `at most ${most}` : 'a positive integer');
    return fallback;
  }

  /** An integer that may be zero; `fallback` when absent or null. */
  whole(key: string, fallback: number): number {
    const value = this.config[key];
    if (value === undefined || value === null) return fallback;
    if (typeof value === 'number' && Number.isSafeInteger(value) && value >= 0) return value;
    this.wrong(key, value, 'an integer of at least 0');
    return fallback;
  }

  number(key: string, fallback: number): number {
    const value = this.config[key];
    if (value === undefined || value === null) return fallback;
    if (typeof value === 'number' && Number.isFinite(value)) return value;
    this.wrong(key, value, 'a number');
    return fallback;
  }

  flag(key: string, fallback: boolean): boolean {
    const value = this.config[key];
    if (value === undefined || value === null) return fallback;
    if (typeof value === 'boolean') return value;
    this.wrong(key, value, 'true or false');
    return fallback;
  }

  activation(keys: string | readonly string[], fallback: Activation): Activation {
    const found = this.find(typeof keys === 'string' ? [keys] : keys);
    if (!found) return fallback;
    return this.knownActivation(found[0], found[1]);
  }

  /** An activation by transformers' name; a problem with `key` if it is none that is known. */
  knownActivation(key: string, value: unknown): Activation {
    const name = value === 'swish' ? 'silu' : value === 'gelu_tanh' ? 'gelu_pytorch_tanh' : value;
    const known = ACTIVATIONS.find((activation) => activation === name);
    if (known) return known;
    this.wrong(key, value, `one of ${ACTIVATIONS.join(', ')}`);
    return 'relu';
  }

  /** One entry per layer; undefined when absent. A list of another length or with other names is a problem. */
  layerNames(key: string, layers: number, allowed: readonly string[]): readonly string[] | undefined {
    const value = this.config[key];
    if (value === undefined || value === null) return undefined;
    if (
      Array.isArray(value) &&
      value.length === layers &&
      value.every((entry) => typeof entry === 'string' && allowed.includes(entry))
    ) {
      return value as string[];
    }
    this.wrong(key, value, `a list of ${layers} entries from ${allowed.join(', ')}`);
    return undefined;
  }

  /** `a` must be a multiple of `b`. */
  divisible(a: number, aKey: string, b: number, bKey: string): void {
    if (a % b !== 0) {
      this.problems.push(
        error('bad-model-config', `${aKey} (${a}) of the model config is not a multiple of ${bKey} (${b})`),
      );
    }
  }

  /** What this version of snug does not describe: an error, no guess. */
  refuse(message: string): void {
    this.problems.push(error('unsupported-model-config', message));
  }

  /** Share of a head's features that turn: `rope_parameters.partial_rotary_factor`, or the older top-level keys. */
  rotaryFactor(legacyKeys: readonly string[], fallback: number): number {
    for (const holder of ['rope_parameters', 'rope_scaling']) {
      const value = this.config[holder];
      if (value && typeof value === 'object') {
        const factor = (value as Record<string, unknown>).partial_rotary_factor;
        if (typeof factor === 'number') return factor;
      }
    }
    for (const key of legacyKeys) {
      if (this.config[key] !== undefined && this.config[key] !== null) return this.number(key, fallback);
    }
    return fallback;
  }
}
