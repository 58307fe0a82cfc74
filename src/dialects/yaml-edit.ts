import {
  isAlias,
  isMap,
  isScalar,
  isSeq,
  type Pair,
  type ParsedNode,
  type Scalar,
  type YAMLMap,
  type YAMLSeq,
} from 'yaml';
import { type Diagnostic, fail, ok, type Result } from '../core/index.ts';
import type { EditText, FileValue } from './dialect.ts';
import { parseYamlDocument, type YamlDocument } from './yaml-document.ts';
import { isMergeKey, keyName, mergedPairs, readYaml } from './yaml-read.ts';
import { formatFlow, formatScalar, isMapping, type ScalarPlace } from './yaml-scalars.ts';

export type YamlEdit = Parameters<EditText>[1][number];

/**
 * Sets values in YAML text and leaves every other byte as it is: comments, order, quotes, indentation, line ends, a missing
 * last newline. A key that is not there is added at the end of its mapping. What cannot be changed in one place without
 * meaning something else elsewhere (alias, anchor, merge key, interpolation, duplicate key, tag) is refused, each with line
 * and way out. `path` is how messages name the file.
 */
export function editYaml(text: string, edits: readonly YamlEdit[], path = 'the file'): Result<string> {
  const before = readYaml(text, path);
  if (!before.ok) return before;
  const parsed = parseYamlDocument(text, path);
  if (!parsed.ok) return parsed;
  const problems = edits.flatMap(({ keyPath }) => {
    const place = findPlace(parsed.value, keyPath);
    return 'code' in place ? [place] : [];
  });
  if (problems.length > 0) return fail(...problems);

  const open = edits.filter(({ keyPath, value }) => !same(before.value.get(...keyPath)?.value, value));
  let edited = text;
  for (const { keyPath, value } of open) {
    const document = parseYamlDocument(edited, path);
    if (!document.ok) return document;
    const place = findPlace(document.value, keyPath);
    if ('code' in place) return fail(place);
    edited = place.write(value);
  }
  return readsBack(before.value.entries, edited, open, path, parsed.value);
}

/** A place in the text that an edit goes to; `write` gives the whole new text. */
interface Place {
  readonly write: (value: FileValue) => string;
}

type Collection = YAMLMap | YAMLSeq;

/** Walks down to where `keyPath` is, or would be, written; a diagnostic says what forbids a change there. */
function findPlace(document: YamlDocument, keyPath: readonly string[]): Place | Diagnostic {
  const { root } = document;
  if (!root) return { write: (value) => appendToEmpty(document, nest(keyPath, value)) };
  let collection: Collection = root;
  for (const [depth, name] of keyPath.entries()) {
    const rest = keyPath.slice(depth + 1);
    const anchor = anchorProblem(document, collection, name);
    if (anchor) return anchor;
    const step = isSeq(collection) ? itemOf(document, collection, name) : pairOf(document, collection, name);
    if ('code' in step) return step;
    if (step.kind === 'absent') {
      const map = collection as YAMLMap;
      return { write: (value) => insertPair(document, map, name, nest(rest, value)) };
    }
    const forbidden = nodeProblem(document, step.node, name, rest.length === 0);
    if (forbidden) return forbidden;
    if (rest.length === 0) return replacement(document, collection, step, (value) => value);
    if (isMap(step.node) || isSeq(step.node)) collection = step.node;
    else if (isEmpty(step.node)) return replacement(document, collection, step, (value) => nest(rest, value));
    else {
      const help = `make ${name} a map of settings, or set ${rest.join('.')} elsewhere`;
      return document.problem(
        'yaml-not-a-mapping',
        offsetOf(step),
        `${name} holds one value, not settings of its own`,
        help,
      );
    }
  }
  throw new Error('an edit needs a key');
}

/** The value under one key (or at one place of a list), and where text for it goes when nothing is written yet. */
type Step =
  | { readonly kind: 'absent' }
  | {
      readonly kind: 'present';
      readonly node: ParsedNode | null;
      readonly key: ParsedNode | null;
      readonly colonEnd: number | undefined;
    };
type Present = Extract<Step, { kind: 'present' }>;

function pairOf(document: YamlDocument, map: YAMLMap, name: string): Step | Diagnostic {
  const found = (map.items as Pair<ParsedNode | null, ParsedNode | null>[]).filter(
    ({ key }) => key !== null && !isMergeKey(key) && keyName(key, document) === name,
  );
  const [pair, second] = found;
  if (second) {
    const message = `${name} stands here a second time, and only the last one holds`;
    return document.problem('yaml-duplicate-key', second.key!.range[0], message, `remove all but one ${name} line`);
  }
  if (pair) return { kind: 'present', node: pair.value, key: pair.key, colonEnd: colonEnd(pair) };
  const merged = mergedPairs(map, document).find((candidate) => candidate.name === name);
  if (!merged) return { kind: 'absent' };
  const mergeKey = map.items.find(({ key }) => isMergeKey(key as ParsedNode))!.key as ParsedNode;
  const message = `${name} comes in through this merge key`;
  return document.problem('yaml-merge-key', mergeKey.range[0], message, `write ${name} under the key itself`);
}

function itemOf(document: YamlDocument, list: YAMLSeq, name: string): Present | Diagnostic {
  const item = /^\d+$/.test(name) ? (list.items[Number(name)] as ParsedNode | undefined) : undefined;
  if (item) return { kind: 'present', node: item, key: null, colonEnd: undefined };
  const message = `the list has no place ${name}`;
  return document.problem(
    'yaml-not-a-mapping',
    list.range![0],
    message,
    `add it to the list, which has ${list.items.length}`,
  );
}

function colonEnd(pair: Pair): number | undefined {
  const colon = pair.srcToken?.sep?.find((token) => token.type === 'map-value-ind');
  return colon && colon.offset + colon.source.length;
}

/** What about a node forbids changing it (or, for a parent, what is inside it). */
function nodeProblem(
  document: YamlDocument,
  node: ParsedNode | null,
  name: string,
  last: boolean,
): Diagnostic | undefined {
  if (node === null) return undefined;
  const at = node.range[0];
  if (isAlias(node)) {
    const help = `write the value of ${name} out in place of *${node.source}`;
    return document.problem('yaml-alias', at, `${name} is an alias of a value written elsewhere`, help);
  }
  if (last && node.anchor !== undefined) {
    const help = `remove &${node.anchor}, and write the value out where *${node.anchor} stands`;
    return document.problem('yaml-anchor', at, `${name} carries an anchor that other places may use`, help);
  }
  const raw = document.text.slice(node.range[0], node.range[1]);
  if (last && /\$\{|\{\{/.test(raw)) {
    const message = `${name} is filled in from elsewhere`;
    return document.problem('yaml-interpolation', at, message, `write a plain value for ${name}`);
  }
  if (last && node.tag && isScalar(node)) {
    return document.problem('yaml-tag', at, `${name} carries a tag`, `write ${name} as a plain value`);
  }
  if (last && isBlock(node) && /(?:^|\s)#/.test(raw)) {
    const help = `change ${name} by hand, or move its comments above the key`;
    return document.problem('yaml-comment', at, `the value of ${name} holds comments that would be lost`, help);
  }
  return undefined;
}

function anchorProblem(document: YamlDocument, collection: Collection, name: string): Diagnostic | undefined {
  const { anchor } = collection;
  if (anchor === undefined || !document.usedAnchors.has(anchor)) return undefined;
  const message = `a change of ${name} would also change every place that says *${anchor}`;
  return document.problem('yaml-anchor', collection.range![0], message, `write the values out where *${anchor} stands`);
}

function replacement(
  document: YamlDocument,
  inside: Collection,
  step: Present,
  wrap: (value: FileValue) => FileValue,
): Place {
  const { text } = document;
  const { node, key } = step;
  const place: ScalarPlace = { flow: inside.flow === true, quote: quoteOf(node, inside) };
  return {
    write: (value) => {
      const written = formatFlow(wrap(value), place);
      // `key` alone in `{key}`.
      if (node === null || (isEmpty(node) && step.colonEnd === undefined)) {
        const at = step.colonEnd ?? (key ?? node)!.range[1];
        return splice(text, at, at, step.colonEnd === undefined && key ? `: ${written}` : ` ${written}`);
      }
      if (isEmpty(node)) return splice(text, step.colonEnd!, step.colonEnd!, ` ${written}`);
      const end = node.range[0] + text.slice(node.range[0], node.range[1]).trimEnd().length;
      // A block begins on the line after its key.
      const start = isBlock(node) && step.colonEnd !== undefined ? step.colonEnd : node.range[0];
      return splice(text, start, end, start === step.colonEnd ? ` ${written}` : written);
    },
  };
}

function insertPair(document: YamlDocument, map: YAMLMap, name: string, value: FileValue): string {
  const { text } = document;
  const last = map.items.at(-1) as Pair<ParsedNode, ParsedNode | null> | undefined;
  if (map.flow === true) {
    const quote = isJsonLike(map) ? 'double' : 'plain';
    const place: ScalarPlace = { flow: true, quote };
    const pair = `${formatScalar(name, place)}: ${formatFlow(value, place)}`;
    const at = last ? endOfPair(last) : map.range![0] + 1;
    return splice(text, at, at, last ? `, ${pair}` : pair);
  }
  const first = (map.items[0]!.key as ParsedNode).range[0];
  const indent = text
    .slice(text.lastIndexOf('\n', first - 1) + 1, first)
    .replace(/^\ufeff/, '')
    .replace(/\S/g, ' ');
  const end = endOfPair(last!);
  const lines = blockLines(indent, name, value);
  const newline = text.indexOf('\n', text[end - 1] === '\n' ? end - 1 : end);
  if (newline < 0) return `${text}${lineEnd(text)}${lines.join(lineEnd(text))}`;
  return splice(text, newline + 1, newline + 1, lines.map((line) => line + lineEnd(text)).join(''));
}

function appendToEmpty({ text }: YamlDocument, value: FileValue): string {
  const eol = lineEnd(text);
  const gap = text === '' || text === '\ufeff' || text.endsWith('\n') ? '' : eol;
  const lines = Object.entries(value as { [key: string]: FileValue }).flatMap(([key, item]) =>
    blockLines('', key, item),
  );
  return `${text}${gap}${lines.join(eol)}${gap === '' ? eol : ''}`;
}

/** A new key of a block mapping: a map of settings gets a line for each. */
function blockLines(indent: string, name: string, value: FileValue): string[] {
  const place: ScalarPlace = { flow: false, quote: 'plain' };
  const key = formatScalar(name, place);
  if (!isMapping(value) || Object.keys(value).length === 0) return [`${indent}${key}: ${formatFlow(value, place)}`];
  return [
    `${indent}${key}:`,
    ...Object.entries(value).flatMap(([inner, item]) => blockLines(`${indent}  `, inner, item)),
  ];
}

/** End of the last character that belongs to the pair, comments not counted. */
function endOfPair(pair: Pair<ParsedNode | null, ParsedNode | null>): number {
  if (pair.value && !isEmpty(pair.value)) return endOfNode(pair.value);
  return colonEnd(pair) ?? pair.key!.range[1];
}

function endOfNode(node: ParsedNode): number {
  if (isMap(node) && !node.flow) return endOfPair(node.items.at(-1) as Pair<ParsedNode, ParsedNode>);
  const item = isSeq(node) && !node.flow ? (node.items.at(-1) as ParsedNode | null) : null;
  return item ? endOfNode(item) : node.range[1];
}

function quoteOf(node: ParsedNode | null, inside: Collection): ScalarPlace['quote'] {
  if (isScalar(node) && node.type === 'QUOTE_SINGLE') return 'single';
  if (isScalar(node) && node.type === 'QUOTE_DOUBLE') return 'double';
  return inside.flow && isMap(inside) && isJsonLike(inside) ? 'double' : 'plain';
}

const isJsonLike = (map: YAMLMap): boolean => (map.items[0]?.key as Scalar | undefined)?.type === 'QUOTE_DOUBLE';

const isEmpty = (node: ParsedNode | null): boolean =>
  node === null || (isScalar(node) && node.type === 'PLAIN' && node.source === '');

const isBlock = (node: ParsedNode): boolean =>
  isScalar(node) ? node.type === 'BLOCK_LITERAL' || node.type === 'BLOCK_FOLDED' : !isAlias(node) && !node.flow;

const offsetOf = (step: Present): number => (step.key ?? step.node)!.range[0];

const nest = (keyPath: readonly string[], value: FileValue): FileValue =>
  keyPath.reduceRight<FileValue>((inner, key) => ({ [key]: inner }), value);

const splice = (text: string, start: number, end: number, written: string): string =>
  text.slice(0, start) + written + text.slice(end);

const lineEnd = (text: string): string => (/\r?\n/.exec(text)?.[0] === '\r\n' ? '\r\n' : '\n');

const same = (left: FileValue | undefined, right: FileValue): boolean => JSON.stringify(left) === JSON.stringify(right);

/** The last guard: the new text must say what was asked for, and the same as before in every other place. */
function readsBack(
  before: readonly { readonly keyPath: readonly string[]; readonly value: FileValue }[],
  edited: string,
  edits: readonly YamlEdit[],
  path: string,
  document: YamlDocument,
): Result<string> {
  const after = readYaml(edited, path);
  const wrong = edits.find(({ keyPath, value }) => !after.ok || !same(after.value.get(...keyPath)?.value, value));
  const touched = (keyPath: readonly string[]): boolean =>
    edits.some((edit) => isPrefix(keyPath, edit.keyPath) || isPrefix(edit.keyPath, keyPath));
  const moved = before.find(
    ({ keyPath, value }) => !touched(keyPath) && !(after.ok && same(after.value.get(...keyPath)?.value, value)),
  );
  if (!wrong && !moved) return ok(edited);
  const name = (wrong ?? edits[0]!).keyPath.join('.');
  const message = moved
    ? `${name} cannot be set here without changing ${moved.keyPath.join('.')}`
    : `${name} cannot be set here so that it reads back`;
  const help = document.text.endsWith('\n') ? `set ${name} by hand` : 'end the last line of the file with a newline';
  return fail(document.problem('yaml-edit', document.root?.range[0] ?? 0, message, help));
}

const isPrefix = (prefix: readonly string[], keyPath: readonly string[]): boolean =>
  prefix.length <= keyPath.length && prefix.every((key, index) => key === keyPath[index]);

export { readYaml } from './yaml-read.ts';
