/** Where a text stops being JSON, counted from 1. */
export interface TextPosition {
  readonly line: number;
  readonly column: number;
}

const TOKEN =
  /\s*(?:(?<mark>[{}[\]:,])|(?<string>"[^"\\\u0000-\u001f]*(?:\\(?:["\\/bfnrt]|u[\da-fA-F]{4})[^"\\\u0000-\u001f]*)*")|(?<other>-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?(?![\w.])|(?:true|false|null|NaN|-?Infinity)\b))/y;

type Expected = 'value' | 'value or ]' | 'key' | 'key or }' | 'colon' | 'comma or end' | 'nothing';

/** Takes one token in a state; undefined when it does not belong there. `open` is the stack of brackets. */
function next(expected: Expected, token: string, isString: boolean, open: string[]): Expected | undefined {
  const afterValue = (): Expected => (open.length > 0 ? 'comma or end' : 'nothing');
  const close = (): Expected => {
    open.pop();
    return afterValue();
  };
  switch (expected) {
    case 'nothing':
      return undefined;
    case 'colon':
      return token === ':' ? 'value' : undefined;
    case 'key':
    case 'key or }':
      if (isString) return 'colon';
      return token === '}' && expected === 'key or }' ? close() : undefined;
    case 'comma or end':
      if (token === ',') return open.at(-1) === '{' ? 'key' : 'value';
      return token === (open.at(-1) === '{' ? '}' : ']') ? close() : undefined;
    default:
      if (token === ']' && expected === 'value or ]') return close();
      if (token === '{' || token === '[') {
        open.push(token);
        return token === '{' ? 'key or }' : 'value or ]';
      }
      return isString || !/^[\]},:]$/.test(token) ? afterValue() : undefined;
  }
}

/**
 * The first place at which `text` cannot go on as JSON: JSON.parse names none for most errors in Node 20. Accepts what
 * Python's json reads beyond the standard (NaN, Infinity).
 */
export function findJsonError(text: string): TextPosition {
  const open: string[] = [];
  let expected: Expected | undefined = 'value';
  let offset = 0;
  TOKEN.lastIndex = 0;
  for (let match = TOKEN.exec(text); match; match = TOKEN.exec(text)) {
    const { mark, string, other } = match.groups!;
    const token = (mark ?? string ?? other)!;
    expected = next(expected, token, string !== undefined, open);
    if (expected === undefined) return positionAt(text, TOKEN.lastIndex - token.length);
    offset = TOKEN.lastIndex;
  }
  return positionAt(text, offset + /^\s*/.exec(text.slice(offset))![0].length);
}

function positionAt(text: string, offset: number): TextPosition {
  const before = text.slice(0, offset);
  const lineStart = before.lastIndexOf('\n') + 1;
  return { line: before.split('\n').length, column: offset - lineStart + 1 };
}
