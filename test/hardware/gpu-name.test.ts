import { describe, expect, it } from 'vitest';
import { GiB, MiB } from '../../src/core/index.ts';
import { GPU_CATALOGUE, resolveGpuName, typedGpuName } from '../../src/hardware/index.ts';

/** `name total-in-MiB capability × count`, or the error's code and message. */
function resolve(text: string): string {
  const result = resolveGpuName(text);
  if (!result.ok) return result.error.map(({ code, message }) => `${code}: ${message}`).join('\n');
  const { gpus } = result.value;
  const [{ name, totalBytes, computeCapability: cc }] = gpus as [(typeof gpus)[0]];
  return `${name} ${totalBytes! / MiB} ${cc ? `${cc.major}.${cc.minor}` : '?'} × ${gpus.length}`;
}

describe('card names', () => {
  it.each([
    ['rtx3090', 'rtx-3090 24576 8.6 × 1'],
    ['RTX 3090', 'rtx-3090 24576 8.6 × 1'],
    ['NVIDIA GeForce RTX 3090 Ti', 'rtx-3090-ti 24564 8.6 × 1'],
    ['geforcertx3090ti', 'rtx-3090-ti 24564 8.6 × 1'],
    ['3090', 'rtx-3090 24576 8.6 × 1'],
    ['4090', 'rtx-4090 24564 8.9 × 1'],
    ['4090 laptop', 'rtx-4090-laptop 16376 8.9 × 1'],
    ['rtx4070tisuper', 'rtx-4070-ti-super 16376 8.9 × 1'],
    ['4060ti-16gb', 'rtx-4060-ti-16gb 16380 8.9 × 1'],
    ['NVIDIA GeForce RTX 3080 Laptop GPU 16GB', 'rtx-3080-laptop-16gb 16384 8.6 × 1'],
    ['a100-40gb', 'a100-40gb 40960 8.0 × 1'],
    ['a100-80gb:8', 'a100-80gb 81920 8.0 × 8'],
    ['NVIDIA A100-SXM4-80GB', 'a100-80gb 81920 8.0 × 1'],
    ['A100-PCIE-40GB', 'a100-40gb 40960 8.0 × 1'],
    ['a100 80g', 'a100-80gb 81920 8.0 × 1'],
    ['Tesla V100-SXM2-16GB:4', 'v100-16gb 16384 7.0 × 4'],
    ['NVIDIA H100 80GB HBM3', 'h100 81559 9.0 × 1'],
    ['h100pcie', 'h100 81559 9.0 × 1'],
    ['h100-94gb', 'h100-nvl 95830 9.0 × 1'],
    ['h200', 'h200 143771 9.0 × 1'],
    ['b200:8', 'b200 183359 10.0 × 8'],
    ['a10', 'a10 23028 8.6 × 1'],
    ['A10G', 'a10g 23028 8.6 × 1'],
    ['a10g-24gb:4', 'a10g 23028 8.6 × 4'],
    ['l4', 'l4 23034 8.9 × 1'],
    ['l40', 'l40 46068 8.9 × 1'],
    ['L40S', 'l40s 46068 8.9 × 1'],
    ['tesla_t4', 't4 15360 7.5 × 1'],
    ['rtxa6000', 'rtx-a6000 49140 8.6 × 1'],
    ['RTX 6000 Ada Generation', 'rtx-6000-ada 49140 8.9 × 1'],
    ['NVIDIA RTX PRO 6000 Blackwell Workstation Edition', 'rtx-pro-6000 97887 12.0 × 1'],
  ])('%s', (text, expected) => expect(resolve(text)).toBe(expected));

  it('finds every card under the name it is listed by', () => {
    expect(GPU_CATALOGUE.length).toBeGreaterThan(60);
    const lost = GPU_CATALOGUE.filter((card) => {
      const { id, sizeGb, memoryMiB } = card;
      // The name of a MIG slice says its size by itself.
      const result = resolveGpuName(/\dg\.\d/.test(id) ? typedGpuName(card) : `${id}-${sizeGb}gb`);
      return !result.ok || result.value.gpus[0]!.totalBytes !== memoryMiB * MiB;
    });
    expect(lost).toEqual([]);
  });

  it('holds sizes that agree with the box', () => {
    const odd = GPU_CATALOGUE.filter(({ sizeGb, memoryMiB }) => {
      const printedGb = (memoryMiB * MiB) / 1e9;
      return printedGb < sizeGb * 0.97 || printedGb > sizeGb * 1.08;
    });
    expect(odd.map(({ id }) => id)).toEqual([]);
  });
});

describe('names that do not decide', () => {
  it.each([
    ['a100 1g', 'unknown-gpu: no card is called "a100 1g"'],
    ['a100', 'ambiguous-gpu: "a100" names several cards: a100-40gb (40.0 GiB), a100-80gb (80.0 GiB)'],
    ['v100:2', 'ambiguous-gpu: "v100" names several cards: v100-16gb (16.0 GiB), v100-32gb (32.0 GiB)'],
    [
      'rtx 6000',
      'ambiguous-gpu: "rtx 6000" names several cards: quadro-rtx-6000 (22.5 GiB), rtx-6000-ada (48.0 GiB), rtx-pro-6000 (95.6 GiB)',
    ],
    ['rtx 3080', 'ambiguous-gpu: "rtx 3080" names several cards: rtx-3080-10gb (10.0 GiB), rtx-3080-12gb (12.0 GiB)'],
    ['rtx3095', 'unknown-gpu: no card is called "rtx3095"'],
    ['a100-60gb', 'unknown-gpu: no card is called "a100-60gb"'],
    ['ti', 'unknown-gpu: no card is called "ti"'],
    ['laptop', 'unknown-gpu: no card is called "laptop"'],
    ['gb', 'unknown-gpu: no card is called "gb"'],
  ])('%s', (text, expected) => expect(resolve(text)).toBe(expected));

  it('says the way out', () => {
    const helpFor = (text: string) => {
      const result = resolveGpuName(text);
      return result.ok ? undefined : result.error[0]!.help;
    };
    expect(helpFor('a100')).toBe('say which: --gpu a100-40gb');
    expect(helpFor('rtx3095')).toMatch(/^did you mean rtx-3090\? otherwise name a card .*--gpu 24GiB/);
    expect(helpFor('gaudi3')).toBe(
      'name a card (--gpu rtx3090, --gpu a100-80gb:8) or its size (--gpu 24GiB, --gpu 80GiB:2)',
    );
  });
});

describe('sizes', () => {
  it.each([
    ['10GiB', 'GPU with 10.0 GiB 10240 ? × 1'],
    ['600MiB', 'GPU with 600 MiB 600 ? × 1'],
    ['24 gib:2', 'GPU with 24.0 GiB 24576 ? × 2'],
    ['11.5GiB', 'GPU with 11.5 GiB 11776 ? × 1'],
    ['0GiB', 'bad-gpu: --gpu 0GiB is not the size of a GPU: it must lie between 256 MiB and 2.0 TiB'],
    ['-8GiB', 'bad-gpu: --gpu -8GiB is not the size of a GPU: it must lie between 256 MiB and 2.0 TiB'],
    ['12KiB', 'bad-gpu: --gpu 12KiB is not the size of a GPU: it must lie between 256 MiB and 2.0 TiB'],
    ['9000TiB', 'bad-gpu: --gpu 9000TiB is not the size of a GPU: it must lie between 256 MiB and 2.0 TiB'],
    ['24', 'unknown-gpu: no card is called "24"'],
    ['rtx3090:0', 'bad-gpu: --gpu rtx3090:0: the number of cards after ":" must lie between 1 and 1024'],
    ['rtx3090:-2', 'bad-gpu: --gpu rtx3090:-2: the number of cards after ":" must lie between 1 and 1024'],
    ['rtx3090:', 'bad-gpu: --gpu rtx3090:: the number of cards after ":" must lie between 1 and 1024'],
    ['rtx3090:1e9', 'bad-gpu: --gpu rtx3090:1e9: the number of cards after ":" must lie between 1 and 1024'],
    ['24GiB:99999', 'bad-gpu: --gpu 24GiB:99999: the number of cards after ":" must lie between 1 and 1024'],
    ['', 'bad-gpu: --gpu "" names no card'],
    [':2', 'bad-gpu: --gpu ":2" names no card'],
  ])('%s', (text, expected) => expect(resolve(text)).toBe(expected));

  it('gives each planned card a number of its own and nothing in use', () => {
    const result = resolveGpuName('80GiB:3');
    expect(
      result.ok &&
        result.value.gpus.map(({ index, uuid, usedBytes, freeBytes }) => [index, uuid, usedBytes, freeBytes]),
    ).toEqual([0, 1, 2].map((index) => [index, `planned-${index}`, 0, 80 * GiB]));
  });
});

describe('what was meant', () => {
  it.each([
    ['24', 'did you mean its size? --gpu 24GiB'],
    ['rtx-4090ti', 'did you mean rtx-4090,'],
    ['rtx-3990', 'did you mean rtx-3090?'],
  ])('%s', (text, help) => {
    const result = resolveGpuName(text);
    expect(result.ok ? '' : result.error[0]!.help).toContain(help);
  });
});
