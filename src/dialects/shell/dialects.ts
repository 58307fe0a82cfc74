import { ok, type Result } from '../../core/index.ts';
import type { LaunchSource, ReadContext } from '../contract.ts';
import type { Claim, Dialect, Position, Reading } from '../dialect.ts';
import { lastOption, type OptionScan, programName, scanOptions } from '../scan-options.ts';
import { allocationOf, SBATCH_OPTIONS } from './sbatch.ts';
import { interpreterOf, isShellScript, type ShellScript } from './script.ts';

const SHELL = /^(?:ba|da|z|k)?sh$/;

/** `bash train.sh arguments`, `sh -c 'command'`, `./train.sh`: the text is read, never executed. */
export const shell: Dialect = {
  id: 'shell',
  kind: 'wrapper',
  title: 'shell script',
  docs: 'https://www.gnu.org/software/bash/manual/bash.html',
  detect: (position, context) => {
    if (position.target || position.engine) return undefined;
    return shellStart(position) || directScript(position, context) ? toTheEnd(position) : undefined;
  },
  read(_claim, position, context) {
    const direct = directScript(position, context);
    const start = shellStart(position);
    if (direct) {
      const interpreter = interpreterOf(direct.text);
      return handOn(interpreter, {
        ...fileScript(direct, position.index, position.argv, context),
        interpreter,
        direct: true,
      });
    }
    const interpreter = programName(position.argv[position.index]!);
    const { index, inline } = start!;
    const positional = position.argv.slice(index + 1);
    if (inline) {
      // The first argument behind the text is `$0`.
      const script = { path: undefined, token: index, text: position.argv[index]!, positional: positional.slice(1) };
      return handOn(interpreter, { ...script, interpreter, direct: false, allocation: undefined, submitted: false });
    }
    const source = context.source(position.argv[index]!);
    if (!source.ok) return source;
    return handOn(interpreter, {
      ...fileScript(source.value, index, position.argv, context),
      interpreter,
      direct: false,
    });
  },
};

/** `sbatch [options] job.sbatch arguments`, `sbatch --wrap 'command'`. */
export const sbatch: Dialect = {
  id: 'sbatch',
  kind: 'wrapper',
  title: 'sbatch',
  docs: 'https://slurm.schedmd.com/sbatch.html',
  detect(position) {
    if (position.target || position.engine) return undefined;
    const starts = programName(position.argv[position.index] ?? '') === 'sbatch';
    return starts && submittedAt(position) ? toTheEnd(position) : undefined;
  },
  read(_claim, position, context) {
    const { scan, wrap } = submittedAt(position)!;
    if (wrap !== undefined) {
      const text = wrap.value!;
      const script = {
        path: undefined,
        token: wrap.valueIndex,
        text,
        positional: [],
        interpreter: 'sh',
        direct: false,
      };
      return handOn('sbatch', { ...script, allocation: allocationOf('', scan, ''), submitted: true });
    }
    const path = position.argv[scan.next]!;
    const source = context.source(path);
    if (!source.ok) return source;
    return handOn('sbatch', {
      ...fileScript(source.value, scan.next, position.argv, context),
      allocation: allocationOf(source.value.text, scan, path),
      interpreter: interpreterOf(source.value.text),
      direct: false,
      submitted: true,
    });
  },
};

const toTheEnd = ({ index, argv }: Position): Claim => ({ from: index, to: argv.length });

const handOn = (label: string, script: ShellScript): Result<Reading> =>
  ok({ spec: {}, detail: undefined, label, handOn: { kind: 'script', script } });

function fileScript(
  { path, text }: Pick<LaunchSource, 'path' | 'text'>,
  token: number,
  argv: readonly string[],
  { chosen }: ReadContext,
): Pick<ShellScript, 'path' | 'text' | 'token' | 'positional' | 'allocation' | 'submitted' | 'line'> {
  const allocation = allocationOf(text, undefined, path);
  const line = chosen?.path === path ? { line: chosen.line } : {};
  return { path, text, token, positional: argv.slice(token + 1), allocation, submitted: false, ...line };
}

/** Where a shell is given its text; undefined: no shell, or one that reads its commands from elsewhere. */
function shellStart({ argv, index }: Position): { readonly index: number; readonly inline: boolean } | undefined {
  if (!SHELL.test(programName(argv[index] ?? ''))) return undefined;
  let inline = false;
  let at = index + 1;
  for (; /^[-+]./.test(argv[at] ?? ''); at += 1) {
    const option = argv[at]!;
    if (option === '--') {
      at += 1;
      break;
    }
    if (/^-\w*s/.test(option)) return undefined;
    if (/^-\w*c/.test(option)) inline = true;
    // `-o pipefail`, `-eo pipefail`, `--rcfile FILE` have a word of their own.
    if (/^[-+]\w*[oO]$/.test(option) || /^--(?:rcfile|init-file)$/.test(option)) at += 1;
  }
  return argv[at] === undefined ? undefined : { index: at, inline };
}

const HEAD_BYTES = 256;

/** A script that is started by its own name. */
function directScript({ argv, index }: Position, context: ReadContext): LaunchSource | undefined {
  const path = argv[index];
  if (path === undefined || !path.includes('/')) return undefined;
  const absolute = path.startsWith('/') ? path : `${context.cwd}/${path}`;
  const head =
    context.files.info(absolute)?.kind === 'file' ? context.files.readBytes(absolute, 0, HEAD_BYTES) : undefined;
  if (!head?.ok || !/^#!.*\b(?:ba|da|z|k)?sh\b/.test(new TextDecoder().decode(head.value))) return undefined;
  const source = context.source(path);
  // A console script of pip begins with a shell line where the path of its Python is too long.
  return source.ok && isShellScript(path, source.value.text) && !/^'''exec'/m.test(source.value.text)
    ? source.value
    : undefined;
}

function submittedAt({ argv, index }: Position) {
  const scan: OptionScan = scanOptions(argv, index + 1, SBATCH_OPTIONS);
  const wrap = lastOption(scan, '--wrap');
  return wrap || (!scan.stuck && argv[scan.next] !== undefined) ? { scan, wrap } : undefined;
}
