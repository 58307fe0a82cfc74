import { execFileSync } from 'node:child_process';
import { describe, expect, it } from 'vitest';
import { renderDryRun, unifiedDiff } from '../../src/report/index.ts';

const before = 'seed: 1\nbs: 12  # rows\nhub_token: abc\nlr: 2.0e-4\n';
const after = before.replace('bs: 12 ', 'bs: 3 ');

describe('unifiedDiff', () => {
  it('shows the lines that change, with their surroundings, secrets masked', () => {
    expect(unifiedDiff('tune.yaml', '/run/tune.yaml', before, after)).toBe(
      [
        '--- tune.yaml',
        '+++ /run/tune.yaml',
        '@@ -1,4 +1,4 @@',
        ' seed: 1',
        '-bs: 12  # rows',
        '+bs: 3  # rows',
        ' hub_token: ***',
        ' lr: 2.0e-4',
      ].join('\n'),
    );
  });

  it('is empty where nothing changes', () => {
    expect(unifiedDiff('a', 'b', before, before)).toBe('');
  });
});

describe('renderDryRun', () => {
  it('shows the files, then the command with its variables', () => {
    const text = renderDryRun(
      {
        argv: ['python', 'tune.py', '--config', '/run/tune.yaml', '--hub_token', 'abc'],
        env: { PYTORCH_CUDA_ALLOC_CONF: 'expandable_segments:True' },
        files: [
          { source: 'tune.yaml', copy: '/run/tune.yaml', before, text: after },
          { source: 'same.json', copy: '/run/same.json', before: '{}', text: '{}' },
        ],
      },
      { colour: false, width: 80 },
    );
    const [diff, command] = text.split('\n\n');
    expect(diff).toBe(unifiedDiff('tune.yaml', '/run/tune.yaml', before, after));
    expect(command).toBe(
      "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True python tune.py --config /run/tune.yaml --hub_token '***'",
    );
  });

  it.each([['two words'], ["it's"], ['$HOME'], ['a"b'], ['{"a": [1, 2]}'], ['new\nline'], ['*'], ['']])(
    'gives %j to a shell as it is',
    (word) => {
      const command = renderDryRun({ argv: ['printf', '%s', word], env: {}, files: [] }, { colour: false, width: 20 });
      expect(execFileSync('sh', ['-c', command], { encoding: 'utf8' })).toBe(word);
    },
  );
});
