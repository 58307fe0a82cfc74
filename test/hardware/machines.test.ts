import { describe, expect, it } from 'vitest';
import { GiB, MiB, type ProgramOutcome } from '../../src/core/index.ts';
import { detectHardware, type Hardware, processesOnGpus, sampleVram } from '../../src/hardware/index.ts';
import { type FakeWorld, fakePorts } from '../support/fake-ports.ts';

const QUERY = '--query-gpu=index,uuid,name,memory.total,memory.used,memory.free,compute_cap';
const OLD_QUERY = '--query-gpu=index,uuid,name,memory.total,memory.used,memory.free';

type Answer = string | Partial<ProgramOutcome>;

/** A machine whose nvidia-smi answers the GPU query with these rows, and other arguments from `more`. */
function machine(rows: Answer, world: FakeWorld = {}, more: Record<string, Answer> = {}): FakeWorld {
  const answers: Record<string, Answer> = { [QUERY]: rows, ...more };
  return {
    ...world,
    programs: (file, args) => {
      const answer =
        file === 'nvidia-smi' ? answers[args.filter((arg) => !arg.startsWith('--format')).join(' ')] : undefined;
      if (answer === undefined) return { exitCode: 2, stdout: `unexpected: ${args.join(' ')}\n` };
      return typeof answer === 'string' ? { stdout: answer } : answer;
    },
  };
}

async function detect(world: FakeWorld, options = {}): Promise<Hardware> {
  const result = await detectHardware(fakePorts(world), options);
  if (!result.ok) throw new Error(JSON.stringify(result.error));
  return result.value;
}

/** `index name total/used/free in MiB capability`. */
const shown = ({ gpus }: Hardware) =>
  gpus.map(({ index, name, totalBytes, usedBytes, freeBytes, computeCapability: cc }) => {
    const mib = (bytes: number | undefined) => (bytes === undefined ? '?' : bytes / MiB);
    return `${index} ${name} ${mib(totalBytes)}/${mib(usedBytes)}/${mib(freeBytes)} ${cc ? `${cc.major}.${cc.minor}` : '?'}`;
  });

const uuid = (digit: number) => `GPU-${`${digit}`.repeat(8)}-aaaa-bbbb-cccc-${`${digit}`.repeat(12)}`;
const row = (index: number, name: string, total: number, used: number, cc = '8.6') =>
  `${index}, ${uuid(index)}, ${name}, ${total}, ${used}, ${total - used - 300}, ${cc}`;
const MEMINFO = 'MemTotal:       65536000 kB\nMemFree:         1024000 kB\nMemAvailable:   40960000 kB\n';

describe('machines with cards', () => {
  it('one card, part of it in use', async () => {
    const hardware = await detect(machine(`${row(0, 'NVIDIA GeForce RTX 3090', 24576, 1717)}\n`));
    expect(shown(hardware)).toEqual(['0 NVIDIA GeForce RTX 3090 24576/1717/22559 8.6']);
    expect(hardware).toMatchObject({ source: 'nvidia-smi', gpus: [{ uuid: uuid(0) }] });
    expect(hardware.notes).toEqual(['the memory of this host cannot be read']);
  });

  it('eight cards, a driver of another platform with units and CRLF', async () => {
    const rows = Array.from(
      { length: 8 },
      (_, index) =>
        `${index}, ${uuid(index)}, NVIDIA H100 80GB HBM3, 81559 MiB, ${index} MiB, ${81000 - index} MiB, 9.0\r\n`,
    );
    const hardware = await detect(machine(rows.join(''), {}, { '-L': '' }));
    expect(hardware.gpus).toHaveLength(8);
    expect(shown(hardware)[5]).toBe('5 NVIDIA H100 80GB HBM3 81559/5/80995 9.0');
  });

  it('a driver that does not know compute_cap is asked again without it, and the name tells', async () => {
    const world = machine(
      { exitCode: 2, stdout: 'Field "compute_cap" is not a valid field to query.\n\n' },
      {},
      {
        [OLD_QUERY]: `0, ${uuid(0)}, Tesla V100-SXM2-32GB, 32510, 11, 32499\n1, ${uuid(1)}, Some Future Card, 9000, 0, 9000\n`,
      },
    );
    const hardware = await detect(world);
    expect(shown(hardware)).toEqual(['0 Tesla V100-SXM2-32GB 32510/11/32499 7.0', '1 Some Future Card 9000/0/9000 ?']);
  });

  it('a card on the host memory takes the host figures; a discrete one that lost its own does not', async () => {
    const files = { '/proc/meminfo': MEMINFO };
    const integrated = await detect(
      machine(`0, ${uuid(0)}, NVIDIA GB10, [N/A], [N/A], [N/A], 12.1\n`, { files }, { '-L': '' }),
    );
    expect(shown(integrated)).toEqual(['0 NVIDIA GB10 64000/24000/40000 12.1']);
    expect(integrated.gpus[0]!.sharesHostMemory).toBe(true);
    expect(integrated.notes).toEqual(["GPU 0 (NVIDIA GB10) uses the host's memory: one budget for both"]);

    const lost = await detect(
      machine(`0, ${uuid(0)}, NVIDIA GeForce RTX 4070, [Unknown Error], ERR!, [Not Supported], [N/A]\n`, { files }),
    );
    expect(shown(lost)).toEqual(['0 NVIDIA GeForce RTX 4070 ?/?/? 8.9']);
    expect(lost.gpus[0]!.sharesHostMemory).toBeUndefined();
    expect(lost.notes).toEqual(['the driver does not tell the memory of GPU 0 (NVIDIA GeForce RTX 4070)']);
  });

  it('keeps the cards that were listed when another one is lost', async () => {
    const lost = 'Unable to determine the device handle for GPU0000:C1:00.0: Unknown Error';
    const stdout = `${row(0, 'NVIDIA L4', 23034, 2, '8.9')}\n${lost}\n`;
    const hardware = await detect(machine({ exitCode: 15, stdout }));
    expect(hardware.gpus).toHaveLength(1);
    expect(hardware.notes[0]).toBe(`nvidia-smi ended with exit code 15: ${lost}`);
  });
});

describe('machines without a usable driver', () => {
  const host = { files: { '/proc/meminfo': MEMINFO } };

  it.each<[string, Answer, string]>([
    [
      'library mismatch, said on stdout',
      {
        exitCode: 18,
        stdout: 'Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 999.1\n',
      },
      'nvidia-smi ended with exit code 18: Failed to initialize NVML: Driver/library version mismatch NVML library version: 999.1',
    ],
    [
      'no devices',
      { exitCode: 6, stdout: 'No devices were found\n' },
      'nvidia-smi ended with exit code 6: No devices were found',
    ],
    ['no devices, exit 0', 'No devices were found\n', 'nvidia-smi said: No devices were found'],
    ['hanging', { failure: 'timeout' }, 'nvidia-smi did not answer within 5 s and was stopped'],
    ['not installed', { failure: 'not-found' }, 'nvidia-smi is not installed here'],
    ['not startable', { failure: 'other' }, 'nvidia-smi could not be run'],
  ])('%s', async (_, answer, note) => {
    const hardware = await detect(machine(answer, host));
    expect(hardware).toMatchObject({ gpus: [], source: 'none', notes: [note] });
    expect(hardware.host).toBeDefined();
  });
});

describe('an AMD machine', () => {
  it('is told how to plan for its card', async () => {
    const hardware = await detect({ files: { '/proc/meminfo': MEMINFO }, others: ['/dev/kfd'] });
    expect(hardware.notes).toEqual([
      'nvidia-smi is not installed here',
      'there is an AMD GPU, but no tool to ask it: plan for it by its size, --gpu 192GiB',
    ]);
  });
});

describe('MIG', () => {
  const name = 'NVIDIA A100-SXM4-40GB';
  const list = [
    `GPU 0: ${name} (UUID: ${uuid(0)})`,
    '  MIG 3g.20gb     Device  0: (UUID: MIG-0aaaaaaa-1111-5222-8333-444444444444)',
    '  MIG 1g.5gb      Device  1: (UUID: MIG-0bbbbbbb-1111-5222-8333-444444444444)',
    '',
  ].join('\n');
  const slice = (index: number, total: number, used: number) =>
    `<mig_device><index>${index}</index><gpu_instance_id>${index + 7}</gpu_instance_id><fb_memory_usage><total>${total} MiB</total><reserved>0 MiB</reserved><used>${used} MiB</used><free>${total - used} MiB</free></fb_memory_usage><bar1_memory_usage><total>999 MiB</total></bar1_memory_usage></mig_device>`;
  const xml = `<nvidia_smi_log><gpu id="00000000:07:00.0"><uuid>${uuid(0)}</uuid><fb_memory_usage><total>40960 MiB</total></fb_memory_usage><mig_devices>${slice(0, 19968, 12)}${slice(1, 4864, 3)}</mig_devices></gpu></nvidia_smi_log>`;
  const world = machine(`0, ${uuid(0)}, ${name}, 40960, [N/A], [N/A], 8.0\n`, {}, { '-L': list, '-q -x': xml });
  const withVisible = (value: string) => detect(world, { environment: { CUDA_VISIBLE_DEVICES: value } });

  it('counts the slice that CUDA shows, not the card', async () => {
    const hardware = await detect(world);
    expect(shown(hardware)).toEqual([`0 ${name} MIG 3g.20gb 19968/12/19956 8.0`]);
    expect(hardware.notes[0]).toBe(
      `MIG mode is on: a process sees one slice, ${name} MIG 3g.20gb (MIG-0aaaaaaa-1111-5222-8333-444444444444)`,
    );
  });

  it('counts the slice that is named, also by a prefix', async () => {
    expect(shown(await withVisible('MIG-0bbb'))).toEqual([`0 ${name} MIG 1g.5gb 4864/3/4861 8.0`]);
    const none = await withVisible('MIG-0');
    expect(none.gpus).toEqual([]);
    expect(none.notes[0]).toBe('CUDA_VISIBLE_DEVICES=MIG-0: "MIG-0" fits several devices, so no GPU is visible');
  });

  it('finds the memory where the driver writes the UUIDs in another order', async () => {
    const named = (index: number) =>
      `<mig_device><uuid>MIG-0${'ab'[index]!.repeat(7)}-1111</uuid>${slice(index, 9856, index).slice(12)}`;
    const later = `<gpu id="00000000:07:00.0"><mig_devices>${named(0)}${named(1)}</mig_devices><uuid>\n${uuid(0)}</uuid></gpu>`;
    const ports = machine(`0, ${uuid(0)}, ${name}, 40960, 0, 40960, 8.0\n`, {}, { '-L': list, '-q -x': later });
    const hardware = await detect(ports, { environment: { CUDA_VISIBLE_DEVICES: 'MIG-0bbb' } });
    expect(shown(hardware)).toEqual([`0 ${name} MIG 1g.5gb 9856/1/9855 8.0`]);
  });

  it('does not pretend to know a slice it cannot measure', async () => {
    const blind = machine(`0, ${uuid(0)}, ${name}, 40960, 0, 40960, 8.0\n`, {}, { '-L': list, '-q -x': '' });
    expect(shown(await detect(blind))).toEqual([`0 ${name} MIG 3g.20gb ?/?/? 8.0`]);
  });

  it('is not asked about on cards that cannot have it', async () => {
    const ports = fakePorts(machine(row(0, 'NVIDIA GeForce RTX 5090', 32607, 0, '12.0')));
    await detectHardware(ports);
    expect(ports.calls).toHaveLength(1);
  });
});

describe('CUDA_VISIBLE_DEVICES', () => {
  const rows = [0, 1, 2, 3].map((index) => row(index, 'NVIDIA RTX A5000', 24564, 100 * index)).join('\n');
  const twin = `4, ${uuid(3).slice(0, 12)}-twin, NVIDIA RTX A5000, 24564, 0, 24000, 8.6`;
  const visible = async (value: string | undefined) => {
    const hardware = await detect(machine(`${rows}\n${twin}\n`, { files: { '/proc/meminfo': MEMINFO } }), {
      environment: { CUDA_VISIBLE_DEVICES: value },
    });
    return [hardware.gpus.map(({ index }) => index).join(','), ...hardware.notes];
  };

  it.each<[string | undefined, string[]]>([
    [undefined, ['0,1,2,3,4']],
    ['2', ['2']],
    ['3,0', ['3,0']],
    [' 1 , 2 ', ['1,2']],
    ['+1', ['1']],
    ['1gpu2,2ampere', ['1,2']],
    ['', ['', 'CUDA_VISIBLE_DEVICES="" hides every GPU']],
    ['-1', ['', 'CUDA_VISIBLE_DEVICES=-1 hides every GPU']],
    ['NoDevFiles', ['', 'CUDA_VISIBLE_DEVICES=NoDevFiles hides every GPU']],
    ['0,9,1', ['0', 'CUDA_VISIBLE_DEVICES=0,9,1: there is no device 9, so only the 1 before it count']],
    ['2,-1,0', ['2', 'CUDA_VISIBLE_DEVICES=2,-1,0: "-1" is not a device, so only the 1 before it count']],
    ['0,1,0', ['', 'CUDA_VISIBLE_DEVICES=0,1,0 names a device twice, so CUDA shows none']],
    ['7', ['', 'CUDA_VISIBLE_DEVICES=7: there is no device 7, so no GPU is visible']],
    ['all', ['', 'CUDA_VISIBLE_DEVICES=all: "all" is not a device, so no GPU is visible']],
    [uuid(2), ['2']],
    ['GPU-22,GPU-1', ['2,1']],
    ['GPU-33333', ['', 'CUDA_VISIBLE_DEVICES=GPU-33333: "GPU-33333" fits several devices, so no GPU is visible']],
    ['GPU-22,GPU-2222', ['', 'CUDA_VISIBLE_DEVICES=GPU-22,GPU-2222 names a device twice, so CUDA shows none']],
    [
      'GPU-22,1',
      [
        '2',
        'CUDA_VISIBLE_DEVICES=GPU-22,1: "1" is not a GPU-… name like the first entry, so only the 1 before it count',
      ],
    ],
    ['GPU-ff', ['', 'CUDA_VISIBLE_DEVICES=GPU-ff: no device is called "GPU-ff", so no GPU is visible']],
  ])('%s', async (value, expected) => expect(await visible(value)).toEqual(expected));

  it('comes from this environment unless the launch has its own', async () => {
    const world = machine(rows, { environment: { CUDA_VISIBLE_DEVICES: '1' } });
    expect((await detect(world)).gpus).toHaveLength(1);
    expect((await detect(world, { environment: {} })).gpus).toHaveLength(4);
  });

  it('warns where different cards make the numbering a guess', async () => {
    const mixed = machine(`${row(0, 'NVIDIA T400', 4096, 0, '7.5')}\n${row(1, 'NVIDIA RTX A6000', 49140, 0)}\n`);
    const said = async (environment: Record<string, string>) =>
      (await detect(mixed, { environment })).notes.filter((note) => note.includes('CUDA_DEVICE_ORDER'));
    expect(await said({ CUDA_VISIBLE_DEVICES: '1' })).toEqual([
      'the cards differ (NVIDIA T400, NVIDIA RTX A6000) and CUDA_DEVICE_ORDER is not PCI_BUS_ID: CUDA may number them differently from nvidia-smi',
    ]);
    expect(await said({ CUDA_VISIBLE_DEVICES: '1', CUDA_DEVICE_ORDER: 'PCI_BUS_ID' })).toEqual([]);
    expect(await said({ CUDA_VISIBLE_DEVICES: uuid(1) })).toEqual([]);
  });
});

describe('a planned card', () => {
  it('asks no driver, and measures this host all the same', async () => {
    const ports = fakePorts({
      files: { '/proc/meminfo': MEMINFO },
      folders: ['/dev/shm'],
      volumes: {
        '/': { freeBytes: 7 * GiB, totalBytes: 9 * GiB },
        '/dev/shm': { freeBytes: 60 * MiB, totalBytes: 64 * MiB },
        '/data': { freeBytes: 3 * GiB, totalBytes: 5 * GiB },
      },
    });
    const result = await detectHardware(ports, { gpu: 'l40s:2', outputDir: '/data/runs/new' });
    expect(ports.calls).toEqual([]);
    expect(result).toMatchObject({
      ok: true,
      value: {
        source: 'planned',
        notes: [],
        gpus: [{ name: 'l40s' }, { name: 'l40s' }],
        sharedMemory: { freeBytes: 60 * MiB, totalBytes: 64 * MiB },
        disk: { freeBytes: 3 * GiB, totalBytes: 5 * GiB },
      },
    });
  });

  it('is the only thing that can fail', async () => {
    const result = await detectHardware(fakePorts(), { gpu: 'a100' });
    expect(result).toMatchObject({ ok: false, error: [{ code: 'ambiguous-gpu', severity: 'error' }] });
  });
});

describe('while a run goes on', () => {
  const rows = [
    row(0, 'NVIDIA A40', 46068, 900),
    row(1, 'NVIDIA A40', 46068, 30_000),
    row(2, 'NVIDIA A40', 46068, 44_000),
  ];
  const gpu = (index: number) => ({ uuid: uuid(index) });

  it('samples the fullest of the given cards', async () => {
    const ports = fakePorts(machine(rows.join('\n')));
    expect(await sampleVram(ports, [gpu(0), gpu(1)])).toBe(30_000 * MiB);
    expect(await sampleVram(ports, [gpu(0)])).toBe(900 * MiB);
    expect(await sampleVram(ports, [gpu(7)])).toBeUndefined();
    expect(await sampleVram(fakePorts(), [gpu(0)])).toBeUndefined();
  });

  it('lists the processes on the given cards', async () => {
    const apps = `4242, ${uuid(1)}, 17000\n77, ${uuid(1)}, [N/A]\n9, ${uuid(0)}, 5\nNo running processes found\n`;
    const ports = fakePorts(machine(rows.join('\n'), {}, { '--query-compute-apps=pid,gpu_uuid,used_memory': apps }));
    expect(await processesOnGpus(ports, [gpu(1)])).toEqual([
      { pid: 4242, gpuUuid: uuid(1), usedBytes: 17_000 * MiB },
      { pid: 77, gpuUuid: uuid(1), usedBytes: undefined },
    ]);
    expect(await processesOnGpus(fakePorts(), [gpu(1)])).toEqual([]);
  });
});
