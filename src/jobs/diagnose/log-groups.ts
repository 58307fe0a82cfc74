/** Logs that belong to one run. */
export interface LogGroup {
  readonly files: readonly { readonly path: string; readonly rank: number | undefined }[];
}

/** `rank3`, `rank_3`, `worker-3`, `gpu3`, `node03`, `proc.3`: a number that counts processes of one run. */
const COUNTED =
  /(?<![a-z])(rank|local_?rank|worker|node|host|trainer|proc(?:ess)?|gpu|device|replica|pod)([-_.=]?)(\d{1,4})(?!\d)/i;
/** torchrun's `--log-dir`: `<run id>/attempt_0/3/stderr.log`. */
const TORCHRUN = /(\/attempt_\d+\/)(\d+)(\/(?:stdout|stderr)\.log)$/;
/** The two streams of one process. */
const STREAM = /(^|[./_-])(stdout|stderr|out|err|error|output)(?=$|[./_-])/gi;

/** What all files of one run have in common in their names, and the rank this one tells. */
function nameOf(path: string): { readonly key: string; readonly rank: number | undefined } {
  const torchrun = TORCHRUN.exec(path);
  const counted = torchrun ? null : COUNTED.exec(path);
  const rank = torchrun ? Number(torchrun[2]) : counted ? Number(counted[3]) : undefined;
  const key = path
    .replace(TORCHRUN, '$1#$3')
    .replace(counted ? COUNTED : /(?!)/, '$1$2#')
    .replace(STREAM, '$1|');
  return { key, rank };
}

/**
 * Which of the given logs are parts of one run: names that differ only in a rank or a stream. Others are runs of their own; two
 * jobs of an array (`slurm-17_3.out`) are not one run.
 */
export function groupLogs(paths: readonly string[]): readonly LogGroup[] {
  const groups = new Map<string, { path: string; rank: number | undefined }[]>();
  for (const path of new Set(paths)) {
    const { key, rank } = nameOf(path);
    groups.set(key, [...(groups.get(key) ?? []), { path, rank }]);
  }
  return [...groups.values()].map((files) => ({
    files: files.length > 1 ? files : files.map(({ path }) => ({ path, rank: undefined })),
  }));
}
