import { describe, expect, it } from 'vitest';
import type { Diagnostic } from '../../src/core/index.ts';
import { type LocatedModel, locateModel } from '../../src/model/index.ts';
import { type FakeWorld, fakePorts } from '../support/fake-ports.ts';

const CONFIG = JSON.stringify({ model_type: 'llama', hidden_size: 320 });
const CACHE = '/home/someone/.cache/huggingface/hub';
const SHA = 'c0ffee'.padEnd(40, '7');

async function found(name: string, world: FakeWorld, options = {}): Promise<LocatedModel> {
  const result = await locateModel(name, fakePorts(world), options);
  if (!result.ok) throw new Error(JSON.stringify(result.error));
  return result.value;
}

async function failed(name: string, world: FakeWorld = {}, options = {}): Promise<Diagnostic> {
  const result = await locateModel(name, fakePorts(world), options);
  if (result.ok) throw new Error(`found in ${result.value.place}`);
  expect(result.error).toHaveLength(1);
  return result.error[0]!;
}

const snapshot = (repository: string, file: string, sha = SHA, cache = CACHE) =>
  `${cache}/models--${repository}/snapshots/${sha}/${file}`;

describe('a local folder', () => {
  const files = { '/project/models/mine/config.json': CONFIG, '/home/someone/big/config.json': CONFIG };

  it.each([
    ['models/mine', {}, '/project/models/mine/config.json'],
    ['./models/mine/', {}, '/project/models/mine/config.json'],
    ['/project/models/mine', {}, '/project/models/mine/config.json'],
    ['../mine', { cwd: '/project/models/other' }, '/project/models/mine/config.json'],
    ['mine', { cwd: '/project/models' }, '/project/models/mine/config.json'],
    ['~/big', {}, '/home/someone/big/config.json'],
    ['models/mine/config.json', {}, '/project/models/mine/config.json'],
  ])('%s', async (name, options, place) => {
    const model = await found(name, { files }, options);
    expect(model).toEqual({ nameOrPath: name, source: 'folder', place, config: JSON.parse(CONFIG) });
  });

  it('comes before the cache and the table, as for the trainer', async () => {
    const model = await found('gpt2', { files: { '/project/gpt2/config.json': CONFIG } });
    expect(model.source).toBe('folder');
  });

  it('without config.json is an error that names what would do', async () => {
    const world = {
      files: {
        '/project/run/checkpoint-20/config.json': CONFIG,
        '/project/run/checkpoint-7/adapter_config.json': '{}',
        '/project/run/logs/x.txt': '',
      },
    };
    expect(await failed('./run', world)).toEqual({
      code: 'no-model-config',
      severity: 'error',
      message: 'the folder /project/run holds no config.json',
      notes: ['below it, these do: checkpoint-20, checkpoint-7'],
      help: 'model: run/checkpoint-7, or --model run/checkpoint-7',
    });
    const empty = await failed('empty', { folders: ['/project/empty'] });
    expect(empty.notes).toBeUndefined();
    expect(empty.help).toBe('point at a folder with its config.json: model: FOLDER, or --model FOLDER');
    expect(await failed('./m.gguf', { files: { '/project/m.gguf': 'GGUF' } })).toMatchObject({
      code: 'no-model-config',
      message: '/project/m.gguf is a file, not a model folder',
    });
  });

  it('that is not there is unknown, and no id is made of it', async () => {
    expect(await failed('./models/none')).toMatchObject({
      code: 'unknown-model',
      message: 'the config of ./models/none was not found',
      notes: [
        'there is no folder /project/models/none',
        expect.stringMatching(/^it is not among the \d+ models snug knows$/),
      ],
    });
  });

  it('of another machine is read by its name, said aloud, where that is a known id', async () => {
    const model = await found('/mnt/models/Qwen/Qwen2.5-7B-Instruct/', {});
    expect(model).toMatchObject({
      source: 'table',
      place: 'Qwen/Qwen2.5-7B-Instruct',
      notes: [
        '/mnt/models/Qwen/Qwen2.5-7B-Instruct/ is not on this machine: read as Qwen/Qwen2.5-7B-Instruct by its name',
      ],
    });
    expect(await failed('/mnt/models/gpt2')).toMatchObject({ code: 'unknown-model' });
  });

  it('of another machine is read by its last word alone where that tells family and size', async () => {
    expect(await found('/tmp/Llama-3.2-1B-Instruct/', {})).toMatchObject({
      source: 'table',
      place: 'meta-llama/Llama-3.2-1B-Instruct',
      notes: [
        '/tmp/Llama-3.2-1B-Instruct/ is not on this machine: read as meta-llama/Llama-3.2-1B-Instruct by its name',
      ],
    });
    expect(await found('checkpoints/microsoft/phi-2', {})).toMatchObject({ place: 'microsoft/phi-2' });
    expect(await failed('/tmp/Llama-3.2-1B-otters')).toMatchObject({ code: 'unknown-model' });
  });
});

describe('a config that is broken', () => {
  const broken = (text: string) => failed('m', { files: { '/project/m/config.json': text } });

  it.each([
    ['{\n  "a": 1,\n  "b": x\n}', '3:8', '"b": x'],
    ['{\n  "a": 1,\n}', '3:1', '}'],
    ['{"a": [1, 2,]}', '1:13', '{"a": [1, 2,]}'],
    ['{"a" 1}', '1:6', '{"a" 1}'],
    ["{'a': 1}", '1:2', "{'a': 1}"],
    ['{"a": 01}', '1:7', '{"a": 01}'],
    ['{"a": 1', '1:8', '{"a": 1'],
    ['{"a": 1} trailing', '1:10', '{"a": 1} trailing'],
    ['{"a": "tab\there"}', '1:7', '{"a": "tab\there"}'],
    ['{"a": 1}\n}', '2:1', '}'],
    ['{\n  // comment\n  "a": 1}', '2:3', '// comment'],
    ['<!doctype html>', '1:1', '<!doctype html>'],
    ['{"a": {"b": [true, nul]}}', '1:20', '{"a": {"b": [true, nul]}}'],
  ])('%j', async (text, position, excerpt) => {
    expect(await broken(text)).toMatchObject({
      code: 'broken-model-config',
      message: "the model's config is not valid JSON",
      location: `/project/m/config.json:${position}`,
      excerpt,
    });
  });

  it.each([
    ['[1]', "the model's config is a list, not an object of settings"],
    ['null', "the model's config is null, not an object of settings"],
    ['"llama"', "the model's config is a string, not an object of settings"],
    ['', "the model's config is empty"],
    [
      'version https://git-lfs.github.com/spec/v1\noid sha256:12\n',
      "the model's config is a Git LFS pointer, not the file itself",
    ],
  ])('%j', async (text, message) => {
    expect(await broken(text)).toMatchObject({
      code: 'broken-model-config',
      message,
      location: '/project/m/config.json',
    });
  });

  it('is not one that holds what Python alone writes', async () => {
    const text = '{"time_step_limit": [0.0, Infinity], "low": -Infinity, "gap": NaN, "say": "NaN and \\"Infinity\\""}';
    const model = await found('m', { files: { '/project/m/config.json': text } });
    expect(model.config).toEqual({
      time_step_limit: [0, Number.POSITIVE_INFINITY],
      low: Number.NEGATIVE_INFINITY,
      gap: null,
      say: 'NaN and "Infinity"',
    });
  });

  it('may hold very long strings, sound or broken', async () => {
    const long = `{"chat_template": "${'a \\"quoted\\" part '.repeat(200_000)}"`;
    expect((await found('m', { files: { '/project/m/config.json': `${long}, "n": NaN}` } })).config.n).toBeNull();
    expect((await broken(`${long} "n": 1}`)).location).toBe(`/project/m/config.json:1:${long.length + 2}`);
  });

  it('says why it cannot be read', async () => {
    const path = '/project/m/config.json';
    expect(await failed('m', { unreadable: { [path]: 'EACCES' } })).toMatchObject({
      code: 'broken-model-config',
      message: "the model's config cannot be read (EACCES)",
      location: path,
    });
  });
});

describe('an adapter folder', () => {
  const adapter = (base: unknown, rest = {}) =>
    JSON.stringify({ peft_type: 'LORA', base_model_name_or_path: base, ...rest });

  it('leads to its base model', async () => {
    const files = {
      '/project/out/adapter_config.json': adapter('base/folder'),
      '/project/base/folder/config.json': CONFIG,
    };
    expect(await found('out', { files })).toEqual({
      nameOrPath: 'out',
      source: 'folder',
      place: '/project/base/folder/config.json',
      config: JSON.parse(CONFIG),
      adapter: 'out',
      notes: ['out is a PEFT adapter of base/folder'],
    });
  });

  it('asks for the base at the revision it was trained on', async () => {
    const files = {
      '/project/out/adapter_config.json': adapter('org/base', { revision: 'v2' }),
      [`${CACHE}/models--org--base/refs/v2`]: SHA,
      [snapshot('org--base', 'config.json')]: CONFIG,
    };
    expect((await found('out', { files })).place).toBe(snapshot('org--base', 'config.json'));
  });

  it('is not followed where the folder has a config of its own', async () => {
    const files = { '/project/out/adapter_config.json': adapter('elsewhere'), '/project/out/config.json': CONFIG };
    const model = await found('out', { files });
    expect(model.adapter).toBeUndefined();
  });

  it('without a base, of an unknown base, or in a circle is an error', async () => {
    const path = '/project/out/adapter_config.json';
    expect(await failed('out', { files: { [path]: adapter(null) } })).toMatchObject({
      code: 'adapter-without-base',
      message: 'out is a PEFT adapter and it names no base model',
      location: path,
    });
    const unknown = await failed('out', { files: { [path]: adapter('nobody/nothing') } });
    expect(unknown).toMatchObject({ code: 'unknown-model', message: 'the config of nobody/nothing was not found' });
    expect(unknown.notes).toContain(`named by ${path}`);
    expect(await failed('out', { files: { [path]: adapter('./out') } })).toMatchObject({
      code: 'adapter-without-base',
      message: './out is a PEFT adapter and its adapters name each other in a circle',
    });
  });
});

describe('the Hugging Face cache', () => {
  const cached = (cache: string) => ({
    [`${cache}/models--org--name/refs/main`]: `${SHA}\n`,
    [snapshot('org--name', 'config.json', SHA, cache)]: CONFIG,
  });

  it.each<[Record<string, string>, string]>([
    [{}, CACHE],
    [{ XDG_CACHE_HOME: '/xdg' }, '/xdg/huggingface/hub'],
    [{ HF_HOME: '/hf', XDG_CACHE_HOME: '/xdg' }, '/hf/hub'],
    [{ HUGGINGFACE_HUB_CACHE: '/old', HF_HOME: '/hf' }, '/old'],
    [{ HF_HUB_CACHE: '/hub', HUGGINGFACE_HUB_CACHE: '/old' }, '/hub'],
    [{ HF_HUB_CACHE: '', HF_HOME: '~/hf' }, '/home/someone/hf/hub'],
    // biome-ignore lint/suspicious/noTemplateCurlyInString: the shell's own notation
    [{ HF_HOME: '$SCRATCH/${USER}/hf', SCRATCH: '/scratch', USER: 'me' }, '/scratch/me/hf/hub'],
    [{ HF_HUB_CACHE: 'relative' }, '/project/relative'],
  ])('%j', async (environment, cache) => {
    const model = await found('org/name', { environment, files: cached(cache) });
    expect(model).toMatchObject({ source: 'cache', place: snapshot('org--name', 'config.json', SHA, cache) });
  });

  it('is asked for the revision that is wanted: branch, nested ref, commit', async () => {
    const other = 'd00d'.padEnd(40, '1');
    const files = {
      ...cached(CACHE),
      [`${CACHE}/models--org--name/refs/pr/4`]: other,
      [snapshot('org--name', 'config.json', other)]: '{"model_type": "other"}',
    };
    for (const revision of ['pr/4', other]) {
      expect((await found('org/name', { files }, { revision })).config).toEqual({ model_type: 'other' });
    }
    expect((await found('org/name', { files })).config).toEqual(JSON.parse(CONFIG));
    const missing = await failed('org/name', { files }, { revision: 'v9' });
    expect(missing.notes).toContain(`${CACHE}/models--org--name holds no revision "v9"`);
  });

  it('with one snapshot and no branch is read, and says so', async () => {
    const model = await found('org/name', { files: { [snapshot('org--name', 'config.json')]: CONFIG } });
    expect(model.notes).toEqual([`the cache has no branch "main" of org/name: its only snapshot ${SHA} was read`]);
  });

  it('is passed over where it cannot be used, and that is said', async () => {
    const ref = `${CACHE}/models--openai-community--gpt2/refs/main`;
    const withoutConfig = { files: { [ref]: SHA, [snapshot('openai-community--gpt2', 'tokenizer.json')]: '{}' } };
    expect(await found('openai-community/gpt2', withoutConfig)).toMatchObject({
      source: 'table',
      notes: [`the cached snapshot ${CACHE}/models--openai-community--gpt2/snapshots/${SHA} holds no config.json`],
    });
    const unreadable = {
      unreadable: { [ref]: 'EACCES' },
      files: { [snapshot('openai-community--gpt2', 'config.json')]: CONFIG },
    };
    expect((await found('openai-community/gpt2', unreadable)).notes).toEqual([`${ref} cannot be read (EACCES)`]);
    const dangling = {
      files: { [`${CACHE}/models--org--name/refs/main`]: 'beef', [snapshot('org--name', 'config.json')]: CONFIG },
    };
    expect((await failed('org/name', dangling)).notes).toContain(
      `${CACHE}/models--org--name/refs/main names the commit beef, which is not among the snapshots`,
    );
  });

  it('leads from a cached adapter to its base', async () => {
    const files = {
      [`${CACHE}/models--org--lora/refs/main`]: SHA,
      [snapshot('org--lora', 'adapter_config.json')]: '{"base_model_name_or_path": "facebook/opt-125m"}',
    };
    expect(await found('org/lora', { files })).toMatchObject({
      source: 'table',
      place: 'facebook/opt-125m',
      adapter: 'org/lora',
    });
  });
});

describe('the ModelScope cache', () => {
  it.each([
    [{}, '/home/someone/.cache/modelscope/models/org/name-1___5b'],
    [{}, '/home/someone/.cache/modelscope/hub/models/org/name-1___5b'],
    [{}, '/home/someone/.cache/modelscope/hub/org/name-1___5b'],
    [{}, '/home/someone/.cache/modelscope/models/org/name-1.5b'],
    [{ MODELSCOPE_CACHE: '/ms' }, '/ms/models/org/name-1___5b'],
  ])('%j %s', async (environment, folder) => {
    const model = await found('org/name-1.5b', { environment, files: { [`${folder}/config.json`]: CONFIG } });
    expect(model).toMatchObject({ source: 'cache', place: `${folder}/config.json` });
  });
});

describe('the Hub', () => {
  const page = 'https://huggingface.co/org/new-model/resolve/main/config.json';
  const answering = (
    answers: Record<string, string | { status: number; error: string }>,
    environment = {},
  ): FakeWorld => ({
    environment,
    downloads: (url) => answers[url],
  });

  it('is asked last, and only when it may be', async () => {
    const ports = fakePorts(answering({ [page]: CONFIG }));
    expect(await locateModel('org/new-model', ports)).toMatchObject({
      ok: true,
      value: { source: 'online', place: page, config: { hidden_size: 320 } },
    });
    expect(ports.downloaded).toEqual([page]);
    await locateModel('facebook/opt-125m', ports);
    await locateModel('./some/folder', ports);
    expect(ports.downloaded).toEqual([page]);
    expect(await failed('org/new-model')).toMatchObject({
      code: 'unknown-model',
      notes: [
        'there is no folder /project/org/new-model',
        `it is not in the Hugging Face cache ${CACHE}`,
        expect.stringContaining('it is not among the'),
      ],
      help: 'point at a folder with its config.json: model: FOLDER, or --model FOLDER; or let snug fetch it with --online',
    });
  });

  it('is asked for the revision, at the mirror that is set', async () => {
    const url = 'https://mirror.example/org/new-model/resolve/refs%2Fpr%2F3/config.json';
    const world = answering({ [url]: CONFIG }, { HF_ENDPOINT: 'https://mirror.example/' });
    expect((await found('org/new-model', world, { revision: 'refs/pr/3' })).place).toBe(url);
  });

  it('leads from an adapter repository to its base', async () => {
    const world = answering({
      [page.replace('config.json', 'adapter_config.json')]: '{"base_model_name_or_path": "gpt2"}',
    });
    expect(await found('org/new-model', world)).toMatchObject({
      source: 'table',
      place: 'gpt2',
      adapter: 'org/new-model',
    });
  });

  it('can refuse, not know, or not be reached', async () => {
    const gated = await failed('org/new-model', answering({ [page]: { status: 401, error: 'Unauthorized' } }));
    expect(gated).toMatchObject({
      code: 'gated-model',
      message: 'https://huggingface.co does not show org/new-model (401): it is gated, private or does not exist',
      location: page,
    });
    expect(gated.help).toMatch(/^accept its terms at https:\/\/huggingface\.co\/org\/new-model and set HF_TOKEN/);
    expect(await failed('org/new-model', answering({}))).toMatchObject({
      code: 'unknown-model',
      message: 'https://huggingface.co has no config of org/new-model at revision "main"',
    });
    const offline = answering({ [page]: { status: 0, error: 'getaddrinfo ENOTFOUND huggingface.co' } });
    expect(await failed('org/new-model', offline)).toMatchObject({
      code: 'download-failed',
      message: 'the config of org/new-model could not be fetched: getaddrinfo ENOTFOUND huggingface.co',
    });
    expect(await failed('org/new-model', answering({ [page]: '<html>' }))).toMatchObject({
      code: 'broken-model-config',
      location: `${page}:1:1`,
    });
  });
});

describe('nothing anywhere', () => {
  it('suggests a known model that is spelt nearly so', async () => {
    expect((await failed('meta-llama/Llama-3.1-8b-Instruc')).help).toMatch(
      /^did you mean meta-llama\/Llama-3\.1-8B-Instruct/,
    );
    expect((await failed('totally/unrelated-thing')).help).not.toContain('did you mean');
    expect(await failed('  ')).toMatchObject({ code: 'unknown-model', message: 'the name of the model is empty' });
  });
});
