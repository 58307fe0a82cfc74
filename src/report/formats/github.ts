import type { Diagnostic } from '../../core/index.ts';
import { maskSecrets } from '../mask-secrets.ts';
import { type CheckedLaunch, messagesOf } from './checked-launch.ts';

const COMMANDS = { error: 'error', warning: 'warning', note: 'notice' } as const;

/** As the runner reads them back: https://docs.github.com/actions/reference/workflow-commands-for-github-actions */
const escapeData = (text: string): string =>
  text.replaceAll('%', '%25').replaceAll('\r', '%0D').replaceAll('\n', '%0A');
const escapeProperty = (text: string): string => escapeData(text).replaceAll(':', '%3A').replaceAll(',', '%2C');

/** `tune.yaml:7:3` is a place in a file; `argv[3]` and `env NAME` are not. */
function placeOf(location: string | undefined, fallback: string | undefined): Record<string, string> {
  const [, file, line, column] = /^(.+?):(\d+)(?::(\d+))?$/.exec(location ?? '') ?? [];
  if (file !== undefined) return { file, line: line!, ...(column === undefined ? {} : { col: column }) };
  return fallback === undefined ? {} : { file: fallback };
}

function command(diagnostic: Diagnostic, launch: CheckedLaunch): string {
  const { code, severity, message, location, notes = [], help } = diagnostic;
  // A command that is no file has no place on the page of a change.
  const file = launch.report && launch.report.reading.files.length === 0 ? undefined : launch.name;
  const properties = { ...placeOf(location, file), title: `snug ${code}` };
  const body = [`${launch.name}: ${message}`, ...notes, ...(help === undefined ? [] : [`help: ${help}`])];
  const listed = Object.entries(properties).map(([key, value]) => `${key}=${escapeProperty(value)}`);
  return `::${COMMANDS[severity]} ${listed.join(',')}::${escapeData(maskSecrets(body.join('\n')))}`;
}

/** Workflow commands: an annotation for every verdict and message. What is not held against a launch is no error there. */
export const renderGithub = (launches: readonly CheckedLaunch[]): string =>
  launches
    .flatMap((launch) =>
      messagesOf(launch).map((diagnostic) =>
        command(
          diagnostic.severity === 'error' && !launch.failed ? { ...diagnostic, severity: 'warning' } : diagnostic,
          launch,
        ),
      ),
    )
    .join('\n');
