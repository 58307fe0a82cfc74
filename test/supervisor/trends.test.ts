import { expect, it, vi } from 'vitest';
import { classify, type MemoryGrowth } from '../../src/diagnosis/index.ts';
import { newText } from '../diagnosis/texts.ts';
import { puppet } from './rig.ts';

const GiB = 2 ** 30;
const OOM = `\ntorch.OutOfMemoryError: ${newText()}\n`;

/** A driver that counts up with the steps it is asked at. */
function growing(each: number): () => Promise<number> {
  let held = 6 * GiB;
  return async () => {
    held += each;
    return held;
  };
}

it('memory that grows with the steps is told of while the run goes on, and is why it ends', async () => {
  const onGrowth = vi.fn<(growth: MemoryGrowth, memory: string) => void>();
  const rig = puppet(
    [
      ['train', 'err', 1, 4000],
      ['err', OOM],
      ['exit', 1],
    ],
    {
      sampleEveryMs: 20,
      sampleVram: growing(GiB / 16),
      trends: { vramCapacityBytes: 24 * GiB, onGrowth },
    },
  );
  const evidence = await rig.evidence();
  expect(onGrowth.mock.calls.filter(([, memory]) => memory === 'vram')).toHaveLength(1);
  const [growth] = onGrowth.mock.calls[0]!;
  expect(growth.fullAtStep).toBeGreaterThan(growth.toStep);
  expect(evidence.vramGrowth!.bytesPerStep).toBeGreaterThan(0);
  expect(classify(evidence)).toMatchObject({ kind: 'vram_leak_growth' });
});

it('memory that stays is not, however the run ends', async () => {
  const onGrowth = vi.fn();
  const rig = puppet(
    [
      ['train', 'err', 1, 1500],
      ['err', OOM],
      ['exit', 1],
    ],
    { sampleEveryMs: 20, sampleVram: growing(0), trends: { vramCapacityBytes: 24 * GiB, onGrowth } },
  );
  const evidence = await rig.evidence();
  expect(onGrowth).not.toHaveBeenCalled();
  expect(evidence.vramGrowth).toBeUndefined();
  expect(classify(evidence)).toMatchObject({ kind: 'vram_capacity' });
});
