import { formatBytes } from '../../core/index.ts';
import { LABELS, LARGER_CARD, type Language, REMEDIES, say } from './phrases/index.ts';
import type { DiagnosisReport, FittingSettings, Remedy, ShownEdit } from './report.ts';

/** A remedy in words, with its price where it has one. */
export interface SaidRemedy {
  readonly id: string;
  readonly text: string;
  readonly savesBytes: number | undefined;
  /** The user's own places to change. */
  readonly edits: readonly ShownEdit[];
}

export const editText = ({ place, before, after }: ShownEdit): string =>
  `${place}  ${before === undefined ? after : `${before} -> ${after}`}`;

function fittingText({ beforeBytes, afterBytes }: FittingSettings, language: Language): string {
  const figures = [
    ...(beforeBytes === undefined ? [] : [say(LABELS.before, language, { size: formatBytes(beforeBytes) })]),
    ...(afterBytes === undefined ? [] : [say(LABELS.after, language, { size: formatBytes(afterBytes) })]),
  ];
  const head = say(LABELS.settings, language);
  return figures.length > 0 ? `${head} (${figures.join(language === 'zh' ? '；' : '; ')})` : head;
}

const saidOne = ({ id, savesBytes }: Remedy, language: Language): SaidRemedy => {
  const price = savesBytes === undefined ? '' : ` (${say(LABELS.saves, language, { size: formatBytes(savesBytes) })})`;
  return { id, text: `${say(REMEDIES[id], language)}${price}`, savesBytes, edits: [] };
};

/** What to do, first things first: settings that were worked out for this run stand before general advice. */
export function sayRemedies(report: DiagnosisReport, language: Language): readonly SaidRemedy[] {
  const { fitting, larger, remedies } = report;
  const worked: SaidRemedy[] = [];
  if (fitting) {
    const { beforeBytes, afterBytes, edits } = fitting;
    const savesBytes =
      beforeBytes === undefined || afterBytes === undefined ? undefined : Math.max(0, beforeBytes - afterBytes);
    worked.push({ id: 'settings-that-fit', text: fittingText(fitting, language), savesBytes, edits });
  }
  const card = larger && {
    id: 'larger-card',
    text: say(larger.cards.length > 0 ? LARGER_CARD.named : LARGER_CARD.unnamed, language, {
      size: formatBytes(larger.neededBytes),
      cards: larger.cards.join(', '),
    }),
    savesBytes: undefined,
    edits: [],
  };
  const { neededRamBytes } = report;
  const ram = neededRamBytes !== undefined && {
    id: 'needed-ram',
    text: say(LARGER_CARD.ram, language, { size: formatBytes(neededRamBytes) }),
    savesBytes: undefined,
    edits: [],
  };
  const general = remedies.filter(({ id }) => !(card && id === 'larger-card'));
  return [...worked, ...(card ? [card] : []), ...general.map((one) => saidOne(one, language)), ...(ram ? [ram] : [])];
}
