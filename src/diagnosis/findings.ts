import type { Evidence } from './evidence.ts';
import type { EvidenceLine } from './failure.ts';
import { normaliseLine } from './normalise.ts';
import { matchLine, type Role, type Signature, signatureById } from './signatures/index.ts';
import { createLineWatcher } from './watch.ts';

/** A line with what it stands for. */
export interface Finding {
  readonly signature: Signature;
  readonly line: EvidenceLine;
  /** Its place among the lines, first seen first. */
  readonly order: number;
}

function signatureOf(line: EvidenceLine): Signature | undefined {
  if (line.signature !== undefined) return signatureById(line.signature);
  return matchLine(normaliseLine(line.text.split('\n')[0]!))?.signature;
}

/** The lines of an attempt with their signatures; where none were noted, the last lines are read again. */
export function findingsOf(evidence: Evidence): readonly Finding[] {
  const lines = evidence.lines.length > 0 ? evidence.lines : linesOf(evidence.tail);
  return lines.flatMap((line, order) => {
    const signature = signatureOf(line);
    return signature ? [{ signature, line, order }] : [];
  });
}

function linesOf(tail: readonly string[]): readonly EvidenceLine[] {
  const watcher = createLineWatcher();
  watcher.push('stderr', new TextEncoder().encode(tail.join('\n')));
  watcher.end();
  return watcher.evidence().lines;
}

const isRole = (finding: Finding, roles: readonly Role[]): boolean => roles.includes(finding.signature.role);
const isSure = ({ line }: Finding): boolean => line.weak !== true && line.followedByProgress !== true;

/** Findings in the order in which they are believed. */
export interface RankedFindings {
  /** First thing that ended the run, memory or not. */
  readonly cause: Finding | undefined;
  readonly weak: Finding | undefined;
  readonly possible: Finding | undefined;
  readonly killed: Finding | undefined;
  readonly crash: Finding | undefined;
  /** Last OOM the trainer dealt with by itself. */
  readonly recovered: Finding | undefined;
  readonly all: readonly Finding[];
}

/**
 * Sorts what was seen. The earliest cause wins (peers fail later, and their texts only echo it); a garbage size after anything
 * else is such an echo; an exception of another kind counts only when nothing explains the end better.
 */
export function rankFindings(all: readonly Finding[]): RankedFindings {
  const causes = all.filter((finding) => isRole(finding, ['cause', 'other']) && isSure(finding));
  const sound = causes.filter((finding) => !/more than 1EB memory/.test(finding.line.text));
  const first = (roles: readonly Role[]): Finding | undefined =>
    all.find((finding) => isRole(finding, roles) && isSure(finding));
  return {
    cause: sound[0] ?? causes[0],
    weak: all.find((finding) => isRole(finding, ['cause']) && finding.line.weak && !finding.line.followedByProgress),
    possible: first(['possible']),
    killed: first(['killed']),
    crash: all.findLast((finding) => isRole(finding, ['crash']) && isSure(finding)),
    recovered: all.findLast(
      (finding) =>
        isRole(finding, ['recovered']) || (isRole(finding, ['cause']) && finding.line.followedByProgress === true),
    ),
    all,
  };
}
