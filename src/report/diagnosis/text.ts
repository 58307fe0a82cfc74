import type { EvidenceLine } from '../../diagnosis/index.ts';
import { maskSecrets } from '../mask-secrets.ts';
import { paint, plainSigns, type TextOptions } from '../text-options.ts';
import { wrap } from '../wrap.ts';
import {
  CANDIDATES,
  LABELS,
  type Language,
  LOOKS,
  NOTES,
  PHASES,
  type Phrase,
  say,
  TITLES,
  VERDICTS,
} from './phrases/index.ts';
import { editText, sayRemedies } from './remedy-lines.ts';
import type { DiagnosisNote, DiagnosisReport } from './report.ts';
import { sumLines } from './sum-lines.ts';

const MOST_EVIDENCE = 4;
/** Lines of the terminal that one line of a log may take. */
const EVIDENCE_ROWS = 3;

export const noteText = ({ id, values }: DiagnosisNote, language: Language): string => say(NOTES[id], language, values);

/** `GPU memory (VRAM) ran out in the backward pass`. */
export function diagnosisTitle({ failure, notes }: DiagnosisReport, language: Language): string {
  if (failure) return say(TITLES[failure.kind], language, { phase: say(PHASES[failure.phase], language) });
  const [first] = notes;
  return first ? noteText(first, language) : say(NOTES.nothing, language, { lines: 0 });
}

/** One run of many on one line: `a.log  vram_capacity, backward  retry_smaller  GPU memory …`. */
export function diagnosisLine(report: DiagnosisReport, language: Language): string {
  const { failure, verdict, files } = report;
  const kind = failure ? (failure.phase === 'unknown' ? failure.kind : `${failure.kind}, ${failure.phase}`) : '-';
  return `${files.join(' ')}  ${kind}  ${verdict ?? '-'}  ${diagnosisTitle(report, language)}`;
}

/** Where a line of evidence stands: `train.log:812, rank 3`. */
export function placeText(line: EvidenceLine, files: readonly string[], language: Language): string {
  const file = line.source ?? (files.length === 1 ? files[0] : undefined);
  const at =
    file === undefined || file === '-' ? say(LABELS.line, language, { line: line.line }) : `${file}:${line.line}`;
  return line.rank === undefined ? at : `${at}, ${say(LABELS.rank, language, { rank: line.rank })}`;
}

function shortened(text: string, columns: number): string {
  const flat = maskSecrets(text)
    .replace(/\s*\n\s*/g, ' ')
    .trim();
  const letters = [...flat];
  return letters.length <= columns ? flat : `${letters.slice(0, columns - 1).join('')}…`;
}

/** The whole diagnosis of one run for a terminal. No line break at the end. */
export function renderDiagnosis(report: DiagnosisReport, language: Language, options: TextOptions): string {
  const { failure, verdict, sums, files, looks } = report;
  const lines: string[] = [];
  const put = (text: string, hang: number): void => {
    lines.push(wrap(text, options.width, hang));
  };
  const heading = (phrase: Phrase): void => {
    lines.push('', paint(options, 'bold', `${say(phrase, language)}:`));
  };
  lines.push(
    paint(options, ['bold', failure ? 'red' : 'yellow'], wrap(diagnosisTitle(report, language), options.width, 2)),
  );
  if (failure && verdict) {
    put(`  ${say(LABELS.answer, language)}: ${say(VERDICTS[verdict], language)}`, 4);
    const others = failure.kind === 'unknown' ? [] : failure.candidates;
    put(`  ${say(LABELS.sure, language)}: ${say(LABELS[failure.confidence], language)}`, 4);
    if (others.length > 0) {
      const kinds = others.map((kind) => say(CANDIDATES[kind], language)).join(language === 'zh' ? '；' : '; ');
      put(`  ${say(LABELS.alsoPossible, language, { kinds })}`, 4);
    }
    if (failure.kind === 'unknown' && failure.candidates.length > 0) {
      heading(LABELS.candidates);
      for (const [at, kind] of failure.candidates.entries()) put(`  ${at + 1}. ${say(CANDIDATES[kind], language)}`, 5);
    }
    if (failure.evidence.length > 0) heading(LABELS.evidence);
    for (const line of failure.evidence.slice(0, MOST_EVIDENCE)) {
      put(`  ${placeText(line, files, language)}`, 4);
      put(`    ${shortened(line.text, EVIDENCE_ROWS * (options.width - 4))}`, 4);
    }
    const said = sums ? sumLines(sums, language) : [];
    if (said.length > 0) heading(LABELS.sums);
    for (const sentence of said) put(`  ${sentence}`, 4);
    const remedies = sayRemedies(report, language);
    if (remedies.length > 0) heading(LABELS.todo);
    remedies.forEach(({ text, edits }, at) => {
      put(`  ${at + 1}. ${text}`, 5);
      for (const edit of edits) lines.push(`       ${maskSecrets(editText(edit))}`);
    });
  }
  const notes = failure ? report.notes : report.notes.slice(1);
  if (notes.length > 0) heading(LABELS.notes);
  for (const note of notes) put(`  ${noteText(note, language)}`, 4);
  if (looks.length > 0) heading(LABELS.look);
  for (const id of looks) {
    const { shows, lines: pasted, python } = LOOKS[id];
    put(`  # ${say(shows, language)}${python ? ' (Python)' : ''}`, 4);
    for (const one of pasted) lines.push(`  ${one}`);
  }
  return plainSigns(options, lines.join('\n'));
}
