import type { DialectSupport, SettingSupport } from '../dialects/index.ts';
import { settingKey } from '../spec/index.ts';
import { paint, plainSigns, type TextOptions } from './text-options.ts';
import { wrap } from './wrap.ts';

const INDENT = 2;
const SETTING = 30;

/** `snug dialects`: every dialect with its settings, and the wrappers that are looked through. */
export function renderDialects(dialects: readonly DialectSupport[], options: TextOptions): string {
  const wrappers = dialects.filter((dialect) => dialect.kind === 'wrapper').map((dialect) => dialect.id);
  const blocks = dialects.filter((dialect) => dialect.kind !== 'wrapper').map((dialect) => block(dialect, options));
  const looked = `${head('wrappers', 'looked through, and kept as they are', options)}\n${indented(wrappers.join(', '), options)}`;
  const more = 'snug dialects NAME shows each setting, and why one is not written';
  return plainSigns(options, [...blocks, looked, wrap(more, options.width, 0)].join('\n\n'));
}

function block(dialect: DialectSupport, options: TextOptions): string {
  const named = (written: boolean): string =>
    dialect.settings
      .filter((each) => (each.write === true) === written)
      .map((each) => settingKey(each.setting))
      .join(', ');
  const [both, only] = [named(true), named(false)];
  return [
    head(dialect.id, `${dialect.kind === 'native' ? 'trainer' : dialect.kind}, ${dialect.title}`, options),
    ...(dialect.commands[0] === undefined ? [] : [indented(`$ ${dialect.commands[0]}`, options)]),
    ...(dialect.fileSign === undefined ? [] : [indented(`a file alone: ${dialect.fileSign}`, options)]),
    ...(dialect.readOnly === undefined ? [] : [indented(`nothing is written: ${dialect.readOnly}`, options)]),
    ...(both === '' ? [] : [indented(`read and written: ${both}`, options)]),
    ...(only === '' ? [] : [indented(`read: ${only}`, options)]),
  ].join('\n');
}

/** `snug dialects NAME`: a line for each setting. */
export function renderDialect(dialect: DialectSupport, options: TextOptions): string {
  const rows = dialect.settings.map((each) =>
    wrap(`${settingKey(each.setting).padEnd(SETTING)}${writtenText(each, dialect)}`, options.width, SETTING),
  );
  const examples = dialect.commands.map((command) => indented(`$ ${command}`, options));
  const file = dialect.fileSign === undefined ? [] : [indented(`a file alone: ${dialect.fileSign}`, options)];
  const lines = [head(dialect.id, dialect.title, options), indented(dialect.docs, options), ...examples, ...file];
  return plainSigns(options, [...lines, ...(rows.length > 0 ? ['', ...rows] : [])].join('\n'));
}

function writtenText({ write }: SettingSupport, { kind, readOnly }: DialectSupport): string {
  if (write === true) return 'read and written';
  const why = readOnly ?? write;
  if (why !== undefined) return `read; not written: ${why}`;
  return kind === 'trainer' ? 'read' : 'read, the trainer is told';
}

const head = (id: string, text: string, options: TextOptions): string =>
  wrap(`${id}  ${text}`, options.width, INDENT).replace(id, paint(options, 'bold', id));

const indented = (text: string, options: TextOptions): string =>
  wrap(`${' '.repeat(INDENT)}${text}`, options.width, INDENT * 2);
