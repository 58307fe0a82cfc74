import { type Diagnostic, error, fail, ok, type Result } from '../core/index.ts';
import type { FittedLaunch, FittedWord, WordedLaunch } from './contract.ts';
import type { FileReference, FileValue, SourceEdit, StackView } from './dialect.ts';
import { editJson } from './json-text.ts';
import { editYaml } from './yaml-edit.ts';

/** Makes the edits: a new command line, and copies of the files that change, each named where the original was. */
export function applyEdits(view: StackView, edits: readonly SourceEdit[], copyFolder: string): Result<WordedLaunch> {
  const conflicts = findConflicts(edits);
  if (conflicts.length > 0) return fail(...conflicts);
  const copied = copyFiles(view, edits, copyFolder);
  if (!copied.ok) return copied;
  const env = Object.fromEntries(edits.flatMap((edit) => (edit.kind === 'env' ? [[edit.name, edit.value]] : [])));
  const words = editTokens(view.argv, [...edits, ...copied.value.pointers]);
  return ok({ argv: words.map(({ text }) => text), env, files: copied.value.files, words });
}

const placeOf = (edit: SourceEdit): string => {
  switch (edit.kind) {
    case 'token':
    case 'remove':
      return `argv[${edit.index}]`;
    case 'insert':
      return `argv[${edit.at}] ${edit.key}`;
    case 'file':
      return `${edit.path} ${edit.keyPath.join('.')}`;
    case 'env':
      return `env ${edit.name}`;
  }
};

/** Two changes that want one place to be two things; equal ones are one. */
function findConflicts(edits: readonly SourceEdit[]): Diagnostic[] {
  const seen = new Map<string, string>();
  const conflicts = new Set<string>();
  for (const edit of edits) {
    const place = placeOf(edit);
    const content = JSON.stringify(edit);
    if ((seen.get(place) ?? content) !== content) conflicts.add(place);
    seen.set(place, content);
  }
  return [...conflicts].map((place) =>
    error('conflicting-changes', `two changes set ${place} to different values`, { location: place }),
  );
}

type FileEdit = Extract<SourceEdit, { kind: 'file' }>;

interface Copied {
  readonly files: FittedLaunch['files'];
  /** Token edits that name the copies. */
  readonly pointers: readonly SourceEdit[];
}

/** Innermost files first: a copy that another file names is an edit of that other file. */
function copyFiles(view: StackView, edits: readonly SourceEdit[], copyFolder: string): Result<Copied> {
  const references = view.layers.flatMap((layer) => [
    ...(layer.reading.files ?? []),
    ...(layer.reading.engines ?? []).flatMap((engine) => (engine.file ? [engine.file] : [])),
  ]);
  const open = edits.filter((edit): edit is FileEdit => edit.kind === 'file');
  const files: FittedLaunch['files'][number][] = [];
  const pointers: SourceEdit[] = [];
  const names = new Set<string>();
  while (open.length > 0) {
    const inner = open.find((edit) => !open.some((other) => namedBy(other.path, references) === edit.path)) ?? open[0]!;
    const mine = open.filter((edit) => edit.path === inner.path);
    for (const edit of mine) open.splice(open.indexOf(edit), 1);
    const reference = references.find((each) => each.source.path === inner.path);
    if (!reference) throw new Error(`no layer has read ${inner.path}`);
    const { text: before, path } = reference.source;
    const changes = dedupe(mine.map(({ keyPath, value }) => ({ keyPath, value })));
    const edited = reference.format === 'yaml' ? editYaml(before, changes, path) : editJson(before, changes);
    if (!edited.ok) return edited;
    if (edited.value === before) continue;
    const copy = `${copyFolder}/${freshName(path, names)}`;
    files.push({ source: path, copy, before, text: edited.value });
    const { pointer } = reference;
    if (pointer.kind === 'fixed')
      return fail(error('fixed-file', `${path} cannot be replaced by a copy: ${pointer.reason}`));
    if (pointer.kind === 'file') open.push({ kind: 'file', path: pointer.path, keyPath: pointer.keyPath, value: copy });
    else pointers.push({ kind: 'token', index: pointer.index, text: `${pointer.before}${copy}` });
  }
  return ok({ files, pointers });
}

const namedBy = (path: string, references: readonly FileReference[]): string | undefined => {
  const pointer = references.find((each) => each.source.path === path)?.pointer;
  return pointer?.kind === 'file' ? pointer.path : undefined;
};

function dedupe(changes: readonly { keyPath: readonly string[]; value: FileValue }[]): readonly {
  keyPath: readonly string[];
  value: FileValue;
}[] {
  return [...new Map(changes.map((change) => [JSON.stringify(change.keyPath), change])).values()];
}

/** The file's own name, numbered where two files of one launch share it. */
function freshName(path: string, taken: Set<string>): string {
  const base = path.split('/').at(-1)!;
  const dot = base.lastIndexOf('.');
  const [stem, end] = dot > 0 ? [base.slice(0, dot), base.slice(dot)] : [base, ''];
  let name = base;
  for (let number = 2; taken.has(name); number += 1) name = `${stem}-${number}${end}`;
  taken.add(name);
  return name;
}

function editTokens(argv: readonly string[], edits: readonly SourceEdit[]): FittedWord[] {
  const replaced = new Map<number, string>();
  const removed = new Set<number>();
  const inserted = new Map<number, Map<string, readonly string[]>>();
  for (const edit of edits) {
    if (edit.kind === 'token') replaced.set(edit.index, edit.text);
    if (edit.kind === 'remove') removed.add(edit.index);
    if (edit.kind === 'insert') {
      const here = inserted.get(edit.at) ?? new Map<string, readonly string[]>();
      inserted.set(edit.at, here.set(edit.key, edit.tokens));
    }
  }
  const before = (index: number): FittedWord[] =>
    [...(inserted.get(index)?.values() ?? [])].flat().map((text) => ({ text }));
  const own = (token: string, index: number): FittedWord => {
    const text = replaced.get(index);
    return text === undefined || text === token ? { text: token, index } : { text, instead: index };
  };
  return [
    ...argv.flatMap((token, index) => [...before(index), ...(removed.has(index) ? [] : [own(token, index)])]),
    ...before(argv.length),
  ];
}
