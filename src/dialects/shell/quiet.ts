/** Commands that start no training and change nothing that is read here. */
const QUIET: ReadonlySet<string> = new Set([
  ...['echo', 'printf', 'mkdir', 'rm', 'cp', 'mv', 'ln', 'ls', 'cat', 'tee', 'touch', 'chmod', 'sleep', 'wait', 'date'],
  ...['module', 'ml', 'conda', 'mamba', 'micromamba', 'spack', 'trap', 'ulimit', 'umask', 'exit', 'return', 'true'],
  ...[
    'false',
    ':',
    '[',
    '[[',
    'test',
    'let',
    'shopt',
    'alias',
    'hash',
    'type',
    'which',
    'hostname',
    'nvidia-smi',
    'pip',
  ],
  ...[
    'pip3',
    'git',
    'wget',
    'curl',
    'tar',
    'unzip',
    'rsync',
    'scp',
    'grep',
    'sed',
    'awk',
    'head',
    'tail',
    'wc',
    'sort',
  ],
  ...['find', 'scontrol', 'squeue', 'scancel', 'free', 'df', 'du', 'pwd', 'whoami', 'break', 'continue', 'popd'],
  ...['huggingface-cli', 'hf', 'wandb', 'kill', 'pkill', 'jobs', 'bg', 'fg', 'disown', 'apt-get', 'apt'],
]);

/** `conda run …` starts something, `conda activate` does not. */
const STARTS = /^(?:conda|mamba|micromamba)$/;

/** Whether a command only prepares, tidies up or talks. */
export const isQuiet = (name: string, first: string | undefined): boolean =>
  QUIET.has(name) && !(STARTS.test(name) && first === 'run');
