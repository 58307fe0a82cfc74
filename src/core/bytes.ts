export const KiB = 1024;
export const MiB = 1024 ** 2;
export const GiB = 1024 ** 3;
export const TiB = 1024 ** 4;

const UNITS: Readonly<Record<string, number>> = {
  b: 1,
  byte: 1,
  bytes: 1,
  kib: KiB,
  mib: MiB,
  gib: GiB,
  tib: TiB,
  kb: 1e3,
  mb: 1e6,
  gb: 1e9,
  tb: 1e12,
};

/** Reads `10GiB`, `600 MiB`, `80GB` (decimal), `512 bytes` into whole bytes; undefined when it is not a size. */
export function parseBytes(text: string): number | undefined {
  const match = /^\s*(\d+(?:\.\d+)?)\s*([a-z]+)\s*$/i.exec(text);
  const unit = match && UNITS[match[2]!.toLowerCase()];
  return match && unit ? Math.round(Number(match[1]) * unit) : undefined;
}

/** `17.2 GiB`, `640 MiB`, `12 KiB`: the unit a person would choose, one decimal from GiB on. */
export function formatBytes(bytes: number): string {
  const size = Math.abs(bytes);
  if (size >= TiB) return `${(bytes / TiB).toFixed(1)} TiB`;
  if (size >= GiB) return `${(bytes / GiB).toFixed(1)} GiB`;
  if (size >= MiB) return `${(bytes / MiB).toFixed(0)} MiB`;
  if (size >= KiB) return `${(bytes / KiB).toFixed(0)} KiB`;
  return `${bytes} bytes`;
}
