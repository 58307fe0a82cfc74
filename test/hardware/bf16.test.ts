import { describe, expect, it } from 'vitest';
import { bf16Warnings, resolveGpuName } from '../../src/hardware/index.ts';

describe('bf16Warnings', () => {
  it.each([
    ['t4', 1],
    ['v100-32gb', 1],
    ['rtx-3060', 0],
    ['a100-40gb', 0],
    ['24GiB', 0],
  ])('%s', (name, warnings) => {
    const card = resolveGpuName(name);
    if (!card.ok) throw new Error(`no card ${name}`);
    const found = bf16Warnings(card.value.gpus[0]!);
    expect(found).toHaveLength(warnings);
    for (const { code, severity, message } of found) {
      expect([code, severity]).toEqual(['no-bf16', 'warning']);
      expect(message).toContain('compute capability 7.');
    }
  });
});
