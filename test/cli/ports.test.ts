import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, truncateSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, it } from 'vitest';
import { createPorts } from '../../src/cli/ports.ts';
import { storePort } from '../../src/cli/store-port.ts';

const folder = mkdtempSync(join(tmpdir(), 'snug-ports-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));
const put = (name: string, content: string | Uint8Array): string => {
  const path = join(folder, name);
  writeFileSync(path, content);
  return path;
};
const { files, programs, store } = createPorts({ online: false, store: storePort });

describe('files', () => {
  it('tells files, folders and everything else apart, through symlinks', () => {
    const path = put('plain.json', '{"a": 7}');
    symlinkSync(path, join(folder, 'link.json'));
    symlinkSync(join(folder, 'gone'), join(folder, 'dangling.json'));
    expect(files.info(join(folder, 'link.json'))).toMatchObject({ kind: 'file', sizeBytes: 8 });
    expect(files.info(folder)?.kind).toBe('folder');
    expect(files.info('/dev/null')?.kind).toBe('other');
    expect(files.info(join(folder, 'dangling.json'))).toBeUndefined();
    expect(files.info(join(path, 'below-a-file'))).toBeUndefined();
  });

  it('reads text without its byte order mark, and UTF-16 where the mark says so', () => {
    expect(files.readText(put('bom.yaml', '\ufefflr: 3e-4\n'))).toEqual({ ok: true, value: 'lr: 3e-4\n' });
    const utf16 = Buffer.from('\ufeffloss 0.7 – done\n', 'utf16le');
    expect(files.readText(put('powershell.log', utf16))).toEqual({ ok: true, value: 'loss 0.7 – done\n' });
    expect(files.readText(put('plain.txt', 'größe\r\n'))).toEqual({ ok: true, value: 'größe\r\n' });
  });

  it('names the reason when there is nothing to read', () => {
    expect(files.readText(join(folder, 'missing'))).toEqual({ ok: false, code: 'ENOENT' });
    expect(files.readText(folder)).toEqual({ ok: false, code: 'EISDIR' });
    expect(files.readText('/dev/zero')).toEqual({ ok: false, code: 'ENOTFILE' });
    expect(files.readBytes('/dev/zero', 0, 4)).toEqual({ ok: false, code: 'ENOTFILE' });
    const big = put('big.log', '');
    truncateSync(big, 20 * 1024 ** 2 + 1);
    expect(files.readText(big)).toEqual({ ok: false, code: 'ETOOBIG' });
    truncateSync(big, 20 * 1024 ** 2);
    expect(files.readText(big)).toMatchObject({ ok: true });
  });

  it('never waits at a FIFO', () => {
    const fifo = join(folder, 'pipe');
    execFileSync('mkfifo', [fifo]);
    expect(files.readText(fifo)).toEqual({ ok: false, code: 'ENOTFILE' });
  });

  it('reads pieces of large files and no more than there is', () => {
    const path = put('tensor.bin', Uint8Array.from([1, 2, 3, 4, 5, 6]));
    const bytes = (offset: number, length: number) => {
      const outcome = files.readBytes(path, offset, length);
      return outcome.ok ? [...outcome.value] : outcome.code;
    };
    expect(bytes(0, 2)).toEqual([1, 2]);
    expect(bytes(4, 2 ** 40)).toEqual([5, 6]);
    expect(bytes(9, 3)).toEqual([]);
  });

  it('reads kernel files, which claim to be empty', () => {
    const outcome = files.readText('/proc/self/status');
    expect(outcome.ok && outcome.value).toContain('Name:');
  });

  it('lists sorted names, and nothing where nothing can be listed', () => {
    const sub = join(folder, 'sub');
    mkdirSync(sub);
    for (const name of ['b', 'a', 'c']) writeFileSync(join(sub, name), '');
    expect(files.list(sub)).toEqual(['a', 'b', 'c']);
    expect(files.list(join(folder, 'missing'))).toEqual([]);
  });

  it('measures the volume of a folder that does not exist yet', () => {
    const here = files.volume(folder);
    expect(here!.totalBytes).toBeGreaterThan(here!.freeBytes);
    expect(files.volume(join(folder, 'runs/17/output'))?.totalBytes).toBe(here!.totalBytes);
  });
});

describe('store', () => {
  it('makes folders and replaces files whole', () => {
    const run = join(folder, 'runs/one/attempts');
    expect(store.makeFolder(run)).toEqual({ ok: true, value: undefined });
    expect(store.makeFolder(run)).toEqual({ ok: true, value: undefined });
    const path = join(run, 'run.json');
    for (const text of ['{"state": "a longer first text"}', '{}']) store.writeAtomic(path, text);
    expect(files.readText(path)).toEqual({ ok: true, value: '{}' });
    expect(files.list(run)).toEqual(['run.json']);
  });

  it('names the reason when it cannot write, and leaves nothing behind', () => {
    const file = put('in-the-way', '');
    expect(store.makeFolder(join(file, 'below'))).toEqual({ ok: false, code: 'ENOTDIR' });
    expect(store.writeAtomic(join(folder, 'no-folder/run.json'), '{}')).toEqual({ ok: false, code: 'ENOENT' });
  });
});

describe('programs', () => {
  const node = process.execPath;

  it('runs a program without a shell and keeps both streams', async () => {
    const script = 'console.log(process.argv[1]); console.error("to stderr"); process.exitCode = 9';
    expect(await programs.run(node, ['-e', script, '$HOME; *'], { timeoutMs: 10_000 })).toEqual({
      exitCode: 9,
      stdout: '$HOME; *\n',
      stderr: 'to stderr\n',
    });
  });

  it('gives no standard input', async () => {
    const outcome = await programs.run('cat', [], { timeoutMs: 10_000 });
    expect(outcome).toEqual({ exitCode: 0, stdout: '', stderr: '' });
  });

  it('ends what hangs, with what it started, and keeps what was said', async () => {
    const script = `${put('hang.sh', '#!/bin/sh\necho before\nsleep 300 & echo $!\nwait\n')}`;
    chmodSync(script, 0o755);
    const outcome = await programs.run(script, [], { timeoutMs: 400 });
    expect(outcome).toMatchObject({ exitCode: undefined, failure: 'timeout' });
    const [said, grandchild] = outcome.stdout.split('\n');
    expect(said).toBe('before');
    await expect.poll(() => isRunning(Number(grandchild)), { timeout: 5000 }).toBe(false);
  });

  it('does not wait for a grandchild that keeps the pipe open', async () => {
    const script = put('leave.sh', '#!/bin/sh\necho done\nsleep 4 &\n');
    chmodSync(script, 0o755);
    const started = performance.now();
    expect(await programs.run(script, [], { timeoutMs: 3900 })).toMatchObject({ exitCode: 0, stdout: 'done\n' });
    expect(performance.now() - started).toBeLessThan(3500);
  });

  it('tells a missing program from one that cannot be started or was ended by a signal', async () => {
    expect((await programs.run('no-such-program-here', [], { timeoutMs: 5000 })).failure).toBe('not-found');
    expect((await programs.run(put('not-executable', 'text'), [], { timeoutMs: 5000 })).failure).toBe('other');
    const killed = await programs.run(node, ['-e', 'process.kill(process.pid, "SIGKILL")'], { timeoutMs: 10_000 });
    expect(killed).toMatchObject({ exitCode: undefined, failure: 'other' });
  });

  it('finds programs as a shell would, and runs the same ones', async () => {
    const bin = join(folder, 'bin');
    const other = join(folder, 'other');
    mkdirSync(bin);
    mkdirSync(join(other, 'tool'), { recursive: true });
    writeFileSync(join(bin, 'tool'), '#!/bin/sh\necho ran\n');
    chmodSync(join(bin, 'tool'), 0o755);
    writeFileSync(join(bin, 'data'), '');
    const { which, run } = createPorts({ online: false, environment: { PATH: `${other}:${bin}` } }).programs;
    expect(which('tool')).toBe(join(bin, 'tool'));
    expect(which('data')).toBeUndefined();
    expect(which(join(bin, 'tool'))).toBe(join(bin, 'tool'));
    expect(which('absent')).toBeUndefined();
    expect(await run('tool', [], { timeoutMs: 5000 })).toMatchObject({ exitCode: 0, stdout: 'ran\n' });
  });
});

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0);
    // A killed grandchild can stay a zombie where nobody reaps it.
    const stat = files.readText(`/proc/${pid}/stat`);
    return !(stat.ok && / Z /.test(stat.value));
  } catch {
    return false;
  }
}

describe('download', () => {
  const asked: { url: string; authorization: string | null }[] = [];
  const answer = (response: () => Response | Promise<Response>): typeof fetch =>
    (async (url: string, init?: RequestInit) => {
      asked.push({ url, authorization: new Headers(init?.headers).get('authorization') });
      return response();
    }) as typeof fetch;
  const page = 'https://huggingface.co/org/name/resolve/main/config.json';

  it('is absent unless asked for', () => {
    expect(createPorts({ online: false }).download).toBeUndefined();
  });

  it('hands back the body, the status or the reason', async () => {
    const get = (response: () => Response | Promise<Response>) =>
      createPorts({ online: true, environment: {}, fetch: answer(response) }).download!(page);
    expect(await get(() => new Response('{"n": 3}'))).toEqual({ ok: true, text: '{"n": 3}' });
    expect(await get(() => new Response('', { status: 403, statusText: 'Forbidden' }))).toEqual({
      ok: false,
      status: 403,
      error: 'Forbidden',
    });
    const unreachable = Object.assign(new TypeError('fetch failed'), { cause: new Error('getaddrinfo ENOTFOUND') });
    expect(await get(() => Promise.reject(unreachable))).toEqual({
      ok: false,
      status: 0,
      error: 'getaddrinfo ENOTFOUND',
    });
  });

  it('sends the token to the Hub only', async () => {
    const environment = { HF_TOKEN: 'hf_example' };
    const { download } = createPorts({ online: true, environment, fetch: answer(() => new Response('{}')) });
    for (const url of [page, 'https://huggingface.co.example.org/x', 'http://huggingface.co/x']) await download!(url);
    expect(asked.slice(-3).map((each) => each.authorization)).toEqual(['Bearer hf_example', null, null]);
    const off = { ...environment, HF_HUB_DISABLE_IMPLICIT_TOKEN: '1' };
    await createPorts({ online: true, environment: off, fetch: answer(() => new Response('{}')) }).download!(page);
    expect(asked.at(-1)?.authorization).toBeNull();
  });
});
