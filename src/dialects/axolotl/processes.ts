import { type Diagnostic, ok, type Result, warning } from '../../core/index.ts';
import type { Origin } from '../../spec/index.ts';
import { readAccelerateOptions } from '../accelerate/index.ts';
import { ACCELERATE_OPTIONS, optionName } from '../accelerate/keys.ts';
import type { ReadContext } from '../contract.ts';
import type { Options, Position, Reading } from '../dialect.ts';
import { lastOption, scanOptions } from '../scan-options.ts';
import { TORCHRUN_DEFAULT, TORCHRUN_OPTIONS } from '../torchrun/keys.ts';
import type { AxolotlStart } from './detect.ts';
import type { AxolotlOptions } from './options.ts';

type Launched = Pick<Reading, 'processes' | 'sharding' | 'files' | 'engines' | 'env' | 'diagnostics' | 'spec'>;

/**
 * axolotl's own command starts `accelerate launch` unless `--launcher` says otherwise. Source: axolotl/cli/utils/train.py
 * `launch_training`.
 */
export function readProcesses(
  start: AxolotlStart,
  options: AxolotlOptions,
  position: Position,
  context: ReadContext,
): Result<Launched> {
  const env = allocator(start, position);
  if (start.form === 'module') return ok({ spec: {}, diagnostics: layersOverGpus(start, position) });
  const launcher = options.own.get('launcher')?.value ?? 'accelerate';
  const texts = options.passed.map((token) => token.text);
  const indexOf = (at: number): number => options.passed[at]!.index;
  if (launcher === 'python') return ok({ spec: {}, ...env, diagnostics: layersOverGpus(start, position) });
  if (launcher === 'torchrun') {
    const scan = scanOptions(texts, 0, TORCHRUN_OPTIONS);
    const perNode = lastOption(scan, '--nproc-per-node');
    const nodes = lastOption(scan, '--nnodes');
    const text = perNode?.value;
    const count = text === 'gpu' || text === 'auto' ? (position.visibleGpus ?? null) : Number(text ?? 1);
    const origin: Origin = perNode ? { kind: 'argv', index: indexOf(perNode.valueIndex) } : TORCHRUN_DEFAULT;
    return ok({
      spec: {},
      ...env,
      processes: {
        nodes: Number(/^\d+/.exec(nodes?.value ?? '1')?.[0] ?? 1),
        perNode: Number.isNaN(count) ? null : count,
        distributed: true,
        origin,
      },
      diagnostics: [],
    });
  }
  const scan = scanOptions(texts, 0, ACCELERATE_OPTIONS);
  const given: Options = new Map(
    scan.options.map(({ name, value, valueIndex, before }) => {
      const index = indexOf(valueIndex);
      return [
        optionName(name),
        {
          value: value ?? true,
          origin: { kind: 'argv', index },
          ...(value === undefined ? {} : { pointer: { kind: 'argv', index, before } as const }),
        },
      ];
    }),
  );
  const read = readAccelerateOptions(given, position, context);
  if (!read.ok) return read;
  const { processes, sharding, files, engines, env: launched, diagnostics } = read.value;
  return ok({
    spec: {},
    ...(processes ? { processes } : {}),
    ...(sharding ? { sharding } : {}),
    files: files ?? [],
    engines: engines ?? [],
    env: { ...launched, ...env.env },
    diagnostics: diagnostics ?? [],
  });
}

/** Set by its own command where it is not set yet. Source: axolotl/utils/__init__.py `set_pytorch_cuda_alloc_conf`. */
const allocator = (start: AxolotlStart, { environment }: Position): { env?: Readonly<Record<string, string>> } =>
  start.form === 'cli' && environment.PYTORCH_ALLOC_CONF === undefined
    ? { env: { PYTORCH_ALLOC_CONF: 'expandable_segments:True' } }
    : {};

/** One plain process gets `device_map: auto`. Source: utils/config/__init__.py `choose_device`. */
function layersOverGpus({ claim }: AxolotlStart, { above, visibleGpus }: Position): readonly Diagnostic[] {
  const launched = above.findLast((layer) => layer.reading.processes)?.reading.processes;
  if (launched?.distributed || (visibleGpus ?? 1) < 2) return [];
  return [
    warning(
      'layers-over-gpus',
      `one process spreads the layers over ${visibleGpus} GPUs, which is taken for one GPU here`,
      {
        location: `argv[${claim.from}]`,
        help: 'start it with axolotl train for one process a GPU, or show it one GPU with CUDA_VISIBLE_DEVICES=0',
      },
    ),
  ];
}
