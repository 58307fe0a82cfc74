import { describe, expect, it } from 'vitest';
import { editJson, parseJson } from '../../src/dialects/json-text.ts';

const edit = (text: string, keyPath: string[], value: number | boolean | string): string => {
  const edited = editJson(text, [{ keyPath, value }]);
  if (!edited.ok) throw new Error(JSON.stringify(edited.error));
  return edited.value;
};

describe('JSON text', () => {
  it.each([
    ['a value in place', '{"a": 1,  "b":2 }', ['b'], 3, '{"a": 1,  "b":3 }'],
    ['a nested value', '{"z": {"stage": 2}}', ['z', 'stage'], 3, '{"z": {"stage": 3}}'],
    ['the last of two', '{"a": 1, "a": 2}', ['a'], 9, '{"a": 1, "a": 9}'],
    ['a new key on a line of its own', '{\n\t"a": 1\n}', ['b'], true, '{\n\t"a": 1,\n\t"b": true\n}'],
    ['a new key in one line', '{"a":1}', ['b'], 2, '{"a":1, "b":2}'],
    ['a key of an empty object', '{}', ['b'], 2, '{"b": 2}'],
    ['a new object', '{"a": 1}', ['o', 'p'], 'q', '{"a": 1, "o": {"p":"q"}}'],
    ['Windows line ends', '{\r\n  "a": 1\r\n}', ['b'], 2, '{\r\n  "a": 1,\r\n  "b": 2\r\n}'],
  ])('takes %s', (_, text, keyPath, value, expected) => {
    expect(edit(text, keyPath, value)).toBe(expected);
    expect(JSON.parse(expected)).toBeTypeOf('object');
  });

  it.each([
    ['{"a": 1,}', '1:9', 'a comma before the closing bracket'],
    ['{"a" 1}', '1:6', 'a colon is missing after "a"'],
    ['{"a": 1\n "b": 2}', '2:2', 'a comma or } is missing'],
    ['{"a": "x}', '1:7', 'a string is not closed'],
    ["{'a': 1}", '1:2', 'a key in double quotes is missing'],
    ['{"a": 1} x', '1:10', 'text after the end of the value'],
    ['', '1:1', 'the text ends here'],
    ['{"a": // no', '1:7', 'unexpected /'],
    [`${'['.repeat(400)}`, '1:102', 'more than 100 levels of nesting'],
  ])('says what is wrong with %j', (text, place, message) => {
    const parsed = parseJson(text, 'f.json');
    expect(parsed.ok ? [] : parsed.error).toMatchObject([
      { message: `not valid JSON: ${message}`, location: `f.json:${place}` },
    ]);
  });

  it('reads what Python reads', () => {
    const text = '\ufeff{"a": [1e-5, -2, true, null, "\\u00e9\\n"], "b": {"c": []}}';
    const parsed = parseJson(text, 'f.json');
    expect(parsed.ok && parsed.value.value).toEqual({ a: [1e-5, -2, true, null, 'é\n'], b: { c: [] } });
  });
});
