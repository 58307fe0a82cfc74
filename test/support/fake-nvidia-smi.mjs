/**
 * Stands in for nvidia-smi: answers `--query-gpu=FIELDS --format=csv,noheader,nounits` from a JSON file, whose path is the first
 * argument. The file holds { "gpus": [{ "name": "…", "total": MiB, "used": MiB, "computeCap": "8.6" }] }, or { "fails": "text" } to
 * end as a driver that cannot be reached does. Read anew at every call, so a test can change it while a run is going.
 */
import { readFileSync } from 'node:fs';

const [statePath, ...args] = process.argv.slice(2);
const state = JSON.parse(readFileSync(statePath, 'utf8'));

const FIELDS = {
  index: (_gpu, index) => index,
  uuid: (gpu, index) => gpu.uuid ?? `GPU-00000000-0000-4000-8000-${String(index).padStart(12, '0')}`,
  name: (gpu) => gpu.name,
  'memory.total': (gpu) => gpu.total ?? '[N/A]',
  'memory.used': (gpu) => gpu.used ?? 0,
  'memory.free': (gpu) => (gpu.total === undefined ? '[N/A]' : gpu.total - (gpu.used ?? 0)),
  compute_cap: (gpu) => gpu.computeCap ?? '8.6',
};

function main() {
  if (state.fails) {
    process.stdout.write(`${state.fails}\n`);
    return 9;
  }
  const query = args.find((arg) => arg.startsWith('--query-gpu='))?.slice('--query-gpu='.length);
  if (query === undefined) {
    process.stdout.write(`Invalid combination of input arguments. Please run 'nvidia-smi -h' for help.\n`);
    return 1;
  }
  const fields = query.split(',');
  const unknown = fields.find((field) => !(field in FIELDS));
  if (unknown !== undefined) {
    process.stdout.write(`Field "${unknown}" is not a valid field to query.\n\n`);
    return 2;
  }
  const [header, units] = [!args.join().includes('noheader'), !args.join().includes('nounits')];
  if (header) process.stdout.write(`${fields.join(', ')}\n`);
  for (const [index, gpu] of state.gpus.entries()) {
    const cells = fields.map((field) => {
      const value = FIELDS[field](gpu, index);
      return units && field.startsWith('memory.') && value !== '[N/A]' ? `${value} MiB` : value;
    });
    process.stdout.write(`${cells.join(', ')}\n`);
  }
  return 0;
}

process.exitCode = main();
