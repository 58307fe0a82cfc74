import type { FailureNumbers } from '../../diagnosis/index.ts';
import type { Language } from '../diagnosis/phrases/index.ts';
import { sayRemedies } from '../diagnosis/remedy-lines.ts';
import type { DiagnosisReport } from '../diagnosis/report.ts';
import { sumLines } from '../diagnosis/sum-lines.ts';
import { diagnosisTitle, noteText } from '../diagnosis/text.ts';
import { maskKnown } from '../mask-known.ts';
import { SCHEMA_VERSION } from './check-json.ts';
import { snakeCased } from './snake-case.ts';

const NUMBERS: readonly (keyof FailureNumbers)[] = [
  'triedBytes',
  'totalBytes',
  'freeBytes',
  'allocatedBytes',
  'reservedUnallocatedBytes',
  'othersBytes',
];

/** One object of `snug diagnose --json`: the contract's fields, then what else is known. Figures that are not known are null. */
export function diagnosisJson(report: DiagnosisReport, language: Language): object {
  const { failure, verdict, files, sums, looks, notes, larger } = report;
  const numbers = Object.fromEntries(NUMBERS.map((name) => [name, failure?.numbers[name] ?? null]));
  const json = {
    schema_version: SCHEMA_VERSION,
    files,
    kind: failure?.kind ?? 'unknown',
    resource: failure?.resource ?? 'unknown',
    phase: failure?.phase ?? 'unknown',
    verdict: verdict ?? 'cannot_tell',
    recognised: failure !== undefined,
    confidence: failure?.confidence ?? 'low',
    candidates: failure?.candidates ?? [],
    title: diagnosisTitle(report, language),
    evidence: (failure?.evidence ?? []).map(({ line, text, rank, source, signature }) => ({
      line,
      text,
      rank: rank ?? null,
      file: source ?? (files.length === 1 ? files[0] : null),
      signature: signature ?? null,
    })),
    numbers: snakeCased(numbers),
    figures: sums ? sumLines(sums, language) : [],
    remedies: sayRemedies(report, language).map(({ id, text, savesBytes, edits }) => ({
      id,
      text,
      saves_bytes: savesBytes ?? null,
      ...(edits.length > 0 ? { edits: edits.map((edit) => ({ ...edit, before: edit.before ?? null })) } : {}),
    })),
    larger_gpu: larger ? { needed_bytes: larger.neededBytes, cards: larger.cards } : null,
    look_closer: looks,
    notes: notes.map((note) => ({ id: note.id, text: noteText(note, language) })),
  };
  return maskKnown(json, []);
}
