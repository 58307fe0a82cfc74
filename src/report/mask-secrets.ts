const MASK = '***';

/** Tokens that are known by their own shape. */
const SHAPES: readonly RegExp[] = [
  /\bhf_[A-Za-z0-9]{16,}/g,
  /\bsk-[A-Za-z0-9_-]{16,}/g,
  /\b(?:ghp|gho|ghu|ghs|ghr)_[A-Za-z0-9]{20,}/g,
  /\bgithub_pat_[A-Za-z0-9_]{20,}/g,
  /\bglpat-[A-Za-z0-9_-]{16,}/g,
  /\bxox[abposr]-[A-Za-z0-9-]{10,}/g,
  /\bAKIA[A-Z0-9]{16}\b/g,
  /\bwandb_v\d_[A-Za-z0-9_]{20,}/g,
  /\beyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{5,}/g,
];

/** Words of a `*_token` or `*_key` that name a piece of text or a column, not a credential. */
const HARMLESS_TOKEN =
  /(?:^|[_-])(?:pad|eos|bos|unk|sep|cls|mask|image|video|audio|special|additional|decoder_start|im|think|stop|prefix|suffix|new|max|min|num|per|box|soft|virtual|use_auth)[_-]?token$/i;
const HARMLESS_KEY =
  /(?:^|[_-])(?:input|output|prompt|text|label|image|video|audio|messages?|conversations?|reward|chosen|rejected|target|content|role|data|dataset|column|system|tools?|query|response|answer|question|primary|sort|score|train|eval|group|metric)[_-]?key$/i;

/** Whether a flag, variable or config key by this name holds a secret. */
export function namesSecret(name: string): boolean {
  const bare = name.replace(/^-+/, '').replace(/([a-z])([A-Z])/g, '$1_$2');
  if (/passw(?:or)?d|passphrase|secret|credential/i.test(bare)) return true;
  if (/(?:^|[_.-])token$/i.test(bare)) return !HARMLESS_TOKEN.test(bare);
  if (/(?:^|[_.-])(?:api|access|auth)?key$/i.test(bare))
    return bare.toLowerCase() !== 'key' && !HARMLESS_KEY.test(bare);
  return false;
}

const maskShapes = (text: string): string =>
  SHAPES.reduce((masked, shape) => masked.replace(shape, MASK), text)
    .replace(/((?<![a-z0-9+.-])[a-z][a-z0-9+.-]*:\/\/[^\s:/@]*:)[^\s@/]+@/gi, `$1${MASK}@`)
    .replace(/\b(bearer\s+)[A-Za-z0-9._~+/-]{8,}/gi, `$1${MASK}`)
    .replace(/(\bwandb\b[^\n]{0,40}?)\b[0-9a-f]{40}\b/gi, `$1${MASK}`);

/** A value that only points at a secret (`$HF_TOKEN`, `${oc.env:KEY}`) or switches something is not one. */
export const harmlessValue = (value: string): boolean =>
  /^(?:\$.*|true|false|null|none|~|\d{1,3}|)$/i.test(value.replace(/^["']|["']$/g, ''));

// Begins only where a word begins: a long word is looked through once, not once from each of its letters.
const NAME = String.raw`(?<![\w.-])[\w.-]*(?:token|key|passw|secret|credential|passphrase)[\w.-]*`;
const VALUE = String.raw`"[^"\n]*"|'[^'\n]*'|[^\s"',;}]+`;
const ASSIGNED = new RegExp(`(${NAME})(["']?\\s*[:=]\\s*)(${VALUE})`, 'gi');
// In prose a word stands beside any other: without `=` or `:` only a flag binds what follows it.
const FLAGGED = new RegExp(`((?=--)${NAME})(\\s+)(?!-)(${VALUE})`, 'gi');

/** A config writes `key: value` at the start of a line or of an item; elsewhere a colon may be talk (`the secret: not known here`). */
const startsEntry = (before: string): boolean =>
  /(?:^|\n)[ \t]*(?:[-+>|] ?|snug: )*[ \t]*["']?$|[{[,][ \t]*["']?$/.test(before);

/** Whether a name with a colon behind it belongs to prose: a path or model id before it, or plain words behind it. */
function isTalk(before: string, between: string, value: string, after: string): boolean {
  if (!between.includes(':')) return false;
  if (before.endsWith('/')) return true;
  return !startsEntry(before) && /:\s+$/.test(between) && /^[a-z]+$/.test(value) && /^ +[a-z(]/i.test(after);
}

function maskText(text: string): string {
  const hide = (whole: string, name: string, between: string, value: string, at: number, all: string): string => {
    if (!namesSecret(name) || harmlessValue(value)) return whole;
    if (isTalk(all.slice(0, at), between, value, all.slice(at + whole.length))) return whole;
    const quote = /^["']/.exec(value)?.[0] ?? '';
    return `${name}${between}${quote}${MASK}${quote}`;
  };
  return maskShapes(text.replace(FLAGGED, hide).replace(ASSIGNED, hide));
}

function maskArgv(argv: readonly string[]): string[] {
  return argv.map((token, index) => {
    const previous = argv[index - 1];
    if (previous?.startsWith('-') && !previous.includes('=') && namesSecret(previous) && !token.startsWith('-')) {
      return harmlessValue(token) ? token : MASK;
    }
    const assigned = /^([\w.-]+)=([\s\S]*)$/.exec(token);
    if (assigned && namesSecret(assigned[1]!) && !harmlessValue(assigned[2]!)) return `${assigned[1]}=${MASK}`;
    return maskText(token);
  });
}

function maskEnv(env: Readonly<Record<string, string | undefined>>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(env).flatMap(([name, value]) => {
      if (value === undefined) return [];
      return [[name, namesSecret(name) && !harmlessValue(value) ? MASK : maskShapes(value)]];
    }),
  );
}

/**
 * Takes tokens, keys and passwords out of what is shown or saved: by the name of the flag, variable or key that holds them, and by
 * their own shape (`hf_…`, `sk-…`, a password in a URL). Text, a command line, or an environment.
 */
export function maskSecrets(text: string): string;
export function maskSecrets(argv: readonly string[]): string[];
export function maskSecrets(env: Readonly<Record<string, string | undefined>>): Record<string, string>;
export function maskSecrets(
  from: string | readonly string[] | Readonly<Record<string, string | undefined>>,
): string | string[] | Record<string, string> {
  if (typeof from === 'string') return maskText(from);
  return isArgv(from) ? maskArgv(from) : maskEnv(from);
}

const isArgv = (from: object): from is readonly string[] => Array.isArray(from);
