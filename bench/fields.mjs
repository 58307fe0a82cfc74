// Compares, through the built command line, what `snug check --json` understands with what a file or a recorded command says.
// node bench/fields.mjs [CONFIG_FOLDER] [COMMANDS.jsonl]; both default to ../shared.
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, extname, join, relative, resolve } from 'node:path';
import { LineCounter, parseDocument, visit } from 'yaml';
import { EXPECTED_KEYS, SILENT_PARTS } from './fields/keys.mjs';

const snug = resolve(import.meta.dirname, '../bin/snug.js');
const environment = { PATH: process.env.PATH, HOME: tmpdir(), NO_COLOR: '1' };

function check(words, cwd, env = {}) {
  const run = spawnSync(process.execPath, [snug, 'check', '--json', ...words], {
    cwd,
    env: { ...environment, ...env },
    encoding: 'utf8',
  });
  try {
    return { ...JSON.parse(run.stdout), exit: run.status };
  } catch {
    return { exit: run.status, broken: run.stdout + run.stderr, spec: {}, unread: [], launch: { stack: [] } };
  }
}

const value = (answer, setting) => answer.spec?.[setting]?.value;
const trainerOf = (answer) => answer.launch.stack.find(({ kind }) => kind === 'trainer');
const launcherOf = (answer) => answer.launch.stack.find(({ kind }) => kind === 'launcher')?.dialect;

const TRAINERS = {
  'hf-script': 'hf-trainer',
  llamafactory: 'llama-factory',
  swift: 'ms-swift',
  'unsloth-cli': 'unsloth',
};
const OWN = new Set(['trl', 'axolotl', 'llamafactory-cli', 'tune', 'swift', 'litgpt', 'composer', 'xtuner']);
const ATTENTION = { fa2: 'flash_attention_2', flash_attention: 'flash_attention_2' };
const SHARDED = (answer, engine) => answer.launch.stack.some(({ dialect }) => dialect === engine);
const PARTS = {
  launcher: (answer) => (trainerOf(answer)?.via === 'cli' ? 'own cli' : launcherOf(answer)),
  trainer: (answer) => trainerOf(answer)?.dialect,
  nproc: (answer) => value(answer, 'distributed')?.processes_per_node ?? null,
  nnodes: (answer) => value(answer, 'distributed')?.nodes ?? null,
  model: (answer) => value(answer, 'model_name_or_path'),
  micro_batch: (answer) => value(answer, 'per_device_train_batch_size'),
  eval_batch: (answer) => value(answer, 'per_device_eval_batch_size'),
  grad_accum: (answer) => value(answer, 'gradient_accumulation_steps'),
  seq_len: (answer) => value(answer, 'max_length'),
  precision: (answer) => value(answer, 'mixed_precision'),
  weight_dtype: (answer) => value(answer, 'dtype'),
  optimizer: (answer) => value(answer, 'optim'),
  lora_rank: (answer) => value(answer, 'lora')?.r,
  quant_bits: (answer) => value(answer, 'quantization')?.bits,
  attn: (answer) => value(answer, 'attn_implementation'),
  deepspeed: (answer) => SHARDED(answer, 'deepspeed-config') && answer.launch.files,
  fsdp: (answer) => SHARDED(answer, 'fsdp') && /^fsdp|hsdp/.test(value(answer, 'distributed')?.strategy),
  config_file: (answer) => answer.launch.files,
  accelerate_config: (answer) => answer.launch.files,
  recipe: (answer) => answer.launch.argv,
  resume: (answer) => value(answer, 'resume_from_checkpoint'),
  cuda_visible_devices: (answer) => answer.launch.env.CUDA_VISIBLE_DEVICES?.split(',').map(Number),
  wrappers: (answer) => answer.launch.wrappers,
};

function expectedOf(name, given) {
  if (name === 'trainer') return TRAINERS[given] ?? given;
  if (name === 'launcher') return OWN.has(given) ? 'own cli' : given;
  if (name === 'attn') return ATTENTION[given] ?? given;
  if (name === 'fsdp') return true;
  return given;
}

const equal = (found, wanted) =>
  JSON.stringify(found) === JSON.stringify(wanted) ||
  (Array.isArray(found) && typeof wanted === 'string' && found.includes(wanted));

/** One recorded command: every expected field, found in the JSON or not. */
function compareCommand({ command, expected, files = {} }) {
  const folder = mkdtempSync(join(tmpdir(), 'snug-fields-'));
  try {
    for (const [name, text] of Object.entries(files)) {
      mkdirSync(dirname(join(folder, name)), { recursive: true });
      writeFileSync(join(folder, name), text);
    }
    // A shell splits the line, as it would for a person; nothing is run.
    const words = spawnSync('bash', ['-c', `set -f; printf '%s\\0' ${command.replaceAll(/\\\n/g, ' ')}`], {
      encoding: 'utf8',
    });
    const answer = check(['--', ...words.stdout.split('\0').slice(0, -1)], folder);
    return Object.entries(expected).flatMap(([name, given]) => {
      const found = (PARTS[name] ?? ((each) => value(each, name)))(answer);
      const wanted = expectedOf(name, given);
      return equal(found, wanted)
        ? []
        : [`${name}: expected ${JSON.stringify(wanted)}, found ${JSON.stringify(found)}`];
    });
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** Every key of a config with its place: `a.b` for nested ones. Items of lists count with their list. */
function leaves(text) {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, uniqueKeys: false });
  const found = [];
  visit(document, {
    Pair(_, pair, path) {
      if (path.some((node) => node?.items && node.constructor.name === 'YAMLSeq')) return;
      const above = path.filter((node) => node?.key).map((node) => String(node.key.value));
      if (pair.value?.constructor.name === 'YAMLMap' && pair.value.items.length > 0) return;
      const plain = pair.value?.toJSON?.() ?? null;
      found.push({
        key: [...above, String(pair.key.value)].join('.'),
        line: lines.linePos(pair.key.range[0]).line,
        value: plain,
      });
    },
  });
  return found;
}

function* filesBelow(path) {
  if (!statSync(path).isDirectory()) yield path;
  else for (const name of readdirSync(path).sort()) yield* filesBelow(join(path, name));
}

const isEmpty = (given) => given === null || (typeof given === 'object' && Object.keys(given).length === 0);
const norm = (given) =>
  given === null
    ? 'null'
    : String(given)
        .toLowerCase()
        .replace(/^\d[\d_]*$/, (digits) => digits.replaceAll('_', ''));

/** One config: keys that say a field and another value was found, and keys that nothing tells of. */
function compareConfig(root, file) {
  const [repository, ...rest] = relative(root, file).split('/');
  const answer = check([rest.join('/')], join(root, repository));
  const dialect = answer.launch.stack.map(({ dialect: id }) => id).join('+') || answer.broken;
  const told = new Set(Object.values(answer.spec ?? {}).map(({ origin }) => origin));
  const unread = new Set(answer.unread.map(({ key }) => key));
  const wrong = [];
  const silent = [];
  for (const { key, line, value: given } of leaves(readFileSync(file, 'utf8'))) {
    const rule = EXPECTED_KEYS[key];
    if (rule && given !== null && given !== 'auto' && !String(given).startsWith('${')) {
      const [setting, read = (each) => each] = rule;
      const [name, part] = setting.split('.');
      const whole = value(answer, name);
      const found = part ? whole?.[part] : whole;
      if (norm(found) !== norm(read(given)))
        wrong.push(`${key}: ${JSON.stringify(given)}, found ${setting} ${JSON.stringify(found)}`);
    }
    const parts = key.split('.');
    const prefixes = parts.map((_, at) => parts.slice(0, at + 1).join('.'));
    const noted = prefixes.some((each) => unread.has(each)) || unread.has(parts.at(-1));
    if (
      !noted &&
      !isEmpty(given) &&
      ![...told].some((origin) => origin === `${rest.join('/')}:${line}`) &&
      !SILENT_PARTS.has(parts.at(-1))
    )
      silent.push(key);
  }
  return { dialect, wrong, silent };
}

const [
  configs = resolve(import.meta.dirname, '../../shared/configs'),
  commands = resolve(import.meta.dirname, '../../shared/commands.jsonl'),
] = process.argv.slice(2);
let differences = 0;
for (const [at, line] of readFileSync(commands, 'utf8').split('\n').filter(Boolean).entries()) {
  const found = compareCommand(JSON.parse(line));
  differences += found.length;
  for (const each of found) console.log(`line ${at + 1}: ${each}`);
}
for (const file of filesBelow(configs)) {
  if (!['.yaml', '.yml', '.json'].includes(extname(file))) continue;
  const { dialect, wrong, silent } = compareConfig(configs, file);
  differences += wrong.length + silent.length;
  console.log(`${relative(configs, file)}  [${dialect}]`);
  for (const each of wrong) console.log(`  differs  ${each}`);
  if (silent.length > 0) console.log(`  untold   ${silent.join(', ')}`);
}
console.log(`\n${differences} differences`);
process.exitCode = differences > 0 ? 1 : 0;
