import type { Ports } from '../core/index.ts';
import type { LaunchReading } from '../dialects/index.ts';
import type { PythonCommand } from './packages.ts';

export function trainerPython(_ports: Ports, reading: LaunchReading): PythonCommand | undefined {
  return reading.python === undefined ? undefined : [reading.python];
}
