import { describe, expect, it } from 'vitest';
import { MiB, type ProgramOutcome } from '../../src/core/index.ts';
import { detectHardware, type Hardware, sampleVram } from '../../src/hardware/index.ts';
import { fakePorts } from '../support/fake-ports.ts';

const MEMINFO = 'MemTotal:       65536000 kB\nMemFree:         1024000 kB\nMemAvailable:   40960000 kB\n';

type Answers = Readonly<Record<string, string | Partial<ProgramOutcome>>>;

/** A machine with AMD's kernel driver, on which these tools answer, by their first words. */
const world = (answers: Answers) => ({
  files: { '/proc/meminfo': MEMINFO },
  others: ['/dev/kfd'],
  programs: (file: string, args: readonly string[]) => {
    const line = [file, ...args].join(' ');
    const [, answer] = Object.entries(answers).find(([start]) => line.startsWith(start)) ?? [];
    return typeof answer === 'string' ? { stdout: answer } : answer;
  },
});

async function detect(answers: Answers, environment: Record<string, string> = {}): Promise<Hardware> {
  const result = await detectHardware(fakePorts(world(answers)), { environment });
  if (!result.ok) throw new Error(JSON.stringify(result.error));
  return result.value;
}

const shown = ({ gpus }: Hardware) =>
  gpus.map(({ index, name, totalBytes, usedBytes, freeBytes }) =>
    [index, name, ...[totalBytes, usedBytes, freeBytes].map((bytes) => (bytes === undefined ? '?' : bytes / MiB))].join(
      ' ',
    ),
  );

const card = (series: string, totalMiB: number, usedMiB: number, id: string) => ({
  'Unique ID': id,
  'VRAM Total Memory (B)': String(totalMiB * MiB),
  'VRAM Total Used Memory (B)': String(usedMiB * MiB),
  'Card Series': series,
  'Card Model': '0x1234',
});

describe('rocm-smi', () => {
  // Keys as `rocm-smi --json` of ROCm 6 prints them (https://rocm.docs.amd.com/projects/rocm_smi_lib).
  const two = JSON.stringify({
    card0: card('AMD Instinct MI250X', 65_520, 11, '0xaa01'),
    card1: card('AMD Instinct MI250X', 65_520, 40_000, '0xaa02'),
  });

  it('lists cards with their memory', async () => {
    const hardware = await detect({ 'rocm-smi': two });
    expect(hardware.source).toBe('rocm-smi');
    expect(shown(hardware)).toEqual([
      '0 AMD Instinct MI250X 65520 11 65509',
      '1 AMD Instinct MI250X 65520 40000 25520',
    ]);
  });

  it('in the letters of ROCm 5, after a warning', async () => {
    const old = JSON.stringify({
      card0: {
        'VRAM Total Memory (B)': String(16_368 * MiB),
        'VRAM Total Used Memory (B)': String(700 * MiB),
        'Card series': 'Navi 21 [Radeon RX 6800/6800 XT / 6900 XT]',
        'Card SKU': 'D41206',
      },
      system: { 'Driver version': '5.18.13' },
    });
    const hardware = await detect({
      'rocm-smi': `WARNING: AMD GPU device(s) is/are in a low-power state.\n\n${old}\n`,
    });
    expect(shown(hardware)).toEqual(['0 Navi 21 [Radeon RX 6800/6800 XT / 6900 XT] 16368 700 15668']);
  });

  it('leaves out the graphics of the processor', async () => {
    const beside = JSON.stringify({
      card0: card('Radeon RX 7900 XTX', 24_560, 26, '0xbb01'),
      card1: card('Raphael', 64, 25, 'N/A'),
    });
    const hardware = await detect({ 'rocm-smi': beside });
    expect(hardware.gpus.map(({ name }) => name)).toEqual(['Radeon RX 7900 XTX']);
    expect(hardware.notes).toContain("Raphael (card 1) is a processor's own graphics and left out");
  });

  it('does not pretend to know what it does not print', async () => {
    const bare = JSON.stringify({
      card0: { 'VRAM Total Memory (B)': 'N/A', 'Card Series': 'N/A', 'Card Model': '0x66af' },
    });
    expect(shown(await detect({ 'rocm-smi': bare }))).toEqual(['0 0x66af ? ? ?']);
  });

  it.each<[Record<string, string>, string[], string | undefined]>([
    [{}, ['0xaa01', '0xaa02'], undefined],
    [{ HIP_VISIBLE_DEVICES: '1' }, ['0xaa02'], undefined],
    [{ CUDA_VISIBLE_DEVICES: '1,0' }, ['0xaa02', '0xaa01'], undefined],
    [{ ROCR_VISIBLE_DEVICES: '0' }, ['0xaa01'], undefined],
    [{ HIP_VISIBLE_DEVICES: '0', CUDA_VISIBLE_DEVICES: '1' }, ['0xaa01'], undefined],
    [{ HIP_VISIBLE_DEVICES: '-1' }, [], 'HIP_VISIBLE_DEVICES=-1 hides every GPU'],
    [{ HIP_VISIBLE_DEVICES: '3' }, [], 'HIP_VISIBLE_DEVICES=3: there is no device 3, so no GPU is visible'],
  ])('%j shows %j', async (environment, ids, note) => {
    const hardware = await detect({ 'rocm-smi': two }, environment);
    expect(hardware.gpus.map(({ uuid }) => uuid)).toEqual(ids);
    if (note) expect(hardware.notes).toContain(note);
  });

  it('is sampled by the fullest of the given cards', async () => {
    const ports = fakePorts(world({ 'rocm-smi': two }));
    expect(await sampleVram(ports, [{ uuid: '0xaa01' }, { uuid: '0xaa02' }], 'rocm-smi')).toBe(40_000 * MiB);
    expect(await sampleVram(ports, [{ uuid: '0xaa01' }], 'rocm-smi')).toBe(11 * MiB);
    expect(await sampleVram(ports, [{ uuid: 'other' }], 'rocm-smi')).toBeUndefined();
  });
});

describe('amd-smi, where rocm-smi is gone', () => {
  const memory = (total: number, used: number) => ({
    total_vram: { value: total, unit: 'MB' },
    used_vram: { value: used, unit: 'MB' },
    free_vram: { value: total - used, unit: 'MB' },
  });
  const metric = [{ gpu: 0, mem_usage: memory(196_592, 284) }];
  const asic = [{ gpu: 0, asic: { market_name: 'AMD Instinct MI300X', asic_serial: '0xCAFE' } }];

  it.each([
    ['a list', (list: object[]) => list],
    ['a list inside gpu_data, as since ROCm 7', (list: object[]) => ({ gpu_data: list })],
  ])('%s', async (_, wrapped) => {
    const hardware = await detect({
      'amd-smi metric': JSON.stringify(wrapped(metric)),
      'amd-smi static': JSON.stringify(wrapped(asic)),
    });
    expect([hardware.source, ...shown(hardware)]).toEqual(['amd-smi', '0 AMD Instinct MI300X 196592 284 196308']);
    expect(hardware.gpus[0]!.uuid).toBe('0xCAFE');
  });

  it('without names the memory still counts', async () => {
    const hardware = await detect({ 'amd-smi metric': JSON.stringify(metric), 'amd-smi static': { exitCode: 1 } });
    expect(shown(hardware)).toEqual(['0 AMD GPU 196592 284 196308']);
  });
});

describe('AMD tools that do not answer', () => {
  it.each<[string, Answers, string]>([
    ['a hang', { 'rocm-smi': { failure: 'timeout' } }, 'rocm-smi did not answer within 5 s and was stopped'],
    [
      'an error',
      { 'rocm-smi': { exitCode: 2, stdout: 'ERROR:root:Driver not initialized\n' } },
      'rocm-smi ended with exit code 2',
    ],
    ['nothing', { 'rocm-smi': '{}' }, 'rocm-smi listed no card'],
    ['broken JSON', { 'rocm-smi': '{"card0": {' }, 'rocm-smi listed no card'],
  ])('%s is a note, with the way out', async (_, answers, note) => {
    const hardware = await detect(answers);
    expect(hardware.gpus).toEqual([]);
    expect(hardware.notes).toContain(note);
    expect(hardware.notes.join()).toContain('--gpu 192GiB');
  });
});
