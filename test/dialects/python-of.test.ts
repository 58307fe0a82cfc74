import { describe, expect, it } from 'vitest';
import { pythonFromShebang, pythonOf } from '../../src/dialects/python-of.ts';
import { readLaunch } from '../../src/dialects/read-launch.ts';
import { contextOf } from './reading.ts';

describe('the words that start the Python of a launch', () => {
  const scripts: Readonly<Record<string, string>> = {
    trl: '#!/opt/e/bin/python3.11\n# -*- coding: utf-8 -*-\n',
    torchrun: "#!/bin/sh\n'''exec' /very/long/bin/python3 \"$0\" \"$@\"\n' '''\n",
    './train.py': '#!/usr/bin/env python3\n',
    'some-binary': '\u007fELF',
  };
  const ask = (line: string) => {
    const reading = readLaunch(line.split(' '), contextOf());
    if (!reading.ok) throw new Error(JSON.stringify(reading.error));
    return pythonOf(reading.value, { shebangOf: (program) => scripts[program] })?.join(' ');
  };

  it.each([
    ['python3.11 train.py', 'python3.11'],
    ['CUDA_VISIBLE_DEVICES=0 nohup /opt/e/bin/python -u train.py', '/opt/e/bin/python'],
    ['/opt/e/bin/python -m torch.distributed.run train.py', '/opt/e/bin/python'],
    ['torchrun train.py', '/very/long/bin/python3'],
    ['timeout 2h torchrun train.py', '/very/long/bin/python3'],
    ['./train.py --lr 1', 'python3'],
    ['uv run train.py', 'uv run python'],
    ['A=1 nohup uv run --with peft -- torchrun train.py', 'uv run --with peft -- python'],
    ['uv run python3 train.py', 'uv run python3'],
    ['conda run -n e torchrun train.py', 'conda run -n e python'],
    ['poetry run trl sft --model_name_or_path x --dataset_name y', 'poetry run python'],
    ['accelerate launch train.py', undefined],
    ['some-binary --lr 1', undefined],
    ['docker run image train.sh', undefined],
  ])('%s: %s', (line, python) => expect(ask(line)).toBe(python));
});

describe('pythonFromShebang', () => {
  it.each<[text: string, words: string[] | undefined]>([
    ['#!/opt/e/bin/python\n', ['/opt/e/bin/python']],
    ['#! /opt/e/bin/python3 -I\r\nimport x\n', ['/opt/e/bin/python3', '-I']],
    ['#!/usr/bin/env python3.12', ['python3.12']],
    ['#!/usr/bin/env -S A=1 python -u\n', ['python', '-u']],
    ['#!/bin/sh\n\'\'\'exec\' "/with blank/bin/python" "$0" "$@"\n', ['/with blank/bin/python']],
    ['#!/bin/bash\npython train.py\n', undefined],
    ['#!/usr/bin/env node\n', undefined],
    ['#!/usr/bin/pythonista\n', undefined],
    ['import torch\n', undefined],
    ['', undefined],
  ])('%j', (text, words) => expect(pythonFromShebang(text)).toEqual(words));
});
