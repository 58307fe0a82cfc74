import type { FileValue } from './dialect.ts';

/**
 * What a plain scalar is to PyYAML's SafeLoader, which most trainers read their YAML with: YAML 1.1 with its own, narrower
 * patterns (`1e-5` and `2e4` stay strings, `y` is a string, `010` is 8, `12:30` is 750). A date stays the text it is.
 * Source: yaml/resolver.py and yaml/constructor.py of PyYAML 6.
 */
export function resolvePlainScalar(text: string): string | number | boolean | null {
  if (NULL.test(text)) return null;
  if (BOOL.test(text)) return /^(?:yes|true|on)$/i.test(text);
  if (INT.test(text)) return readInt(text.replaceAll('_', ''));
  if (FLOAT.test(text)) return readFloat(text.replaceAll('_', '').toLowerCase());
  return text;
}

const NULL = /^(?:~|null|Null|NULL|)$/;
const BOOL = /^(?:yes|Yes|YES|no|No|NO|true|True|TRUE|false|False|FALSE|on|On|ON|off|Off|OFF)$/;
const INT =
  /^(?:[-+]?0b[01_]+|[-+]?0[0-7_]+|[-+]?(?:0|[1-9][0-9_]*)|[-+]?0x[0-9a-fA-F_]+|[-+]?[1-9][0-9_]*(?::[0-5]?[0-9])+)$/;
const FLOAT =
  /^(?:[-+]?[0-9][0-9_]*\.[0-9_]*(?:[eE][-+][0-9]+)?|\.[0-9][0-9_]*(?:[eE][-+][0-9]+)?|[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+\.[0-9_]*|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN))$/;
const TIMESTAMP = /^[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:$|[Tt \t])/;

function readInt(text: string): number {
  const sign = text.startsWith('-') ? -1 : 1;
  const digits = text.replace(/^[-+]/, '');
  if (digits === '0') return 0;
  if (digits.startsWith('0b')) return sign * Number.parseInt(digits.slice(2), 2);
  if (digits.startsWith('0x')) return sign * Number.parseInt(digits.slice(2), 16);
  if (digits.startsWith('0')) return sign * Number.parseInt(digits, 8);
  return sign * readSexagesimal(digits);
}

function readFloat(text: string): number {
  const sign = text.startsWith('-') ? -1 : 1;
  const digits = text.replace(/^[-+]/, '');
  if (digits === '.inf') return sign * Number.POSITIVE_INFINITY;
  if (digits === '.nan') return Number.NaN;
  return sign * readSexagesimal(digits);
}

const readSexagesimal = (digits: string): number =>
  digits.split(':').reduce((total, part) => total * 60 + Number(part), 0);

/** The value of a scalar with an explicit tag (`!!str 8`, `!!float 1e-5`); undefined: a tag that plain data does not carry. */
export function resolveTaggedScalar(tag: string, text: string): string | number | boolean | null | undefined {
  switch (tag) {
    case '!':
    case 'tag:yaml.org,2002:str':
      return text;
    case 'tag:yaml.org,2002:int':
      return INT.test(text) ? readInt(text.replaceAll('_', '')) : undefined;
    case 'tag:yaml.org,2002:float':
      return text.trim() !== '' && !Number.isNaN(Number(text)) ? Number(text) : undefined;
    case 'tag:yaml.org,2002:bool':
      return BOOL.test(text) ? /^(?:yes|true|on)$/i.test(text) : undefined;
    case 'tag:yaml.org,2002:null':
      return null;
    default:
      return undefined;
  }
}

/** Where a value is written: which characters end it, and the quotes that the place had before. */
export interface ScalarPlace {
  /** Inside `{…}` or `[…]`. */
  readonly flow: boolean;
  readonly quote: 'plain' | 'single' | 'double';
}

/** `2.0e-4`, `0.1`, `1.0e+21`: read as a number by YAML 1.1 and 1.2, by PyYAML and OmegaConf alike. */
export function formatNumber(value: number): string {
  if (Number.isNaN(value)) return '.nan';
  if (!Number.isFinite(value)) return value > 0 ? '.inf' : '-.inf';
  const [mantissa, exponent] = String(value).split('e') as [string, string?];
  return exponent === undefined ? mantissa : `${mantissa.includes('.') ? mantissa : `${mantissa}.0`}e${exponent}`;
}

/** Characters that must be escaped, which only double quotes can: YAML's non-printable ones and every line break. */
const ESCAPED = /[\u0000-\u0008\u000a-\u001f\u007f-\u009f\u2028\u2029\ufeff\ufffe\uffff]/;

/** One scalar as text. A string is quoted where any common reader would take the bare word for something else. */
export function formatScalar(value: string | number | boolean | null, place: ScalarPlace): string {
  if (value === null) return 'null';
  if (typeof value === 'boolean') return String(value);
  if (typeof value === 'number') return formatNumber(value);
  if (ESCAPED.test(value)) return quoteDouble(value);
  if (place.quote === 'double') return quoteDouble(value);
  if (place.quote === 'single' || !isPlainSafe(value, place.flow)) return `'${value.replaceAll("'", "''")}'`;
  return value;
}

const quoteDouble = (value: string): string =>
  JSON.stringify(value).replace(
    /[\u007f-\u009f\u2028\u2029\ufeff\ufffe\uffff]/g,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );

function isPlainSafe(text: string, flow: boolean): boolean {
  if (text === '' || text.trim() !== text) return false;
  if (typeof resolvePlainScalar(text) !== 'string' || TIMESTAMP.test(text)) return false;
  // Numbers to YAML 1.2, OmegaConf or Python's float(), single-letter booleans of YAML 1.1, merge and value keys.
  if (!Number.isNaN(Number(text.replaceAll('_', ''))) || /^(?:[-+]?(?:inf|infinity|nan)|y|n|<<|=)$/i.test(text))
    return false;
  if (/^[-+]?[0-9]/.test(text) && /^[-+0-9_.:eEoxXa-fA-F]+$/.test(text)) return false;
  if (/^[\s,[\]{}#&*!|>'"%@`]/.test(text) || /^[-?:](?:\s|$)/.test(text) || /^(?:---|\.\.\.)/.test(text)) return false;
  if (/:(?:\s|$)|\s#|\t/.test(text)) return false;
  return !(flow && /[,[\]{}?]|^[-:]|:$/.test(text));
}

/** A whole value on one line: scalars as above, lists and maps in flow form. */
export function formatFlow(value: FileValue, place: ScalarPlace): string {
  if (value === null || typeof value !== 'object') return formatScalar(value, place);
  const inside: ScalarPlace = { flow: true, quote: place.quote === 'double' ? 'double' : 'plain' };
  if (isList(value)) return `[${value.map((item) => formatFlow(item, inside)).join(', ')}]`;
  const items = Object.entries(value).map(([key, item]) => `${formatScalar(key, inside)}: ${formatFlow(item, inside)}`);
  return `{${items.join(', ')}}`;
}

export const isList = (value: FileValue): value is readonly FileValue[] => Array.isArray(value);

export const isMapping = (value: FileValue): value is { readonly [key: string]: FileValue } =>
  value !== null && typeof value === 'object' && !isList(value);
