export type LogLevel = 'debug' | 'info' | 'warning' | 'error';

/** What launchers, loggers and containers put in front of a line. */
export interface LinePrefix {
  readonly pattern: RegExp;
  /** Capture group that holds the rank. */
  readonly rank?: number;
  /** Capture group that holds the level. */
  readonly level?: number;
  /** Could as well be the text's own beginning; trusted once another line has begun alike. */
  readonly weak?: boolean;
}

const LEVEL = 'DEBUG|INFO|NOTICE|WARN|WARNING|ERROR|CRITICAL|FATAL|SEVERE';
const CLOCK = String.raw`\d\d:\d\d:\d\d(?:[.,]\d+)?`;
const ZONE = String.raw`(?:\s?Z|\s?[+-]\d\d:?\d\d|\s?UTC)?`;

/** Tried in this order, again and again: prefixes are stacked. */
export const PREFIXES: readonly LinePrefix[] = [
  // snug's own output.log
  { pattern: /^(?:out|err)\| ?/ },
  // torch >= 2.3 `[rank0]:`, torchrun --tee `[default0]:`, `[trainer0|0]:`
  { pattern: /^\[[A-Za-z_]+?(\d+)(?:\|\d+)?\]:\s?/, rank: 1 },
  { pattern: /^\[Rank:? ?(\d+)\]:?\s?/i, rank: 1 },
  { pattern: /^\[PG (?:ID|GUID)[^\]]*?Rank (\d+)\]:?\s?/, rank: 1 },
  // mpirun --tag-output
  { pattern: /^\[\d+,(\d+)\]<std(?:out|err)>:\s?/, rank: 1 },
  // ray: `(Runner pid=7)`, `(raylet, ip=10.0.0.2)`
  { pattern: /^\((?:[\w.:<>-]+ )?pid=\d+(?:, ip=[\w.:]+)?\)\s/ },
  { pattern: /^\((?:raylet|gcs_server|autoscaler)(?:, ip=[\w.:]+)?\)\s/ },
  // CRI (Kubernetes) and plain timestamps
  {
    pattern: new RegExp(
      String.raw`^\d{4}[-/]\d\d[-/]\d\d[ T]${CLOCK}${ZONE}(?:\s+std(?:out|err)\s+[FP])?(?:\s*[|:-]\s+|:|\s+)`,
    ),
  },
  { pattern: new RegExp(String.raw`^\[\d{4}[-/]\d\d[-/]\d\d[ T]${CLOCK}${ZONE}(?: [A-Z](?: \d+)*)?\]:?\s*`) },
  { pattern: new RegExp(String.raw`^\[?${CLOCK}\]?(?:\s*[|-]\s+|\s+)`) },
  // transformers: `[WARNING|trainer.py:12] 2024-05-11 14:10:52,224 >>`
  {
    pattern: new RegExp(String.raw`^\[(${LEVEL})\|[^\]]{1,120}\](?:\s*\d{4}-\d\d-\d\d ${CLOCK})?\s*>>\s?`),
    level: 1,
  },
  // vllm: `ERROR 11-18 18:07:28 engine.py:366]`, glog: `E0511 14:10:52.123 77 file.cc:12]`, c10: `[E ProcessGroupNCCL.cpp:475]`
  { pattern: new RegExp(String.raw`^(${LEVEL}) \d\d-\d\d ${CLOCK} \[?[\w./-]+:\d+\]\s?`), level: 1 },
  { pattern: new RegExp(String.raw`^([IWEF])\d{4} ${CLOCK}(?:\s+\d+)? [\w./-]+:\d+\]\s?`), level: 1 },
  { pattern: new RegExp(String.raw`^\[([IWEF])\d*(?: ${CLOCK})? [\w./-]+:\d+\]\s?`), level: 1 },
  // NCCL: `host:123:456 [0] NCCL WARN …`
  { pattern: /^[\w.-]+:\d+:\d+ \[(\d+)\] (?=\S*\s?NCCL|NCCL)/ },
  // syslog, journald, dmesg
  { pattern: new RegExp(String.raw`^[A-Z][a-z]{2}\s+\d{1,2} ${CLOCK} \S+ [\w./-]+(?:\[\d+\])?: `) },
  { pattern: new RegExp(String.raw`^\[[A-Z][a-z]{2} [A-Z][a-z]{2}\s+\d{1,2} ${CLOCK} \d{4}\]\s`) },
  { pattern: /^\[\s*\d+\.\d+\]\s/ },
  // fairseq: `| WARNING: …`
  { pattern: new RegExp(String.raw`^\|\s+(?=(?:${LEVEL})\b)`) },
  // levels, with or without a logger name or a source line
  { pattern: new RegExp(String.raw`^\[(${LEVEL})\s*\]:?\s*`), level: 1 },
  { pattern: new RegExp(String.raw`^(${LEVEL})\s*\|\s+(?:[\w.<>-]+(?::[\w.<>-]+)*\s+[|-]\s+)?`), level: 1 },
  { pattern: new RegExp(String.raw`^\[[\w.-]+\](?=\[(?:${LEVEL})\s*\])`) },
  { pattern: new RegExp(String.raw`^[\w.<>-]+\s+-\s+(?=(?:${LEVEL})\s+-\s)`) },
  { pattern: new RegExp(String.raw`^(${LEVEL})\s+-\s+(?:[\w.<>-]+\s+-\s+)?`), level: 1 },
  { pattern: new RegExp(String.raw`^(${LEVEL}):(?:[A-Za-z_][\w.]*:)?\s*`), level: 1 },
  { pattern: new RegExp(String.raw`^(${LEVEL})\s+(?=\[|\S+:\d+)`), level: 1 },
  { pattern: /^\[[\w./-]+\.[\w./-]*:\d+(?::[\w<>]+)?\]:?\s?/ },
  { pattern: /^\[PID:\d+\]\s?/i },
  { pattern: /^\[\d+\]\s/ },
  // GitHub Actions, GitLab
  { pattern: /^##\[(error|warning|debug|command|section)\]/, level: 1 },
  { pattern: /^section_(?:start|end):\d+:\w+\s*/ },
  // docker compose `trainer-1  | `, srun -l `3: `, pdsh and deepspeed `node07: `
  { pattern: /^[A-Za-z][\w.-]{0,62}\s+\|\s/, weak: true },
  { pattern: /^\s?(\d{1,4}): /, rank: 1, weak: true },
  { pattern: /^[a-z][a-z0-9.-]*\d[a-z0-9.-]*: /, weak: true },
];

/** Level named by a prefix; one letter is glog's. */
export function levelOf(name: string): LogLevel {
  const first = name[0]!.toUpperCase();
  if (first === 'D') return 'debug';
  if (first === 'I' || first === 'N') return 'info';
  return first === 'W' ? 'warning' : 'error';
}
