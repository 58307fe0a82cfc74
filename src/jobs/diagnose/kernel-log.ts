import { formatBytes } from '../../core/index.ts';
import type { Evidence, EvidenceLine, Failure } from '../../diagnosis/index.ts';
import type { DiagnosisNote } from '../../report/index.ts';

interface Kill {
  readonly line: EvidenceLine;
  readonly pid: string;
  readonly name: string;
  readonly bytes: number | undefined;
}

/** `Killed process 4120 (python) total-vm:…kB, anon-rss:812kB, …`; older kernels name the score before the sacrifice. */
const KILLED = /Kill(?:ed)? process (\d+) \(([^)]*)\)/;
const RESIDENT = /anon-rss:(\d+)kB/;
const TRAINERS = /python|torchrun|pt_|accelerate|deepspeed|ray|train|conda/i;

function killsIn({ lines }: Evidence): readonly Kill[] {
  return lines.flatMap((line) => {
    const match = KILLED.exec(line.text);
    if (!match) return [];
    const resident = RESIDENT.exec(line.text)?.[1];
    return [
      { line, pid: match[1]!, name: match[2]!, bytes: resident === undefined ? undefined : Number(resident) * 1024 },
    ];
  });
}

/** Failures that a kill by the kernel may explain: nobody has said why the process went. */
const mayBeKill = (alone: Failure | undefined): boolean =>
  alone === undefined ||
  alone.kind === 'unknown' ||
  alone.resource === 'host_ram' ||
  alone.candidates.some((kind) => kind === 'host_ram' || kind === 'cgroup');

/**
 * Joins the kernel's log to a run's: a kill of one of its processes proves what a bare signal 9 does not, an Xid what a failed call
 * does not. A kill of another program, or beside a failure that speaks for itself, is only mentioned.
 */
export function withKernelLog(
  evidence: Evidence,
  kernel: Evidence,
  alone: Failure | undefined,
): { readonly evidence: Evidence; readonly notes: readonly DiagnosisNote[] } {
  const kills = killsIn(kernel);
  const said = evidence.lines.map(({ text }) => text).join('\n');
  const isOurs = ({ pid, name }: Kill): boolean =>
    new RegExp(`\\b${pid}\\b`).test(said) || (TRAINERS.test(name) && mayBeKill(alone));
  const ours = kills.filter(isOurs);
  const others = kernel.lines.filter(({ text }) => !KILLED.test(text));
  const proof = ours.map(({ line }) => line);
  // Lines around a kill (constraint, reaper) belong to it; the card's own errors speak for themselves.
  const around = others.filter(({ signature }) => proof.length > 0 || signature === 'device-lost');
  const notes = kills.map(
    (kill): DiagnosisNote =>
      ours.includes(kill)
        ? {
            id: 'killed',
            values: { name: kill.name, pid: kill.pid, size: kill.bytes === undefined ? '?' : formatBytes(kill.bytes) },
          }
        : { id: 'other-run', values: { name: kill.name, pid: kill.pid } },
  );
  const kernelLines = [...proof, ...around].map((line) => ({ ...line, source: 'dmesg' }));
  return { evidence: { ...evidence, lines: [...evidence.lines, ...kernelLines] }, notes };
}
