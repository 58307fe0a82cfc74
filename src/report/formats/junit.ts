import { create } from 'xmlbuilder';
import { maskSecrets } from '../mask-secrets.ts';
import { type CheckedLaunch, messagesOf, outcomeText, verdictMessage } from './checked-launch.ts';

/** XML 1.0 has no place for these, not even escaped. */
const NOT_IN_XML = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g;

const clean = (text: string): string => maskSecrets(text).replace(NOT_IN_XML, '?');

const wordsOf = (launch: CheckedLaunch): string =>
  messagesOf(launch)
    .flatMap(({ severity, message, location, notes = [], help }) => [
      `${severity}: ${message}${location === undefined ? '' : ` (${location})`}`,
      ...notes.map((fact) => `  ${fact}`),
      ...(help === undefined ? [] : [`  help: ${help}`]),
    ])
    .join('\n');

/** A test suite with one case a launch: failed where it does not fit, an error where nothing can be said, under `--fail-on`. */
export function renderJunit(launches: readonly CheckedLaunch[]): string {
  const isError = ({ report }: CheckedLaunch): boolean => !report?.plan || report.plan.verdict === 'unknown';
  const failed = launches.filter((launch) => launch.failed);
  const errors = failed.filter(isError).length;
  const counts = { tests: launches.length, failures: failed.length - errors, errors };
  const root = create('testsuites', { version: '1.0', encoding: 'UTF-8' }).att(counts);
  const suite = root.ele('testsuite', { name: 'snug check', ...counts });
  for (const launch of launches) {
    const test = suite.ele('testcase', { classname: 'snug.check', name: clean(launch.name) });
    const message = clean(verdictMessage(launch)?.message ?? outcomeText(launch));
    if (launch.failed) test.ele(isError(launch) ? 'error' : 'failure', { message }, clean(wordsOf(launch)));
    else test.ele('system-out', {}, clean(wordsOf(launch)));
  }
  return root.end({ pretty: true });
}
