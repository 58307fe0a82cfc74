import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, expect, it } from 'vitest';
import { createNotifier } from '../../src/cli/notifier.ts';

const folder = mkdtempSync(join(tmpdir(), 'snug-notifier-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const notifier = (command: string) => {
  const made = createNotifier(command);
  if (!made.ok) throw new Error(made.error[0]!.message);
  return made.value;
};

it('starts the command once for each event, with the event as JSON on its stdin', async () => {
  const path = join(folder, 'told');
  const { tell, finish } = notifier(`sh -c 'cat >> "${path}"'`);
  tell({ event: 'stalled', text: "it's quiet" });
  expect(await finish()).toEqual([]);
  tell({ event: 'ended', exit_code: 13 });
  expect(await finish()).toEqual([]);
  const lines = readFileSync(path, 'utf8').trim().split('\n');
  expect(lines.map((line) => JSON.parse(line))).toEqual([
    { event: 'stalled', text: "it's quiet" },
    { event: 'ended', exit_code: 13 },
  ]);
});

it.each([
  ['no-such-program-here', /could not start no-such-program-here: ENOENT/],
  ["sh -c 'exit 7'", /ended with exit code 7/],
])('says once what is wrong with %s, and goes on', async (command, problem) => {
  const { tell, finish } = notifier(command);
  tell({ event: 'stalled' });
  tell({ event: 'ended' });
  expect(await finish()).toEqual([expect.stringMatching(problem)]);
});

it.each(['', 'cat | mail', 'tell $(whoami)'])('takes no shell: %j', (command) => {
  expect(createNotifier(command)).toMatchObject({ ok: false });
});
