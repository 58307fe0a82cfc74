import type { DialectSupport } from '../../dialects/index.ts';
import { settingKey } from '../../spec/index.ts';
import { SCHEMA_VERSION } from './check-json.ts';

/** `snug dialects --json`: one object; `written` false with a `reason` where it is known why. */
export const dialectsJson = (dialects: readonly DialectSupport[]) => ({
  schema_version: SCHEMA_VERSION,
  dialects: dialects.map(({ id, kind, title, docs, fileSign, commands, readOnly, settings }) => ({
    id,
    kind: kind === 'native' ? 'trainer' : kind,
    title,
    docs,
    file_sign: fileSign ?? null,
    examples: commands,
    read_only: readOnly ?? null,
    settings: settings.map(({ setting, write }) => ({
      setting: settingKey(setting),
      read: true,
      written: write === true,
      reason: typeof write === 'string' ? write : null,
    })),
  })),
});
