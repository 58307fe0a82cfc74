import { expect, it } from 'vitest';
import { createByteQueue } from '../../src/supervisor/byte-queue.ts';

const everything = (queue: ReturnType<typeof createByteQueue>, giveBack: boolean): string => {
  let text = '';
  for (let piece = queue.take(); piece; piece = queue.take()) {
    text += piece.bytes.toString('latin1');
    if (giveBack) queue.giveBack(piece);
  }
  return text;
};

it.each([true, false])(
  'gives out what it was given, in order, whatever the sizes (blocks given back: %s)',
  (giveBack) => {
    const queue = createByteQueue();
    let expected = '';
    let got = '';
    for (let round = 0; round < 40; round++) {
      const text = String.fromCharCode(97 + (round % 26)).repeat((round * 7919) % 150_001);
      queue.add(Buffer.from(text));
      expected += text;
      if (round % 5 === 4) got += everything(queue, giveBack);
    }
    got += everything(queue, giveBack);
    expect(got === expected).toBe(true);
    expect(queue.length()).toBe(0);
  },
);

it('keeps a copy: whoever gave the bytes may overwrite them', () => {
  const queue = createByteQueue();
  const bytes = Buffer.from('loss 0.41');
  queue.add(bytes);
  bytes.fill('#');
  expect(queue.length()).toBe(9);
  expect(queue.take()?.bytes.toString()).toBe('loss 0.41');
});

it('does not write into a block before it is given back', () => {
  const queue = createByteQueue();
  queue.add(Buffer.from('first'));
  const piece = queue.take()!;
  queue.add(Buffer.from('other'));
  expect(piece.bytes.toString()).toBe('first');
  queue.giveBack(queue.take()!);
  queue.add(Buffer.from('third'));
  expect(piece.bytes.toString()).toBe('first');
});
