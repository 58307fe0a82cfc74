import { describe, expect, it } from 'vitest';
import { classify, createLogReader, readLog } from '../../../src/diagnosis/index.ts';
import { countNewlines, createByteScan } from '../../../src/diagnosis/log/byte-scan.ts';
import { oom, traceback } from '../texts.ts';

const bytesOf = (text: string): Uint8Array => new TextEncoder().encode(text);

function readPieces(text: string | Uint8Array, size = 40_000) {
  const bytes = typeof text === 'string' ? bytesOf(text) : text;
  const reader = createLogReader();
  for (let at = 0; at < bytes.length; at += size) reader.push(bytes.subarray(at, at + size));
  return reader.end();
}

const calm = (lines: number, from = 0): string =>
  Array.from(
    { length: lines },
    (_, index) => `step ${from + index} done, host memory 31.5 GiB, gpu memory 20.1 GiB\n`,
  ).join('');

describe('a search for many words at once', () => {
  const words = ['kettle on', 'brass lamp', 'lamplight', 'on fire!'];
  const found = (text: string, from = 0, to?: number): number[] => {
    const bytes = bytesOf(text);
    const hits: number[] = [];
    createByteScan(words)(bytes, from, to ?? bytes.length, (offset) => hits.push(offset));
    return hits.sort((left, right) => left - right);
  };

  it('finds every word wherever it stands', () => {
    for (let lead = 0; lead < 12; lead++) {
      for (const word of words) expect(found(`${'.'.repeat(lead)}${word}`), `${lead} ${word}`).toEqual([lead]);
    }
    expect(found('a brass lamp, a kettle on, lamplight')).toEqual([2, 16, 27]);
  });

  it('finds none that is only begun, or that begins outside', () => {
    expect(found('kettle o brass lam lamplighs')).toEqual([]);
    expect(found('kettle on, kettle on', 1)).toEqual([11]);
    expect(found('kettle on, kettle on', 0, 11)).toEqual([0]);
    // It begins before the end and goes on behind it.
    expect(found('.. kettle on', 0, 5)).toEqual([3]);
  });

  it('refuses words too short to be found by', () => {
    expect(() => createByteScan(['short'])).toThrow(/too short/);
  });

  it('counts line ends at any alignment', () => {
    const bytes = bytesOf('\n\n\nab\ncd\n\n\n\n\nxyz\n');
    for (let from = 0; from < bytes.length; from++) {
      for (let to = from; to <= bytes.length; to++) {
        expect(countNewlines(bytes, from, to)).toBe(bytes.subarray(from, to).filter((byte) => byte === 10).length);
      }
    }
  });
});

describe('a log too large to take apart', () => {
  const failing = `${traceback(['main: trainer.train()', 'backward: loss.backward()'], oom())}\n`;

  it('is read as the whole of it would be', () => {
    for (const log of [
      `${calm(9000)}${failing}`,
      `${failing}${calm(9000)}`,
      `${calm(9000)}${failing}${calm(9000, 9000)}`,
      `${calm(5000)}${traceback(['read_row: parse(row)'], 'ValueError: a shape is wrong')}\n${calm(5000)}${failing}${calm(5000)}`,
    ]) {
      const reading = readPieces(log);
      const whole = readLog(bytesOf(log));
      expect(classify(reading.evidence)).toEqual(classify(whole));
      expect(reading.lines).toBe(log.split('\n').length - 1);
    }
  });

  it('keeps the number of a line that stands deep inside', () => {
    const { evidence } = readPieces(`${calm(9000)}${oom()}\n${calm(9000)}`);
    expect(evidence.lines.map(({ line }) => line)).toEqual([9001]);
  });

  it('sees a trainer go on long after it ran out of memory', () => {
    const bar = (done: number): string => `train: ${done}%|##| ${done}/100 [00:01<00:09, 1.00it/s]\n`;
    const log = `${bar(10)}${bar(11)}${oom()}\n${calm(9000)}${bar(12)}${bar(13)}${bar(14)}`;
    const reading = readPieces(log);
    expect(reading.evidence.lines[0]).toMatchObject({ followedByProgress: true });
    expect(classify(reading.evidence)).toBeUndefined();
  });

  it('is not slowed or blinded by a flood of one line', () => {
    const flood = Array.from({ length: 12_000 }, (_, row) => `Traceback (most recent call last): row ${row} was bad\n`);
    flood.splice(6100, 0, `${oom()}\n`);
    expect(classify(readPieces(flood.join('')).evidence)).toMatchObject({ kind: 'vram_capacity' });
  });
});

describe('what a log is written in', () => {
  const kindOf = (bytes: Uint8Array) => classify(readPieces(bytes, 777).evidence)?.kind;
  const log = `${calm(200)}${oom()}\n`;

  it('does not matter', () => {
    const utf16 = Buffer.from(log, 'utf16le');
    expect(kindOf(bytesOf(log))).toBe('vram_capacity');
    expect(kindOf(bytesOf(log.replaceAll('\n', '\r\n')))).toBe('vram_capacity');
    expect(kindOf(bytesOf(`\ufeff${log}`))).toBe('vram_capacity');
    expect(kindOf(Buffer.concat([Buffer.from([0xff, 0xfe]), utf16]))).toBe('vram_capacity');
    expect(kindOf(utf16)).toBe('vram_capacity');
    expect(kindOf(Buffer.concat([Buffer.from([0xfe, 0xff]), Buffer.from(utf16).swap16()]))).toBe('vram_capacity');
  });

  it('of a notebook is in its outputs; what a cell quotes is no failure', () => {
    const notebook = (source: string, outputs: object[]) =>
      bytesOf(
        JSON.stringify({ cells: [{ cell_type: 'code', source: [source], outputs }], nbformat: 4, nbformat_minor: 5 }),
      );
    const error = {
      output_type: 'error',
      ename: 'OutOfMemoryError',
      evalue: oom().replace('torch.OutOfMemoryError: ', ''),
      traceback: [
        '\u001b[0;31m-----\u001b[0m',
        `\u001b[0;31mOutOfMemoryError\u001b[0m: ${oom().replace('torch.OutOfMemoryError: ', '')}`,
      ],
    };
    expect(kindOf(notebook('trainer.train()', [{ output_type: 'stream', text: ['step 1\n'] }, error]))).toBe(
      'vram_capacity',
    );
    expect(kindOf(notebook('trainer.train()', [{ ...error, traceback: [] }]))).toBe('vram_capacity');
    expect(kindOf(notebook(oom(), [{ output_type: 'stream', text: ['fine\n'] }]))).toBe('unknown');
  });

  it('is named where it is no text', () => {
    const noise = Uint8Array.from({ length: 9000 }, (_, index) => (index * 7919 + (index >> 3) * 31) % 256);
    expect(readPieces(noise).binary).toBe('binary data');
    expect(readPieces(Uint8Array.from([0x7f, 0x45, 0x4c, 0x46, 2, 1, 1])).binary).toBe('a program (ELF)');
    expect(readPieces(bytesOf('\u001b[31mcoloured\u001b[0m\tand tabbed\n')).binary).toBeUndefined();
  });
});
