interface Output {
  readonly output_type?: unknown;
  readonly text?: unknown;
  readonly traceback?: unknown;
  readonly ename?: unknown;
  readonly evalue?: unknown;
  readonly data?: Readonly<Record<string, unknown>>;
}

const textOf = (value: unknown): string =>
  typeof value === 'string'
    ? value
    : Array.isArray(value)
      ? value.filter((one) => typeof one === 'string').join('')
      : '';

function outputText({ output_type: type, text, traceback, ename, evalue, data }: Output): string {
  if (type !== 'error') return textOf(text) || textOf(data?.['text/plain']);
  const frames = Array.isArray(traceback) ? traceback.filter((one) => typeof one === 'string').join('\n') : '';
  const error = `${textOf(ename)}: ${textOf(evalue)}`;
  return frames.includes(textOf(ename)) && frames !== '' ? frames : `${frames}\n${error}`;
}

/**
 * What a Jupyter notebook printed, cell after cell, as one text; undefined: it is no notebook. The cells' own source is no output:
 * an error text in it is only quoted. Format: https://nbformat.readthedocs.io
 */
export function notebookText(json: string): string | undefined {
  let notebook: unknown;
  try {
    notebook = JSON.parse(json);
  } catch {
    return undefined;
  }
  const { cells, nbformat } = (notebook ?? {}) as { cells?: unknown; nbformat?: unknown };
  if (!Array.isArray(cells) || typeof nbformat !== 'number') return undefined;
  return cells
    .flatMap((cell: { outputs?: unknown }) => (Array.isArray(cell?.outputs) ? (cell.outputs as Output[]) : []))
    .map((output) => outputText(output))
    .filter((text) => text !== '')
    .map((text) => (text.endsWith('\n') ? text : `${text}\n`))
    .join('');
}
