import { dirname, join } from 'node:path';
import type { Ports } from '../core/index.ts';
import { type FoundVersions, type LaunchReading, lockedVersions, pythonOf } from '../dialects/index.ts';
import { shebangPort } from './trainer-python.ts';

/** Packages whose version decides a default or what a step keeps. */
const PACKAGES: ReadonlySet<string> = new Set([
  ...['torch', 'transformers', 'trl', 'peft', 'accelerate', 'bitsandbytes', 'deepspeed', 'datasets', 'axolotl'],
  ...[
    'llamafactory',
    'ms-swift',
    'litgpt',
    'torchtune',
    'unsloth',
    'llm-foundry',
    'xtuner',
    'liger-kernel',
    'flash-attn',
    'flash-linear-attention',
    'mamba-ssm',
    'causal-conv1d',
  ],
]);

/** Files that pin versions, the surest first. */
const LOCKS = [
  ...['uv.lock', 'poetry.lock', 'pdm.lock', 'pixi.lock', 'Pipfile.lock'],
  ...['requirements.txt', 'requirements/base.txt', 'environment.yml', 'pyproject.toml'],
];

/**
 * Versions of the packages that train, without starting Python: the names of the metadata folders in its site-packages, else
 * the pins of a lock file beside the command. Empty where neither is found.
 */
export function findVersions(ports: Ports, reading: LaunchReading): FoundVersions {
  const installed = installedIn(ports, sitePackages(ports, reading));
  return Object.keys(installed).length > 0 ? installed : lockedNear(ports);
}

function installedIn(ports: Ports, folders: readonly string[]): FoundVersions {
  const found: Record<string, { version: string; place: string }> = {};
  for (const folder of folders) {
    for (const name of ports.files.list(folder)) {
      const match = /^(.+?)-(\d[^-]*)\.(?:dist|egg)-info$/.exec(name);
      const known = match && match[1]!.toLowerCase().replace(/[_.]/g, '-');
      if (known && PACKAGES.has(known)) found[known] ??= { version: match[2]!, place: folder };
    }
  }
  return found;
}

/** Where the packages of the trainer's Python lie, by its path alone. */
function sitePackages(ports: Ports, reading: LaunchReading): readonly string[] {
  return environmentsOf(ports, reading).flatMap((prefix) => {
    const libraries = ['lib', 'lib64', 'local/lib'].map((name) => join(prefix, name));
    return libraries.flatMap((library) =>
      ports.files
        .list(library)
        .filter((name) => /^python3(?:\.\d+)?t?$/.test(name))
        .flatMap((name) => [join(library, name, 'site-packages'), join(library, name, 'dist-packages')]),
    );
  });
}

/** Folders of the environment: from the interpreter's path, or from the tool that chooses one. */
function environmentsOf(ports: Ports, reading: LaunchReading): readonly string[] {
  const { environment, cwd, homeDir } = ports;
  const words = pythonOf(reading, shebangPort(ports)) ?? [];
  const python = words.at(-1) ?? 'python';
  if (python.includes('/')) return [dirname(dirname(python.startsWith('/') ? python : join(cwd, python)))];
  const tool = words.length > 1 ? words[0]! : undefined;
  if (tool === undefined) {
    const path = ports.programs.which(python) ?? ports.programs.which('python3');
    const active = environment.VIRTUAL_ENV ?? environment.CONDA_PREFIX;
    return [...(active ? [active] : []), ...(path ? [dirname(dirname(path))] : [])];
  }
  if (/(?:^|\/)(?:conda|mamba|micromamba)$/.test(tool)) {
    const at = words.findIndex((word) => word === '-n' || word === '--name');
    const name = at < 0 ? undefined : words[at + 1];
    const roots = [environment.CONDA_EXE && dirname(dirname(environment.CONDA_EXE)), environment.MAMBA_ROOT_PREFIX];
    const usual = ['miniconda3', 'anaconda3', 'miniforge3', 'mambaforge', '.conda', 'micromamba'];
    const known = [...roots, ...usual.map((each) => join(homeDir, each)), '/opt/conda'].filter((each) => each);
    return name === undefined ? [] : known.map((root) => join(root!, 'envs', name));
  }
  return [environment.UV_PROJECT_ENVIRONMENT ?? join(cwd, '.venv'), join(cwd, '.pixi/envs/default')];
}

function lockedNear(ports: Ports): FoundVersions {
  for (const name of LOCKS) {
    const text = ports.files.readText(join(ports.cwd, name));
    const found = text.ok ? lockedVersions(name, text.value, PACKAGES) : {};
    if (Object.keys(found).length > 0) return found;
  }
  return {};
}
