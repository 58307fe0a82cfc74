import {
  type Alias,
  Composer,
  type CST,
  type Document,
  isAlias,
  isMap,
  isScalar,
  LineCounter,
  type ParsedNode,
  Parser,
  type Scalar,
  visit,
  type YAMLMap,
  type YAMLParseError,
} from 'yaml';
import { type Diagnostic, error, fail, ok, type Result } from '../core/index.ts';

/** A YAML file with one document, parsed without giving scalars a type: what a scalar means is up to its reader. */
export interface YamlDocument {
  readonly text: string;
  readonly path: string;
  /** The mapping at the top; undefined: nothing but comments. */
  readonly root: YAMLMap.Parsed | undefined;
  /** The node that `*name` stands for at that place. */
  readonly resolve: (alias: Alias) => ParsedNode | undefined;
  /** Anchors that some `*alias` of the document uses. */
  readonly usedAnchors: ReadonlySet<string>;
  readonly lineOf: (offset: number) => number;
  /** A diagnostic that points at an offset. */
  readonly problem: (code: string, offset: number, message: string, help: string) => Diagnostic;
}

/** Far above any config, far below what the recursive composer can take. */
const MAX_DEPTH = 100;
const MAX_EXCERPT = 160;
/** Places that aliases may stand for; a nest of aliases that doubles with each line passes this at once. */
export const MAX_ALIASES = 1000;

/** Parses the text of one YAML file; every problem is one diagnostic with `path:line:column`, the line and the way out. */
export function parseYamlDocument(text: string, path: string): Result<YamlDocument> {
  const lines = new LineCounter();
  const problem = problemAt(text, path, lines);
  const open = firstTooOpen(text, lines);
  const tokens = open === undefined ? [...new Parser(lines.addNewLine).parse(text)] : [];
  const deep = open ?? firstTooDeep(tokens);
  if (deep !== undefined) {
    return fail(
      problem('yaml-too-deep', deep, `more than ${MAX_DEPTH} levels of nesting`, 'write the settings on fewer levels'),
    );
  }
  const composer = new Composer({
    version: '1.1',
    schema: 'failsafe',
    merge: false,
    uniqueKeys: false,
    keepSourceTokens: true,
    prettyErrors: false,
    logLevel: 'silent',
    lineCounter: lines,
  });
  const documents = [...composer.compose(tokens, true, text.length)] as Document.Parsed<ParsedNode>[];
  const errors = documents.flatMap((document) => document.errors);
  // The first syntax error is the cause; those after it are mostly the parser finding its feet again.
  if (errors.length > 0) return fail(syntaxProblem(errors[0]!, text, problem));
  const [document, second] = documents;
  if (second) {
    return fail(
      problem(
        'yaml-multiple-documents',
        startOfDocument(second, text),
        'a second document begins here, and a trainer reads only files with one',
        'keep one document in the file, without a further --- line',
      ),
    );
  }
  const contents = document?.contents ?? null;
  if (contents !== null && !isMap(contents) && !isEmptyScalar(contents)) {
    const at = contents.range[0];
    return fail(
      problem('yaml-not-a-mapping', at, 'the file is not a list of keys and values', 'write it as key: value lines'),
    );
  }
  const unhashable = isMap(contents) ? firstUnhashableKey(contents) : undefined;
  if (unhashable !== undefined) {
    const help = 'write the key as one word; a {{ template }} must be filled in before the file is read';
    return fail(problem('yaml-key', unhashable, 'a key that is itself a list or a map', help));
  }
  const anchored = new Map<Alias, ParsedNode>();
  const problems = document ? resolveAliases(document, anchored, problem) : [];
  if (problems.length > 0) return fail(...problems);
  return ok({
    text,
    path,
    root: isMap(contents) ? (contents as YAMLMap.Parsed) : undefined,
    resolve: (alias) => anchored.get(alias),
    usedAnchors: new Set([...anchored.keys()].map((alias) => alias.source)),
    lineOf: (offset) => positionOf(offset, text, lines).line,
    problem,
  });
}

/** Fills `anchored` with the node of every alias: the last one of that name before it. */
function resolveAliases(
  document: Document.Parsed<ParsedNode>,
  anchored: Map<Alias, ParsedNode>,
  problem: YamlDocument['problem'],
): Diagnostic[] {
  const problems: Diagnostic[] = [];
  const anchors = new Map<string, ParsedNode>();
  visit(document, {
    Node(_, node) {
      const anchor = isAlias(node) ? undefined : (node as ParsedNode & { anchor?: string }).anchor;
      if (anchor !== undefined) anchors.set(anchor, node as ParsedNode);
      if (!isAlias(node)) return;
      const target = anchors.get(node.source);
      if (target) anchored.set(node, target);
      else {
        const message = `*${node.source} stands for an anchor that is not defined before it`;
        problems.push(problem('yaml-alias', node.range![0], message, `define it with &${node.source} further up`));
      }
    },
  });
  return problems;
}

/** Offset of the first token nested too deep, found without recursion. */
/** Brackets that are open at once and can be no config: the parser would take seconds to say so. */
const MAX_OPEN = 1000;

function firstTooOpen(text: string, lines: LineCounter): number | undefined {
  let depth = 0;
  let deep = 0;
  for (let at = 0; at < text.length; at += 1) {
    const character = text.charCodeAt(at);
    if (character === 0x5b || character === 0x7b) {
      depth += 1;
      if (depth === MAX_DEPTH) deep = at;
    } else if ((character === 0x5d || character === 0x7d) && depth > 0) depth -= 1;
    if (depth <= MAX_OPEN) continue;
    lines.addNewLine(0);
    for (let line = text.indexOf('\n'); line >= 0 && line < deep; line = text.indexOf('\n', line + 1)) {
      lines.addNewLine(line + 1);
    }
    return deep;
  }
  return undefined;
}

function firstTooDeep(tokens: readonly CST.Token[]): number | undefined {
  const open: [CST.Token, number][] = tokens.map((token) => [token, 0]);
  let found: number | undefined;
  while (open.length > 0) {
    const [token, depth] = open.pop()!;
    if (depth > MAX_DEPTH) {
      found = Math.min(found ?? token.offset, token.offset);
      continue;
    }
    if (token.type === 'document' && token.value) open.push([token.value, depth + 1]);
    if ('items' in token) {
      for (const { key, value } of token.items) {
        if (key) open.push([key, depth + 1]);
        if (value) open.push([value, depth + 1]);
      }
    }
  }
  return found;
}

function problemAt(text: string, path: string, lines: LineCounter): YamlDocument['problem'] {
  return (code, offset, message, help) => {
    const { line, column } = positionOf(offset, text, lines);
    const start = lines.lineStarts[line - 1] ?? 0;
    const excerpt = lineAround(text, start)
      .replace(/^\ufeff/, '')
      .trimEnd()
      .slice(0, MAX_EXCERPT);
    return error(code, message, {
      location: `${path}:${line}:${column}`,
      ...(excerpt ? { excerpt } : {}),
      help,
    });
  };
}

function positionOf(offset: number, text: string, lines: LineCounter): { line: number; column: number } {
  // An error at the very end of the file is about its last line, not about the empty one after it.
  const inside = Math.max(0, Math.min(offset, text.trimEnd().length));
  const { line, col } = lines.linePos(inside);
  return { line: Math.max(1, line), column: Math.max(1, col) };
}

function syntaxProblem(cause: YAMLParseError, text: string, problem: YamlDocument['problem']): Diagnostic {
  const [at] = cause.pos;
  if (cause.code === 'TAB_AS_INDENT') {
    return problem('yaml-tab', at, 'a tab where YAML allows only spaces', 'replace the tab with spaces');
  }
  if (/\{\{|\{%/.test(lineAround(text, at))) {
    const help = 'fill the template first and give snug the file it produces';
    return problem('yaml-interpolation', at, 'a {{ template }} that is not YAML by itself', help);
  }
  const message = `not valid YAML: ${cause.message.charAt(0).toLowerCase()}${cause.message.slice(1).replace(/\.$/, '')}`;
  return problem('yaml-syntax', at, message, HELP[cause.code] ?? 'correct the line; the trainer would stop at it too');
}

const HELP: Readonly<Record<string, string>> = {
  BLOCK_AS_IMPLICIT_KEY:
    'put the value in quotes, or begin the inner key on its own line, indented like its neighbours',
  BAD_INDENT: 'close the bracket, or indent the lines alike',
  MISSING_CHAR: 'close the quote or bracket, or put the missing colon after the key',
  MULTILINE_IMPLICIT_KEY: 'check that the line has a colon after its key, followed by a space',
  BAD_ALIAS: 'define the anchor with &name before it is used',
};

function lineAround(text: string, offset: number): string {
  const from = text.lastIndexOf('\n', offset - 1) + 1;
  const to = text.indexOf('\n', offset);
  return text.slice(from, to < 0 ? undefined : to);
}

/** Where the `---` of a later document stands. */
function startOfDocument(document: Document.Parsed<ParsedNode>, text: string): number {
  const marker = text.lastIndexOf('---', document.contents?.range[0] ?? document.range[0]);
  return marker > 0 ? marker : document.range[0];
}

const isEmptyScalar = (node: unknown): boolean => isScalar(node) && (node as Scalar).source === '';

function firstUnhashableKey(root: ParsedNode): number | undefined {
  let found: number | undefined;
  visit(root, {
    Pair(_, { key, value }) {
      if (isScalar(key) || key === null || isAlias(key)) return undefined;
      // `{{ name }}` alone is a template, which the entry reports; a list or map as a key is what PyYAML refuses.
      if (value === null && isMap(key)) return visit.SKIP;
      found = (key as ParsedNode).range[0];
      return visit.BREAK;
    },
  });
  return found;
}
