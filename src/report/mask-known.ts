import { harmlessValue, maskSecrets, namesSecret } from './mask-secrets.ts';

/** Shorter values stand in any text by chance. */
const SHORTEST = 6;

const passwordsInUrls = (text: string): readonly string[] =>
  [...text.matchAll(/\b[a-z][a-z0-9+.-]*:\/\/[^\s:/@]*:([^\s@/]+)@/gi)].map(([, password]) => password!);

/** Secrets that the environment and the command line hold under a name that says so, and passwords in their URLs. */
export function secretsIn(
  argv: readonly string[],
  environment: Readonly<Record<string, string | undefined>>,
): readonly string[] {
  const named = Object.entries(environment).flatMap(([name, value]) => (value && namesSecret(name) ? [value] : []));
  const flagged = argv.flatMap((token, index) => {
    const [, name, assigned] = /^([\w.-]+)=([\s\S]*)$/.exec(token) ?? [];
    if (name !== undefined) return namesSecret(name) ? [assigned!] : [];
    const previous = argv[index - 1];
    return previous?.startsWith('-') && namesSecret(previous) && !token.startsWith('-') ? [token] : [];
  });
  const urls = [...argv, ...Object.values(environment)].flatMap((text) => passwordsInUrls(text ?? ''));
  return [...new Set([...named, ...flagged, ...urls])]
    .filter((value) => value.length >= SHORTEST && !harmlessValue(value))
    .sort((a, b) => b.length - a.length);
}

/** Every text in a JSON value without the given secrets, and without what looks like one. */
export function maskKnown<T>(value: T, secrets: readonly string[]): T {
  const clean = (inner: unknown): unknown => {
    if (typeof inner === 'string')
      return maskSecrets(secrets.reduce((text, secret) => text.replaceAll(secret, '***'), inner));
    if (Array.isArray(inner)) return inner.map(clean);
    if (typeof inner !== 'object' || inner === null) return inner;
    return Object.fromEntries(Object.entries(inner).map(([key, part]) => [key, clean(part)]));
  };
  return clean(value) as T;
}
