import { type SettingName, settingKey, type TrainingSpec } from '../../spec/index.ts';
import type { SourceEdit, Written } from '../dialect.ts';
import { cannot, wrote } from '../hf-argparser/written.ts';
import { type CommandTemplate, fillTemplate, missingPlaceholder } from './placeholders.ts';

export interface NativeCommand {
  readonly template: CommandTemplate;
  /** `resume:` as tokens, `{checkpoint}` in one of them. */
  readonly resume: readonly string[] | undefined;
}

/** A native command is told by its placeholders; undefined: ask the command's own trainer (a resume it knows itself). */
export function editNative(
  { template, resume }: NativeCommand,
  spec: TrainingSpec,
  setting: SettingName,
  to: unknown,
): Written | undefined {
  if (setting === 'resumeFromCheckpoint') {
    if (!resume) return undefined;
    const tokens = resume.map((token) => token.replaceAll('{checkpoint}', String(to)));
    return wrote({ kind: 'insert', at: template.tokens.length, key: 'resume', tokens });
  }
  const missing = missingPlaceholder(template, setting, spec[setting]?.value, to);
  if (missing === undefined) return wrote();
  if (setting === 'outputDir') return undefined;
  return cannot(`the command has no ${missing}, so it cannot be told ${settingKey(setting)}`);
}

/** The command with its placeholders filled from the plan. */
export function alwaysNative(
  { template }: NativeCommand,
  spec: TrainingSpec,
  changed: ReadonlyMap<SettingName, unknown>,
  argv: readonly string[],
): readonly SourceEdit[] {
  return fillTemplate(template, spec, changed).argv.flatMap((text, index): SourceEdit[] =>
    text === argv[index] ? [] : [{ kind: 'token', index, text }],
  );
}
