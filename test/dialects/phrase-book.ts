import { parse } from 'shell-quote';
import type { Diagnostic } from '../../src/core/index.ts';
import type { FittedLaunch, LaunchReading } from '../../src/dialects/index.ts';
import { readLaunch, writeLaunch } from '../../src/dialects/index.ts';
import { formatOrigin, type SettingName, type SpecChange } from '../../src/spec/index.ts';
import { contextOf, type Machine } from './reading.ts';

/** Words of one line, quotes taken off. */
export const words = (line: string): string[] => parse(line).map(String);

export function read(line: string, machine: Machine = {}): LaunchReading {
  const reading = readLaunch(words(line), contextOf(machine));
  if (!reading.ok) throw new Error(JSON.stringify(reading.error, null, 1));
  return reading.value;
}

export function problemsOf(line: string, machine: Machine = {}): readonly Diagnostic[] {
  const reading = readLaunch(words(line), contextOf(machine));
  if (reading.ok) throw new Error('the launch was read');
  return reading.error;
}

/** `value <- origin` of the settings asked for. */
export function said(reading: LaunchReading, ...names: SettingName[]): Record<string, string> {
  return Object.fromEntries(
    names.map((name) => {
      const setting = reading.spec[name];
      return [name, setting ? `${JSON.stringify(setting.value)} <- ${formatOrigin(setting.origin)}` : 'absent'];
    }),
  );
}

export const change = (setting: SettingName, to: unknown): SpecChange =>
  ({ setting, from: null, to, lever: 'test', class: 'exact', savesBytes: 0, cost: 'none' }) as SpecChange;

/** Writes settings into a launch, copies into /copies. */
export function rewrite(
  reading: LaunchReading,
  settings: Partial<Record<SettingName, unknown>>,
  more: { resumeFrom?: string; outputDir?: string } = {},
): FittedLaunch {
  const changes = Object.entries(settings).map(([name, to]) => change(name as SettingName, to));
  const fitted = writeLaunch(reading, { changes, copyFolder: '/copies', ...more });
  if (!fitted.ok) throw new Error(JSON.stringify(fitted.error, null, 1));
  return fitted.value;
}

/** Reads a fitted launch as the machine would see it: copies in place, variables set. */
export function readBack(fitted: FittedLaunch, machine: Machine = {}): LaunchReading {
  const files = { ...machine.files, ...Object.fromEntries(fitted.files.map((file) => [file.copy, file.text])) };
  const reading = readLaunch(
    fitted.argv,
    contextOf({ ...machine, files, environment: { ...machine.environment, ...fitted.env } }),
  );
  if (!reading.ok) throw new Error(JSON.stringify(reading.error, null, 1));
  return reading.value;
}
