import { type Diagnostic, error, fail, ok, type Result } from '../../core/index.ts';

/** Slots of each host in order; undefined: as many as GPUs are visible there. */
export type Hosts = ReadonlyMap<string, number | undefined>;

/** Reads `worker-0 slots=8` lines as DeepSpeed does. Source: deepspeed/launcher/runner.py `_parse_hostfile`. */
export function parseHostfile(text: string, path: string): Result<Hosts> {
  const hosts = new Map<string, number>();
  const problem = (message: string, line: number): Diagnostic =>
    error('bad-hostfile', `${path}: ${message}, and DeepSpeed stops at it`, {
      location: `${path}:${line}`,
      help: 'one host a line: worker-0 slots=8',
    });
  for (const [at, raw] of text.split('\n').entries()) {
    const line = raw.trim();
    if (line === '' || line.startsWith('#')) continue;
    const [, host, slots] = /^(\S+)\s+slots=(\d+)/.exec(line) ?? [];
    if (host === undefined) return fail(problem('a line names no host with its slots', at + 1));
    if (hosts.has(host)) return fail(problem(`${host} stands there twice`, at + 1));
    hosts.set(host, Number(slots));
  }
  return hosts.size > 0 ? ok(hosts) : fail(problem('no host in it', 1));
}

/**
 * Hosts that are left by `--include` or `--exclude` (`worker-0@worker-1:0,2`), with the number of their slots; a text for
 * what DeepSpeed would not take. Source: runner.py `parse_resource_filter`.
 */
export function filterHosts(hosts: Hosts, filter: string, kind: 'include' | 'exclude'): Hosts | string {
  const named = new Map<string, Set<number>>();
  for (const part of filter.split('@')) {
    const [host = '', slots, more] = part.split(':');
    if (more !== undefined) return `${part} has a colon too many`;
    if (!hosts.has(host)) return `no host is called ${host}`;
    const numbers = slots === undefined ? [] : slots.split(',').map((slot) => (/^\s*\d+\s*$/.test(slot) ? +slot : NaN));
    if (numbers.some(Number.isNaN)) return `${part} names a slot that is no number`;
    const all = hosts.get(host);
    const missing = all === undefined ? undefined : numbers.find((slot) => slot >= all);
    if (missing !== undefined) return `${host} has no slot ${missing}`;
    named.set(host, new Set([...(named.get(host) ?? []), ...numbers]));
  }
  const left = new Map<string, number | undefined>();
  for (const [host, all] of hosts) {
    const slots = named.get(host);
    if (kind === 'include' && slots) left.set(host, slots.size > 0 ? slots.size : all);
    if (kind === 'exclude' && !slots) left.set(host, all);
    if (kind === 'exclude' && slots && slots.size > 0) left.set(host, all === undefined ? undefined : all - slots.size);
  }
  return new Map([...left].filter(([, slots]) => slots !== 0));
}
