/** A card as `--gpu` names it and as the driver reports it. */
export interface CatalogueGpu {
  /** Short name; with `sizeGb` it is unique. */
  readonly id: string;
  /** Size on the box, GB: tells variants of one name apart. */
  readonly sizeGb: number;
  /** `memory.total` as nvidia-smi prints it with a driver of 2023 or later, ECC in its factory setting, MiB. */
  readonly memoryMiB: number;
  /** Compute capability as NVIDIA lists it: `8.6`; undefined: another maker's card. */
  readonly computeCapability: string | undefined;
}

/**
 * `id | GB | MiB | compute capability`. Sources: memory.total from nvidia-smi outputs published for each card (drivers
 * 525 to 580; older ones print up to 2 % less, as for the A100 with 40536 and the T4 with 15109), compute capability
 * from https://developer.nvidia.com/cuda-gpus. A card is listed only where both are certain; where boards of one name
 * differ in their factory setting (Quadro RTX 6000), the smaller figure stands. MIG slices
 * (`a100-1g.5gb`): the sizes of `nvidia-smi mig -lgip` on an A100 of 40 GB and an H100 of 80 GB. AMD: `VRAM Total Memory` of published rocm-smi
 * outputs; of the MI250X each of the two dies is a device.
 */
const TABLE = `
gtx 1060            |   6 |   6144 | 6.1
gtx 1070            |   8 |   8192 | 6.1
gtx 1070 ti         |   8 |   8192 | 6.1
gtx 1080            |   8 |   8192 | 6.1
gtx 1080 ti         |  11 |  11264 | 6.1
gtx 1650            |   4 |   4096 | 7.5
gtx 1660            |   6 |   6144 | 7.5
gtx 1660 super      |   6 |   6144 | 7.5
gtx 1660 ti         |   6 |   6144 | 7.5
rtx 2060            |   6 |   6144 | 7.5
rtx 2060 super      |   8 |   8192 | 7.5
rtx 2070            |   8 |   8192 | 7.5
rtx 2070 super      |   8 |   8192 | 7.5
rtx 2080            |   8 |   8192 | 7.5
rtx 2080 super      |   8 |   8192 | 7.5
rtx 2080 ti         |  11 |  11264 | 7.5
titan rtx           |  24 |  24576 | 7.5
titan v             |  12 |  12288 | 7.0
rtx 3050            |   8 |   8192 | 8.6
rtx 3050 laptop     |   4 |   4096 | 8.6
rtx 3060            |  12 |  12288 | 8.6
rtx 3060 laptop     |   6 |   6144 | 8.6
rtx 3060 ti         |   8 |   8192 | 8.6
rtx 3070            |   8 |   8192 | 8.6
rtx 3070 laptop     |   8 |   8192 | 8.6
rtx 3070 ti         |   8 |   8192 | 8.6
rtx 3070 ti laptop  |   8 |   8192 | 8.6
rtx 3080            |  10 |  10240 | 8.6
rtx 3080            |  12 |  12288 | 8.6
rtx 3080 laptop     |   8 |   8192 | 8.6
rtx 3080 laptop     |  16 |  16384 | 8.6
rtx 3080 ti         |  12 |  12288 | 8.6
rtx 3080 ti laptop  |  16 |  16384 | 8.6
rtx 3090            |  24 |  24576 | 8.6
rtx 3090 ti         |  24 |  24564 | 8.6
rtx 4050 laptop     |   6 |   6141 | 8.9
rtx 4060            |   8 |   8188 | 8.9
rtx 4060 laptop     |   8 |   8188 | 8.9
rtx 4060 ti         |   8 |   8188 | 8.9
rtx 4060 ti         |  16 |  16380 | 8.9
rtx 4070            |  12 |  12282 | 8.9
rtx 4070 laptop     |   8 |   8188 | 8.9
rtx 4070 super      |  12 |  12282 | 8.9
rtx 4070 ti         |  12 |  12282 | 8.9
rtx 4070 ti super   |  16 |  16376 | 8.9
rtx 4080            |  16 |  16376 | 8.9
rtx 4080 laptop     |  12 |  12282 | 8.9
rtx 4080 super      |  16 |  16376 | 8.9
rtx 4090            |  24 |  24564 | 8.9
rtx 4090 d          |  24 |  24564 | 8.9
rtx 4090 laptop     |  16 |  16376 | 8.9
rtx 5050 laptop     |   8 |   8151 | 12.0
rtx 5060            |   8 |   8151 | 12.0
rtx 5060 laptop     |   8 |   8151 | 12.0
rtx 5060 ti         |   8 |   8151 | 12.0
rtx 5060 ti         |  16 |  16311 | 12.0
rtx 5070            |  12 |  12227 | 12.0
rtx 5070 laptop     |   8 |   8151 | 12.0
rtx 5070 ti         |  16 |  16303 | 12.0
rtx 5070 ti laptop  |  12 |  12227 | 12.0
rtx 5080            |  16 |  16303 | 12.0
rtx 5080 laptop     |  16 |  16303 | 12.0
rtx 5090            |  32 |  32607 | 12.0
rtx 5090 laptop     |  24 |  24463 | 12.0
quadro rtx 6000     |  24 |  23040 | 7.5
quadro rtx 8000     |  48 |  49152 | 7.5
rtx a2000           |  12 |  12282 | 8.6
rtx a4000           |  16 |  16376 | 8.6
rtx a4500           |  20 |  20470 | 8.6
rtx a5000           |  24 |  24564 | 8.6
rtx a5500           |  24 |  24564 | 8.6
rtx a6000           |  48 |  49140 | 8.6
rtx 4000 ada        |  20 |  20475 | 8.9
rtx 4000 sff ada    |  20 |  20475 | 8.9
rtx 5000 ada        |  32 |  32760 | 8.9
rtx 5880 ada        |  48 |  49140 | 8.9
rtx 6000 ada        |  48 |  49140 | 8.9
rtx pro 6000        |  96 |  97887 | 12.0
p40                 |  24 |  23040 | 6.1
p100                |  16 |  16384 | 6.0
v100                |  16 |  16384 | 7.0
v100                |  32 |  32768 | 7.0
t4                  |  16 |  15360 | 7.5
a2                  |  16 |  15356 | 8.6
a10                 |  24 |  23028 | 8.6
a10g                |  24 |  23028 | 8.6
a16                 |  16 |  15356 | 8.6
a30                 |  24 |  24576 | 8.0
a40                 |  48 |  46068 | 8.6
a100                |  40 |  40960 | 8.0
a100                |  80 |  81920 | 8.0
a800                |  80 |  81920 | 8.0
l4                  |  24 |  23034 | 8.9
l20                 |  48 |  46068 | 8.9
l40                 |  48 |  46068 | 8.9
l40s                |  48 |  46068 | 8.9
h20                 |  96 |  97871 | 9.0
h100                |  80 |  81559 | 9.0
h100 nvl            |  94 |  95830 | 9.0
h800                |  80 |  81559 | 9.0
gh200               |  96 |  97871 | 9.0
h200                | 141 | 143771 | 9.0
h200 nvl            | 141 | 143771 | 9.0
b200                | 180 | 183359 | 10.0
a100 1g.5gb         |   5 |   4864 | 8.0
a100 2g.10gb        |  10 |   9984 | 8.0
a100 3g.20gb        |  20 |  20096 | 8.0
h100 1g.10gb        |  10 |   9984 | 9.0
h100 1g.20gb        |  20 |  20096 | 9.0
h100 2g.20gb        |  20 |  20096 | 9.0
h100 3g.40gb        |  40 |  40448 | 9.0
rx 7900 xt          |  20 |  20464 | -
rx 7900 xtx         |  24 |  24560 | -
mi210               |  64 |  65520 | -
mi250x              |  64 |  65520 | -
mi300x              | 192 | 196592 | -
`;

/** The cards that can be named with `--gpu`, smallest class first. */
export const GPU_CATALOGUE: readonly CatalogueGpu[] = TABLE.trim()
  .split('\n')
  .map((line) => {
    const [id, size, memory, computeCapability] = line.split('|').map((cell) => cell.trim());
    return {
      id: id!,
      sizeGb: Number(size),
      memoryMiB: Number(memory),
      computeCapability: computeCapability === '-' ? undefined : computeCapability,
    };
  });
