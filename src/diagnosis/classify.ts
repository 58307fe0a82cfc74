import { MiB } from '../core/index.ts';
import { type AllocatorReport, numbersOf, readWrapped } from './allocator-report.ts';
import { endingOf } from './ending.ts';
import type { Evidence } from './evidence.ts';
import type { EvidenceLine, Failure, FailureKind, FailureNumbers, FailurePhase, Resource } from './failure.ts';
import { type Finding, findingsOf, type RankedFindings, rankFindings } from './findings.ts';
import { readKill, wasSwappedOut } from './killed-process.ts';
import { isMuch, type MemoryShares, type Reading, readFigures, sharesOf } from './memory-shares.ts';

const RESOURCE: Readonly<Record<FailureKind, Resource>> = {
  vram_capacity: 'vram',
  vram_fragmentation: 'vram',
  vram_other_process: 'vram',
  vram_leak_growth: 'vram',
  vram_eval_spike: 'vram',
  vram_checkpoint_save_spike: 'vram',
  vram_load_spike: 'vram',
  nccl_hang_after_oom: 'vram',
  host_ram: 'host_ram',
  dataloader_ram: 'host_ram',
  cgroup: 'host_ram',
  swap_thrash: 'host_ram',
  shm: 'shm',
  disk: 'disk',
  not_memory: 'none',
  config_bug: 'none',
  unknown: 'unknown',
};

interface Verdict extends Omit<Reading, 'traits'> {
  readonly resource?: Resource;
  readonly phase?: FailurePhase;
  readonly numbers?: FailureNumbers;
  readonly holders?: Failure['holders'];
  readonly traits?: Failure['traits'] | undefined;
}

const MOST_EVIDENCE = 12;
const MANY_STEPS = 20;

function failure(verdict: Verdict, evidence: readonly EvidenceLine[]): Failure {
  return {
    kind: verdict.kind,
    resource: verdict.resource ?? RESOURCE[verdict.kind],
    phase: verdict.phase ?? 'unknown',
    confidence: verdict.confidence,
    candidates: verdict.candidates.filter((kind, index, all) => kind !== verdict.kind && all.indexOf(kind) === index),
    evidence: evidence.slice(0, MOST_EVIDENCE),
    numbers: verdict.numbers ?? {},
    ...(verdict.traits && verdict.traits.length > 0 ? { traits: verdict.traits } : {}),
    ...(verdict.holders && verdict.holders.length > 0 ? { holders: verdict.holders } : {}),
  };
}

const SPIKE: Partial<Record<FailurePhase, FailureKind>> = {
  load: 'vram_load_spike',
  resume: 'vram_load_spike',
  eval: 'vram_eval_spike',
  save: 'vram_checkpoint_save_spike',
};

/** Figures others may calculate with: none that cannot be true, and no guess of what strangers hold while it is small. */
function deviceNumbers(report: AllocatorReport, shares: MemoryShares): FailureNumbers {
  const { allocatedBytes, reservedUnallocatedBytes, ...believable } = numbersOf(report);
  const own = {
    ...(allocatedBytes === undefined ? {} : { allocatedBytes }),
    ...(reservedUnallocatedBytes === undefined ? {} : { reservedUnallocatedBytes }),
  };
  const others = report.othersBytes ?? shares.othersBytes;
  const worthSaying =
    report.othersBytes !== undefined || shares.measured || isMuch(others ?? 0, report.totalBytes ?? 0);
  return {
    ...believable,
    ...(shares.inconsistent ? {} : own),
    ...(others !== undefined && worthSaying ? { othersBytes: others } : {}),
  };
}

/** A device allocation that failed: figures first, then the phase, then what is left. */
function readDevice(evidence: Evidence, finding: Finding, ranked: RankedFindings): Verdict {
  const { signature, line } = finding;
  const report: AllocatorReport = signature.read ? readWrapped(line.text, signature.read) : { processes: [] };
  const shares = sharesOf(report, evidence.treePids ?? []);
  const figures = readFigures(report, shares, evidence.expandableSegments === true);
  const phase = line.phase ?? 'unknown';
  const numbers = deviceNumbers(report, shares);
  const place = { phase, numbers, resource: 'vram' as const, traits: line.traits };
  const pinned = line.traits?.includes('pinned-memory') === true && report.totalBytes === undefined;
  if (pinned) {
    return {
      kind: 'host_ram',
      confidence: 'medium',
      candidates: ['vram_capacity'],
      phase,
      numbers,
      traits: line.traits,
    };
  }
  if (figures?.kind === 'vram_other_process') return { ...place, ...figures, holders: shares.others };
  if (figures && figures.kind !== 'vram_capacity') return { ...place, ...figures };
  const engine = line.traits?.includes('vllm') === true && phase === 'load';
  if (engine)
    return { ...place, kind: 'config_bug', confidence: 'medium', candidates: ['vram_load_spike', 'vram_capacity'] };
  const more = [...(figures?.candidates ?? []), ...(signature.candidates ?? [])];
  const spike = signature.kind === 'vram_capacity' ? SPIKE[phase] : undefined;
  if (spike) return { ...place, kind: spike, confidence: 'high', candidates: ['vram_capacity', ...more] };

  // What the samples show of all steps decides; the figures of the last one look the same either way.
  if (evidence.vramGrowth && signature.kind === 'vram_capacity') {
    return { ...place, kind: 'vram_leak_growth', confidence: 'medium', candidates: ['vram_capacity', ...more] };
  }
  // After many good steps: a longer sample than before, or memory that grows. One line does not tell.
  if ((line.stepsBefore ?? 0) >= MANY_STEPS) more.push('vram_leak_growth');
  const confidence =
    figures?.confidence ?? signature.confidence ?? (report.triedBytes === undefined ? 'medium' : 'high');
  // An in-process batch search caught the first exception and lost the engine on its second try: the search cannot work there.
  const lostEngine = ranked.all.some(
    (later) => later.order > finding.order && /'NoneType' object has no attribute 'backward'/.test(later.line.text),
  );
  if (lostEngine) {
    return {
      ...place,
      kind: 'config_bug',
      confidence,
      candidates: ['vram_capacity', ...more],
      traits: ['batch-search'],
    };
  }
  return { ...place, kind: signature.kind, confidence, candidates: more };
}

/** Peers that wait in a collective for a rank that is out of memory say only that they waited. */
function asHang(verdict: Verdict, finding: Finding, ranked: RankedFindings): Verdict {
  const waited = ranked.all.some((later) => later.order > finding.order && later.signature.id === 'collective-timeout');
  return waited && verdict.resource === 'vram'
    ? { ...verdict, kind: 'nccl_hang_after_oom', candidates: [verdict.kind, ...verdict.candidates] }
    : verdict;
}

function readCause(evidence: Evidence, finding: Finding, ranked: RankedFindings): Verdict {
  const { signature, line } = finding;
  if (signature.resource === 'vram') return asHang(readDevice(evidence, finding, ranked), finding, ranked);
  const numbers = signature.read ? numbersOf(readWrapped(line.text, signature.read)) : {};
  const verdict: Verdict = {
    kind: signature.kind,
    resource: signature.resource,
    confidence: signature.confidence ?? 'high',
    candidates: signature.candidates ?? [],
    phase: line.phase ?? 'unknown',
    numbers,
    traits: line.traits,
  };
  if (signature.id === 'disk-full' && line.traits?.includes('shared-memory')) {
    return { ...verdict, kind: 'shm', resource: 'shm', confidence: 'medium', candidates: ['disk'] };
  }
  if (signature.resource !== 'host_ram' || signature.kind === 'config_bug') return verdict;
  // A worker that was killed and a cgroup that says it killed: the limit is the cause, whoever it struck.
  const cgroup =
    ranked.all.some((other) => other.signature.kind === 'cgroup') ||
    (evidence.cgroupOomKills > 0 && evidence.cgroupLimitBytes != null);
  return cgroup ? { ...verdict, kind: 'cgroup', confidence: 'high', candidates: [verdict.kind] } : verdict;
}

/** A volume with less than this is full for what a trainer writes into it. */
const FULL_BYTES = 64 * MiB;
const isFull = (freeBytes: number | undefined): boolean => freeBytes !== undefined && freeBytes < FULL_BYTES;

function readSignal(evidence: Evidence, signal: string | undefined): Verdict | undefined {
  switch (signal) {
    case 'SIGKILL':
      return readKill(evidence, undefined);
    case 'SIGBUS':
      return isFull(evidence.leastFreeBytes?.shm)
        ? { kind: 'shm', confidence: 'high', candidates: [] }
        : { kind: 'shm', confidence: 'medium', candidates: ['not_memory'] };
    case 'SIGSEGV':
    case 'SIGILL':
    case 'SIGFPE':
      return { kind: 'not_memory', confidence: 'medium', candidates: [] };
    case 'SIGTERM':
    case 'SIGINT':
    case 'SIGHUP':
    case 'SIGQUIT':
      return { kind: 'not_memory', confidence: 'medium', candidates: [] };
    default:
      return undefined;
  }
}

/** A log that shows a trainer at work or done after whatever went wrong tells of no failure; a checkpoint it spoilt is one. */
function wentOn({ finished }: Evidence, { cause, crash, killed, possible, recovered, all }: RankedFindings): boolean {
  if (recovered?.signature.kind === 'vram_checkpoint_save_spike') return false;
  if (cause || crash || killed || possible || all.some((one) => one.signature.role === 'echo')) return false;
  return finished === true || recovered?.line.followedByProgress === true;
}

/**
 * Says why an attempt ended. Undefined when it ended well: with exit code 0 an OOM text was quoted, or the trainer dealt with it.
 * A log without an end (no exit code, no signal) is read by its last words.
 */
export function classify(evidence: Evidence): Failure | undefined {
  if (evidence.startFailure !== undefined) {
    return failure({ kind: 'not_memory', confidence: 'high', candidates: [] }, []);
  }
  const ending = endingOf(evidence);
  if (ending.how === 'well') return undefined;
  const ranked = rankFindings(findingsOf(evidence));
  const shown = (main: Finding | undefined): EvidenceLine[] =>
    [...(main ? [main] : []), ...ranked.all.filter((one) => one !== main && one.signature.role !== 'recovered')].map(
      (finding) => finding.line,
    );

  if (ending.how === 'unknown' && wentOn(evidence, ranked)) return undefined;
  if (ranked.cause) return failure(readCause(evidence, ranked.cause, ranked), shown(ranked.cause));
  if (evidence.forwardedSignal !== undefined) {
    return failure({ kind: 'not_memory', confidence: 'high', candidates: [] }, shown(undefined));
  }
  const { weak, possible, killed, crash, recovered } = ranked;
  // What fails to write says so in many words, or in none.
  const fullDisk: readonly FailureKind[] = isFull(evidence.leastFreeBytes?.disk) ? ['disk'] : [];
  // Silent because every page has to be fetched from the disk first.
  if (evidence.stoppedBecause === 'stall' && wasSwappedOut(evidence)) {
    return failure({ kind: 'swap_thrash', confidence: 'medium', candidates: ['host_ram', 'not_memory'] }, []);
  }
  // A launcher may end with code 1 and no word of the rank that the OOM killer took.
  if (evidence.cgroupOomKills > 0) return failure(readKill(evidence, killed), shown(killed));
  if (possible) {
    const { signature, line } = possible;
    const { kind, resource, confidence = 'low', candidates = [] } = signature;
    return failure({ kind, resource, confidence, candidates, phase: line.phase ?? 'unknown' }, shown(possible));
  }
  if (killed) return failure(readKill(evidence, killed), shown(killed));
  if (crash) {
    const candidates = [...(weak ? [weak.signature.kind] : []), ...fullDisk];
    return failure({ kind: 'not_memory', confidence: 'medium', candidates }, shown(crash));
  }
  const signalled = readSignal(evidence, ending.signal);
  if (signalled && !weak) return failure(signalled, shown(undefined));
  if (weak) return failure({ ...readCause(evidence, weak, ranked), confidence: 'low' }, shown(weak));
  if (recovered) return failure(readRecovered(evidence, recovered, ranked), [recovered.line, ...shown(undefined)]);
  return failure({ kind: 'unknown', confidence: 'low', candidates: fullDisk }, []);
}

/** The trainer went on after an OOM, and then the run ended or went silent without another word. */
function readRecovered(evidence: Evidence, finding: Finding, ranked: RankedFindings): Verdict {
  const verdict = readDevice(evidence, finding, ranked);
  if (finding.signature.kind !== 'vram_capacity') return verdict;
  const failed = ranked.all.some((later) => later.order > finding.order && later.signature.role === 'echo');
  if (failed || endingOf(evidence).how === 'badly') return { ...verdict, confidence: 'medium' };
  return {
    ...verdict,
    kind: 'nccl_hang_after_oom',
    confidence: 'low',
    candidates: ['vram_capacity', 'not_memory'],
  };
}
