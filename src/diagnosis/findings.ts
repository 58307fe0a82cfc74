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

const FIRST_FAILURE = /failed \(exitcode: -9\)|exits with return code = -9/;

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
  const crash = all.findLast((finding) => isRole(finding, ['crash']) && isSure(finding));
  const killed = all.filter((finding) => isRole(finding, ['killed']));
  // A launcher kills the peers of a rank that has failed; only where it names the first failure is the signal the cause.
  const peersOnly =
    crash !== undefined && !killed.some((one) => one.order < crash.order || FIRST_FAILURE.test(one.line.text));
  return {
    cause: sound[0] ?? causes[0],
    weak: all.find((finding) => isRole(finding, ['cause']) && finding.line.weak && !finding.line.followedByProgress),
    possible: first(['possible']),
    killed: peersOnly ? undefined : killed[0],
    crash,
    recovered: all.findLast(
      (finding) =>
        isRole(finding, ['recovered']) || (isRole(finding, ['cause']) && finding.line.followedByProgress === true),
    ),
    all,
  };
}
