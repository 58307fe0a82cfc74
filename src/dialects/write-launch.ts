import { error, fail, ok, type Result } from '../core/index.ts';
import { type SettingName, settingKey } from '../spec/index.ts';
import { applyEdits } from './apply-edits.ts';
import type { FittedLaunch, LaunchReading, WriteRequest } from './contract.ts';
import type { SourceEdit } from './dialect.ts';

/**
 * Writes changes into a launch: flags in place or appended, files as copies that the command then names. The user's own
 * files stay as they are. Errors: every setting that this launch cannot be told.
 */
export function writeLaunch(reading: LaunchReading, request: WriteRequest): Result<FittedLaunch> {
  const { internals } = reading;
  if (!internals) throw new Error('this reading was not made by readLaunch or readNativeConfig');
  const wanted = new Map<SettingName, unknown>(request.changes.map((change) => [change.setting, change.to]));
  if (request.outputDir !== undefined) wanted.set('outputDir', request.outputDir);
  if (request.resumeFrom !== undefined) wanted.set('resumeFromCheckpoint', request.resumeFrom);
  const edits: SourceEdit[] = [];
  const refused: string[] = [];
  for (const [setting, to] of wanted) {
    const written = internals.edit(setting, to, wanted);
    if (written.ok) edits.push(...written.edits);
    else refused.push(`${settingKey(setting)}: ${written.reason}`);
  }
  if (refused.length > 0) {
    return fail(
      ...refused.map((reason) =>
        error('not-writable', `the launch cannot be told ${reason}`, { help: 'change it by hand' }),
      ),
    );
  }
  const applied = applyEdits(internals.view, [...edits, ...internals.always(wanted)], request.copyFolder);
  if (!applied.ok) return applied;
  const { words: _, ...fitted } = internals.outer?.(applied.value, request.copyFolder) ?? applied.value;
  return ok(fitted);
}
