import { maskPeople } from './mask-people.ts';
import { LABELS, type Language, LOOKS, type Phrase, say, VERDICTS } from './phrases/index.ts';
import { editText, sayRemedies } from './remedy-lines.ts';
import type { DiagnosisReport } from './report.ts';
import { sumLines } from './sum-lines.ts';
import { diagnosisTitle, noteText, placeText } from './text.ts';

/** What this machine is known by, so that it can be left out. */
export interface KnownNames {
  readonly user: string | undefined;
  readonly host: string | undefined;
}

const fenced = (lines: readonly string[]): readonly string[] => {
  // A fence longer than any run of backticks inside.
  const longest = Math.max(2, ...lines.flatMap((line) => (line.match(/`+/g) ?? []).map((run) => run.length)));
  const fence = '`'.repeat(longest + 1);
  return [`${fence}text`, ...lines, fence];
};

/** The diagnosis for an issue or a ticket: verdict, evidence in full, settings, versions; nobody's names in it. */
export function diagnosisMarkdown(report: DiagnosisReport, language: Language, known: KnownNames): string {
  const { failure, verdict, sums, files, looks, settings = [], versions } = report;
  const lines: string[] = [`## ${diagnosisTitle(report, language)}`, ''];
  const heading = (phrase: Phrase): void => {
    lines.push('', `### ${say(phrase, language)}`, '');
  };
  if (failure && verdict) {
    lines.push(`- **${say(LABELS.answer, language)}**: ${say(VERDICTS[verdict], language)}`);
    lines.push(
      `- \`${failure.kind}\`, \`${failure.resource}\`, \`${failure.phase}\`; ${say(LABELS.sure, language)}: ${say(LABELS[failure.confidence], language)}`,
    );
    if (failure.candidates.length > 0)
      lines.push(
        `- ${say(LABELS.candidates, language)}: ${failure.candidates.map((kind) => `\`${kind}\``).join(', ')}`,
      );
    if (failure.evidence.length > 0) heading(LABELS.evidence);
    for (const line of failure.evidence) {
      lines.push(`${placeText(line, files, language)}:`, ...fenced(line.text.split('\n')));
    }
    const said = sums ? sumLines(sums, language) : [];
    if (said.length > 0) heading(LABELS.sums);
    lines.push(...said.map((sentence) => `- ${sentence}`));
    heading(LABELS.todo);
    for (const [at, { text, edits }] of sayRemedies(report, language).entries()) {
      lines.push(`${at + 1}. ${text}`, ...edits.map((edit) => `   - \`${editText(edit)}\``));
    }
  }
  if (settings.length > 0) heading(LABELS.launch);
  lines.push(...settings.map((setting) => `- \`${setting}\``));
  if (versions) {
    heading(LABELS.versions);
    lines.push(versions);
  }
  if (report.notes.length > 0) heading(LABELS.notes);
  lines.push(...report.notes.map((note) => `- ${noteText(note, language)}`));
  if (looks.length > 0) heading(LABELS.look);
  for (const id of looks) lines.push(`${say(LOOKS[id].shows, language)}:`, ...fenced(LOOKS[id].lines));
  return maskPeople(
    lines.join('\n'),
    [
      { name: known.user, as: 'USER' },
      { name: known.host, as: 'HOST' },
    ].flatMap(({ name, as }) => (name ? [{ name, as }] : [])),
  );
}
